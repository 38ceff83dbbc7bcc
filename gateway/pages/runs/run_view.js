/**
 * One run on the page: its stream on one side, the views on the other. Events change the state at
 * once; the views follow once a frame, so that a replay of thousands draws once.
 */
import { byId, clockText, element } from "../talk/dom.js";
import { EventList } from "./event_list.js";
import { GraphView } from "./graph_view.js";
import { keepEvents, keptEvents } from "./run_memory.js";
import { emptyRun, isOver, takeEvent } from "./run_state.js";
import { RunStream } from "./run_stream.js";
import { statusNames } from "./run_words.js";
import { answerRequest, getRun, openStream } from "./runs_api.js";
import { textOf } from "./schema_form.js";
import { StepsView } from "./steps_view.js";
import { TimingView } from "./timing_view.js";

const desk = byId("desk");

export class RunView {
  #app;
  #stream;
  #run = emptyRun();
  #events = [];
  #undrawn = [];
  #names = new Map();
  #drawing = false;
  #ticker;
  /** How far the server's clock is behind ours, as the quickest event showed it. */
  #skewMs = Number.POSITIVE_INFINITY;
  /** Events up to here were there when the run was opened: they are shown, not announced. */
  #quietUntil = 0;
  #link = { is: "over" };

  /** Of the run that is shown; undefined when there is none. @type {string | undefined} */
  runId;

  /** @param {{complain: (error: unknown) => void, changed: () => void}} listener */
  constructor(listener) {
    this.listener = listener;
    this.graph = new GraphView(byId("graph"), (nodeId) => this.steps.reveal(nodeId));
    this.steps = new StepsView(byId("steps"), byId("announcer"), (response) => this.#answer(response));
    this.timing = new TimingView(byId("timing"), byId("timing-empty"));
    this.log = new EventList({
      list: byId("events"),
      filter: byId("events-filter"),
      copy: byId("events-copy"),
      count: byId("events-count"),
    });
  }

  /** Shows the workflow as it is before a run. */
  clear(definition) {
    this.#showDefinition(definition);
    this.steps.clear();
    this.steps.name(definition);
    this.timing.clear();
    this.log.clear();
    this.#run = emptyRun();
    this.#events = [];
    this.#undrawn = [];
    this.#skewMs = Number.POSITIVE_INFINITY;
    desk.dataset.run = "idle";
    byId("state").textContent = "Ready";
    byId("state").dataset.state = "idle";
    byId("timer").textContent = "–";
    byId("link").textContent = "";
    for (const id of ["asked", "result"]) byId(id).hidden = true;
    byId("facts").replaceChildren();
    byId("facts-empty").hidden = false;
  }

  #showDefinition(definition) {
    this.#names = new Map(definition.nodes.map(({ id, name }) => [id, name ?? id]));
    this.graph.show(definition);
  }

