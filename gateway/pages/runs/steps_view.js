/** What happens, node by node in the order of its beginning: words as they come, questions, results. */
import { durationText, element } from "../talk/dom.js";
import { wordsOf } from "./node_kinds.js";
import { requestForm } from "./request_form.js";
import { stateNames } from "./run_words.js";
import { textOf } from "./schema_form.js";

export class StepsView {
  #steps = new Map();

  /**
   * @param {HTMLElement} list
   * @param {HTMLElement} announcer a live region
   * @param {(response: object) => Promise<void>} answer
   */
  constructor(list, announcer, answer) {
    /** The step that has just begun to ask. @type {HTMLElement | undefined} */
    this.asking = undefined;
    this.list = list;
    this.announcer = announcer;
    this.answer = answer;
  }

  clear() {
    this.#steps.clear();
    this.list.replaceChildren();
    this.announcer.replaceChildren();
    this.names = new Map();
  }

  /** @param {object | undefined} definition whose names the steps bear */
  name(definition) {
    this.names = new Map((definition?.nodes ?? []).map((node) => [node.id, node]));
  }

  /** @param {import("./run_state.js").emptyRun} run @param {(startedMs: number) => number} lasting for nodes at work @param {boolean} isQuiet nothing is announced */
  update(run, lasting, isQuiet) {
    this.asking = undefined;
    for (const node of run.nodes.values()) {
      // What was skipped is told by the drawing.
      if (node.is === "skipped") continue;
      const step = this.#steps.get(node.id) ?? this.#begin(node);
      this.#show(step, node, run, lasting, isQuiet);
    }
  }

  /** Brings a node's step into sight. */
  reveal(nodeId) {
    const step = this.#steps.get(nodeId);
    step?.box.scrollIntoView({
      block: "nearest",
      behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
    });
  }

  #begin(node) {
    const known = this.names.get(node.id);
    const kind = known?.type ?? node.type;
    const name = known?.name ?? node.name ?? node.id;
    const step = {
      name,
      kind,
      said: "",
      state: element("span", { class: "step-state" }),
      time: element("span", { class: "figure muted" }),
      words: element("p", { class: "words" }),
      aside: element("div", { class: "aside" }),
      ask: element("div", {}),
      raw: element("details", { class: "raw" }),
    };
    step.words.hidden = true;
    step.raw.hidden = true;
    step.box = element(
      "li",
      { class: "step", "data-node": node.id },
      element(
        "div",
        { class: "step-head" },
        element("h2", {}, name),
        element("span", { class: "kind" }, wordsOf(kind).name),
        step.state,
        step.time,
      ),
      step.words,
      step.aside,
      step.ask,
      step.raw,
    );
    this.#steps.set(node.id, step);
    this.list.append(step.box);
    return step;
  }

  #show(step, node, run, lasting, isQuiet) {
    if (step.box.dataset.is !== node.is) {
      step.box.dataset.is = node.is;
      step.state.textContent = stateNames[node.is];
      if (!isQuiet) this.#announce(`${step.name}: ${stateNames[node.is]}`);
    }
    const ended = node.endedMs !== undefined;
    step.time.textContent =
      ended && node.durationMs !== undefined
        ? durationText(node.durationMs)
        : ended
          ? ""
          : durationText(lasting(node.startedMs));
    showWords(step, node);
    const words = step.words.textContent;
    if (ended && words && step.spoken !== words) {
      step.spoken = words;
      if (!isQuiet) this.#announce(words);
    }
    this.#showAside(step, node);
    this.#showRequest(step, node, run, isQuiet);
    showRaw(step, node);
  }

  #showAside(step, node) {
    const tools = [...node.tools.values()];
    const sign = JSON.stringify([tools, node.error, node.progress, node.reason]);
    if (step.asideSign === sign) return;
    step.asideSign = sign;
    const lines = tools.map((tool) =>
      element(
        "p",
        { class: "remark-line" },
        element("code", {}, tool.name),
        tool.done ? ` ${tool.error ?? "answered"} · ${durationText(tool.duration_ms)}` : " called …",
      ),
    );
    if (node.progress && node.endedMs === undefined)
      lines.push(element("p", { class: "remark-line" }, progressText(node.progress)));
    if (node.error)
      lines.push(
        element(
          "p",
          { class: "problem" },
          `${node.error.message}${node.is === "retrying" ? ` Attempt ${node.nextAttempt} follows.` : ""}`,
        ),
      );
    step.aside.replaceChildren(...lines);
  }

  #showRequest(step, node, run, isQuiet) {
    const request = node.requestId && run.requests.get(node.requestId);
    if (!request) return;
    const over = run.endedMs !== undefined;
    const sign = `${request.id} ${request.resolved?.decision ?? (over ? "over" : "pending")}`;
    if (step.requestSign === sign) return;
    step.requestSign = sign;
    if (request.resolved || over) return step.ask.replaceChildren(resolution(request, run));
    step.ask.replaceChildren(requestForm(request, this.answer));
    this.asking = step.box;
    if (!isQuiet) this.#announce(`The run needs you: ${request.prompt}`);
  }

  #announce(text) {
    this.announcer.append(element("p", {}, text));
    if (this.announcer.childElementCount > 30) this.announcer.firstElementChild.remove();
  }
}

