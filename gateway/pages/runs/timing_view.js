/** Where a run's time went: a bar for each node, on one scale; what waits for people is hatched. */
import { durationText, element } from "../talk/dom.js";

export class TimingView {
  #rows = new Map();

  /** @param {HTMLElement} list @param {HTMLElement} empty shown while there is nothing */
  constructor(list, empty) {
    this.list = list;
    this.empty = empty;
  }

  clear() {
    this.#rows.clear();
    this.list.replaceChildren();
    this.empty.hidden = false;
  }

  /** @param {import("./run_state.js").emptyRun} run @param {number} nowMs on the server's clock @param {(id: string) => string} nameOf */
  update(run, nowMs, nameOf) {
    const nodes = [...run.nodes.values()].filter((node) => node.startedMs !== undefined && node.is !== "skipped");
    const began = run.createdMs ?? nowMs;
    const ended = Math.max(run.endedMs ?? nowMs, began + 1);
    this.empty.hidden = nodes.length > 0;
    for (const node of nodes) {
      const row = this.#rows.get(node.id) ?? this.#begin(node, nameOf(node.id));
      const until = node.endedMs ?? ended;
      const percent = (ms) => `${Math.min(100, Math.max(0, ((ms - began) / (ended - began)) * 100))}%`;
      row.bar.dataset.is = node.is;
      row.bar.style.marginInlineStart = percent(node.startedMs);
      row.bar.style.width = percent(began + until - node.startedMs);
      const waited = node.askedMs === undefined ? 0 : (node.answeredMs ?? until) - node.askedMs;
      row.bar.classList.toggle("waited", waited > (until - node.startedMs) / 2);
      row.time.textContent = durationText(Math.max(0, until - node.startedMs));
    }
  }

  #begin(node, name) {
    const row = { bar: element("span", { class: "span" }), time: element("span", { class: "figure" }) };
    this.#rows.set(node.id, row);
    this.list.append(
      element(
        "li",
        {},
        element("span", { class: "span-name" }, name),
        row.time,
        element("span", { class: "track" }, row.bar),
      ),
    );
    return row;
  }
}