  /** Attaches to a run, from the first event or from where this tab was before its reload. */
  async open(app, runId, versionOf) {
    this.#app = app;
    this.runId = runId;
    const run = await getRun(app.id, runId);
    const { definition } = await versionOf(run.workflow_version_id);
    if (this.runId !== runId) return;
    this.clear(definition);
    this.#quietUntil = run.last_event_id;
    for (const event of keptEvents(runId)) this.#take(event);
    desk.dataset.run = "live";
    this.#draw();
    this.#stream = new RunStream((cursor, signal) => openStream(app.id, runId, cursor, signal), this.#run.lastEventId, {
      event: (event) => {
        if (event.id > this.#quietUntil)
          this.#skewMs = Math.min(this.#skewMs, Date.now() - Date.parse(event.created_at));
        this.#take(event);
      },
      link: (link) => this.#showLink(link),
      refused: (error) => {
        this.#showLink({ is: "over" });
        this.listener.complain(error);
      },
    });
    this.#ticker = setInterval(() => this.#drawSoon(), 250);
  }

  /** Lets go of the run; it goes on by itself. */
  leave() {
    this.#stream?.close();
    this.#stream = undefined;
    clearInterval(this.#ticker);
    this.runId = undefined;
  }

  /** Before the tab reloads. */
  keep() {
    if (this.runId) keepEvents(this.runId, this.#events);
  }

  #take(event) {
    takeEvent(this.#run, event);
    this.#events.push(event);
    this.#undrawn.push(event);
    if (event.type === "run.awaiting_input" || isOver(this.#run)) {
      if (event.id > this.#quietUntil) this.listener.changed();
    }
    this.#drawSoon();
  }

  async #answer(response) {
    await answerRequest(this.#app.id, this.runId, response);
  }

  #showLink(link) {
    this.#link = { ...link, untilMs: performance.now() + (link.retryInMs ?? 0) };
    if (link.is === "over") clearInterval(this.#ticker);
    this.#drawSoon();
  }

  /** A page that is not looked at gets no frames, and still its events. */
  #drawSoon() {
    if (this.#drawing) return;
    this.#drawing = true;
    const draw = () => {
      if (!this.#drawing) return;
      this.#drawing = false;
      if (this.runId) this.#draw();
    };
    if (document.visibilityState === "visible") requestAnimationFrame(draw);
    setTimeout(draw, 250);
  }

  #draw() {
    const run = this.#run;
    const box = byId("steps-box");
    const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 48;
    const nowMs = Date.now() - (Number.isFinite(this.#skewMs) ? this.#skewMs : 0);
    const isQuiet = run.lastEventId <= this.#quietUntil;
    this.graph.update(run);
    this.steps.update(run, (startedMs) => Math.max(0, nowMs - startedMs), isQuiet);
    this.timing.update(run, nowMs, (id) => this.#names.get(id) ?? id);
    this.log.add(this.#undrawn, run.createdMs ?? nowMs);
    this.#undrawn = [];
    this.#drawHead(nowMs);
    this.#drawEnds();
    this.#drawFacts();
    if (this.steps.asking) this.steps.asking.scrollIntoView({ block: "nearest" });
    else if (isAtEnd) box.scrollTop = box.scrollHeight;
  }

  #drawHead(nowMs) {
    const run = this.#run;
    const over = isOver(run);
    // An answer that is still outstanding may be one of several branches.
    const asks = !over && [...run.requests.values()].some((request) => !request.resolved);
    const status = asks ? "awaiting_input" : run.status;
    desk.dataset.run = over ? "over" : "live";
    byId("state").dataset.state = status ?? "pending";
    const words = statusNames[status] ?? "Opening";
    if (byId("state").textContent !== words) byId("state").textContent = words;
    byId("timer").textContent = run.createdMs === undefined ? "–" : clockText((run.endedMs ?? nowMs) - run.createdMs);
    byId("link").textContent = over ? "" : ` · ${linkWords(this.#link)}`;
  }

  #drawEnds() {
    const run = this.#run;
    byId("asked").hidden = run.input === undefined || Object.keys(run.input).length === 0;
    if (run.input && byId("asked").dataset.run !== run.id) {
      byId("asked").dataset.run = run.id;
      byId("asked-values").replaceChildren(...valueRows(run.input));
    }
    const result = byId("result");
    result.hidden = !isOver(run);
    if (!isOver(run) || result.dataset.run === `${run.id} ${run.status}`) return;
    result.dataset.run = `${run.id} ${run.status}`;
    result.dataset.state = run.status;
    byId("result-title").textContent = { succeeded: "Result", failed: "It failed", canceled: "It was canceled" }[
      run.status
    ];
    const content =
      run.output ?? (run.error ? { [run.error.code]: run.error.message } : run.reason ? { reason: run.reason } : {});
    byId("result-values").replaceChildren(...valueRows(content));
  }

  #drawFacts() {
    const run = this.#run;
    if (run.id === undefined) return;
    byId("facts-empty").hidden = true;
    const { usage } = run;
    const facts = [
      ["Run", run.id],
      ["Session", run.sessionId],
      ["Last event", String(run.lastEventId)],
      ["Stream", isOver(run) ? "ended" : linkWords(this.#link)],
      [
        "Attempt",
        run.attempt > 1 || run.recovered ? `${run.attempt}${run.recovered ? ", taken over" : ""}` : undefined,
      ],
      [
        "Tokens",
        usage && usage.total_tokens > 0 ? `${usage.prompt_tokens} in, ${usage.completion_tokens} out` : undefined,
      ],
    ].filter(([, value]) => value !== undefined);
    const sign = JSON.stringify(facts);
    if (byId("facts").dataset.sign === sign && byId("facts").childElementCount > 0) return;
    byId("facts").dataset.sign = sign;
    byId("facts").replaceChildren(
      ...facts.map(([name, value]) =>
        element("div", {}, element("dt", {}, name), element("dd", { class: "figure" }, value)),
      ),
    );
  }
}

function linkWords({ is, untilMs, reason }) {
  if (is === "live") return "live";
  if (is === "connecting") return "connecting";
  if (is === "over") return "ended";
  const seconds = Math.max(1, Math.ceil((untilMs - performance.now()) / 1000));
  return reason === "drain" || reason === "max_age" ? "renewing" : `link lost, again in ${seconds} s`;
}

function valueRows(values) {
  return Object.entries(values).map(([name, value]) =>
    element(
      "div",
      {},
      element("dt", {}, name),
      element("dd", typeof value === "string" ? {} : { class: "json" }, textOf(value)),
    ),
  );
}