function showWords(step, node) {
  const text = node.texts.filter(Boolean).join("\n\n");
  if (text === step.said) return;
  step.words.hidden = text === "";
  if (text.startsWith(step.said) && step.said !== "") {
    // What is new fades in by itself; what stands is not touched.
    const piece = element("span", { class: "new" }, text.slice(step.said.length));
    step.words.append(piece);
    if (step.words.childElementCount > 400) step.words.replaceChildren(text);
  } else {
    step.words.replaceChildren(text);
  }
  step.said = text;
}

/** In and out as JSON, where the app keeps them. */
function showRaw(step, node) {
  const parts = [
    ["Input", node.input],
    ["Output", node.output],
    ["Handle", node.handle && node.handle !== "default" ? node.handle : undefined],
  ].filter(([, value]) => value !== undefined && value !== null);
  const sign = parts.map(([name]) => name).join();
  if (step.rawSign === sign) return;
  step.rawSign = sign;
  step.raw.hidden = parts.length === 0;
  const handle = parts.find(([name]) => name === "Handle")?.[1];
  step.raw.replaceChildren(
    element("summary", {}, "In and out", ...(handle ? [element("span", { class: "way-taken" }, `→ ${handle}`)] : [])),
    ...parts
      .filter(([name]) => name !== "Handle")
      .flatMap(([name, value]) => [element("h3", {}, name), element("pre", {}, textOf(value))]),
  );
}

const decisions = {
  approve: "Approved",
  reject: "Rejected",
  respond: "Answered",
  expired: "Nobody answered in time",
  canceled: "Not answered",
};

function resolution({ prompt, resolved }, run) {
  const decision = resolved?.decision ?? (run.endedMs === undefined ? "" : "canceled");
  const changed = resolved?.changed_params ?? [];
  const by = resolved?.responded_by ? ` by ${resolved.responded_by}` : "";
  return element(
    "div",
    { class: "resolution", "data-decision": decision },
    element("p", {}, prompt),
    element(
      "p",
      {},
      element("strong", {}, (decisions[decision] ?? decision) + by),
      changed.length > 0 ? ` with changes to ${changed.join(", ")}` : "",
    ),
    ...(resolved?.comment ? [element("p", { class: "muted" }, `“${resolved.comment}”`)] : []),
  );
}

function progressText({ message, percent, current, total }) {
  const counted =
    current !== undefined && total !== undefined
      ? `${current} of ${total}`
      : percent !== undefined
        ? `${Math.round(percent)} %`
        : "";
  return [message, counted].filter(Boolean).join(" · ");
}
