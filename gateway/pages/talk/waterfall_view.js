/** Where the time of a turn went: from the caller's last word to the agent's first sound. */
import { durationText, element } from "./dom.js";

/** In the order in which they happen; each begins where the one before ends. */
const stages = [
  { field: "eos_wait_ms", name: "Endpointing", hint: "silence waited for before your turn was taken" },
  { field: "stt_final_ms", name: "Recognition", hint: "speech to final text" },
  { field: "llm_ttft_ms", name: "Model", hint: "to the first words of the answer" },
  { field: "tool_ms", name: "Tools", hint: "look-ups made for the answer" },
  { field: "tts_ttfb_ms", name: "Speech", hint: "words to first sound" },
  { field: "gateway_ms", name: "Gateway", hint: "what Frontdesk itself added" },
];

const turnsMax = 30;

export class WaterfallView {
  /** @param {HTMLElement} list @param {HTMLElement} empty shown while there is no turn */
  constructor(list, empty) {
    this.list = list;
    this.empty = empty;
    this.clear();
  }

  clear() {
    this.list.replaceChildren();
    this.empty.hidden = false;
    this.count = 0;
  }

  /** @param {object} metrics a `turn_metrics` message */
  add(metrics) {
    this.empty.hidden = true;
    this.count++;
    for (const shown of this.list.querySelectorAll("details[open]")) shown.open = false;
    const row = element("li", {}, turnChart(metrics, `Turn ${this.count}`, true));
    this.list.prepend(row);
    while (this.list.childElementCount > turnsMax) this.list.lastElementChild.remove();
  }
}

/** One turn: a stacked bar as the headline, the stages as a waterfall beneath. */
export function turnChart(metrics, title, open = false) {
  const shown = stages
    .map((stage) => ({ ...stage, ms: Math.max(0, metrics[stage.field] ?? 0) }))
    .filter((stage) => stage.field !== "tool_ms" || stage.ms > 0);
  const totalMs = Math.max(
    shown.reduce((sum, stage) => sum + stage.ms, 0),
    0.1,
  );
  const stack = element("span", { class: "stack", "aria-hidden": "true" });
  const rows = [];
  let offsetMs = 0;
  for (const stage of shown) {
    stack.append(bar(stage, 0, (stage.ms / totalMs) * 100));
    const lane = element(
      "span",
      { class: "lane", "aria-hidden": "true" },
      bar(stage, (offsetMs / totalMs) * 100, (stage.ms / totalMs) * 100),
    );
    rows.push(
      element(
        "tr",
        {},
        element("th", { scope: "row", title: stage.hint }, stage.name),
        element("td", { class: "lane-cell" }, lane),
        element("td", { class: "figure" }, durationText(stage.ms)),
      ),
    );
    offsetMs += stage.ms;
  }
  const note = metrics.interrupted ? element("span", { class: "note" }, "interrupted") : undefined;
  return element(
    "details",
    { class: "turn", open },
    element(
      "summary",
      {},
      element("span", { class: "turn-title" }, title),
      note,
      element("span", { class: "figure" }, durationText(totalMs)),
      stack,
    ),
    element(
      "table",
      { class: "stages" },
      element("caption", { class: "visually-hidden" }, `${title}, stage by stage`),
      element("tbody", {}, ...rows),
    ),
  );
}

function bar(stage, offsetPercent, widthPercent) {
  const node = element("span", { class: `bar ${stage.field}` });
  node.style.marginInlineStart = `${offsetPercent}%`;
  node.style.width = `${widthPercent}%`;
  return node;
}
