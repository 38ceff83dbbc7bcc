/** Every event of the run as it was sent. Bounded: the oldest give way; drawn in batches, however many come. */
import { element } from "../talk/dom.js";

const entriesMax = 500;

export class EventList {
  /** @param {{list: HTMLElement, filter: HTMLInputElement, copy: HTMLButtonElement, count: HTMLElement}} parts */
  constructor(parts) {
    this.parts = parts;
    this.clear();
    parts.filter.addEventListener("input", () => this.#applyFilter());
    parts.copy.addEventListener("click", () => this.#copy());
  }

  clear() {
    this.entries = [];
    this.total = 0;
    this.parts.list.replaceChildren();
    this.parts.count.textContent = "0";
  }

  /** @param {object[]} events in order @param {number} createdMs of the run */
  add(events, createdMs) {
    if (events.length === 0) return;
    const { list } = this.parts;
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 24;
    const fresh = events.slice(-entriesMax).map((event) => this.#entry(event, createdMs));
    this.entries.push(...fresh);
    list.append(...fresh.map(({ node }) => node));
    for (const { node } of this.entries.splice(0, Math.max(0, this.entries.length - entriesMax))) node.remove();
    this.total += events.length;
    this.parts.count.textContent = String(this.total);
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  }

  #entry(event, createdMs) {
    const atMs = Date.parse(event.created_at) - createdMs;
    const body = element("pre", {});
    const details = element(
      "details",
      {},
      element(
        "summary",
        {},
        element("span", { class: "at" }, (atMs / 1000).toFixed(2)),
        element("span", { class: "seq" }, String(event.id)),
        element("span", { class: "kind" }, event.type),
        element("span", { class: "gist" }, gistOf(event)),
      ),
      body,
    );
    // Most entries are never opened.
    details.addEventListener("toggle", () => {
      if (details.open && !body.textContent) body.textContent = JSON.stringify(event, null, 2);
    });
    const entry = {
      event,
      text: JSON.stringify(event).toLowerCase(),
      node: element("li", { "data-id": event.id }, details),
    };
    entry.node.hidden = !this.#passes(entry);
    return entry;
  }

  async #copy() {
    const lines = this.entries.filter((entry) => this.#passes(entry)).map(({ event }) => JSON.stringify(event));
    const { copy } = this.parts;
    const done = await navigator.clipboard.writeText(`${lines.join("\n")}\n`).then(
      () => "Copied",
      () => "Not allowed",
    );
    copy.textContent = done;
    setTimeout(() => {
      copy.textContent = "Copy";
    }, 1500);
  }

  #applyFilter() {
    for (const entry of this.entries) entry.node.hidden = !this.#passes(entry);
  }

  #passes(entry) {
    return entry.text.includes(this.parts.filter.value.trim().toLowerCase());
  }
}

/** The fields that matter at a glance. */
function gistOf({ node_id: nodeId, data }) {
  const text =
    data.text ??
    data.json_delta ??
    data.error?.message ??
    data.prompt ??
    data.decision ??
    data.handle ??
    data.reason ??
    data.name ??
    data.status ??
    data.worker;
  return [nodeId, typeof text === "object" ? JSON.stringify(text) : text]
    .filter((part) => part !== undefined)
    .join(" · ");
}
