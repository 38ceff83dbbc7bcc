/** Every message of the call, both ways, as it was on the wire. Bounded: the oldest give way. */
import { element } from "./dom.js";

const entriesMax = 500;

export class EventLog {
  /** @param {{list: HTMLElement, filter: HTMLInputElement, copy: HTMLButtonElement, clear: HTMLButtonElement, count: HTMLElement}} parts */
  constructor(parts) {
    this.parts = parts;
    this.entries = [];
    parts.filter.addEventListener("input", () => this.applyFilter());
    parts.clear.addEventListener("click", () => this.clear());
    parts.copy.addEventListener("click", () => this.copy());
  }

  /** @param {"in" | "out"} direction @param {object} message @param {number} atMs since the call began */
  add(direction, message, atMs) {
    const { type, seq, t, ...fields } = message;
    const text = JSON.stringify(message);
    const node = element(
      "li",
      { class: direction },
      element(
        "details",
        {},
        element(
          "summary",
          {},
          element("span", { class: "at" }, (atMs / 1000).toFixed(2)),
          element(
            "span",
            { class: "arrow", role: "img", "aria-label": direction === "in" ? "received" : "sent" },
            direction === "in" ? "↓" : "↑",
          ),
          element("span", { class: "kind" }, type),
          element("span", { class: "gist" }, gistOf(fields)),
        ),
        element("pre", {}, JSON.stringify(message, null, 2)),
      ),
    );
    this.entries.push({ node, text: text.toLowerCase(), line: { at_ms: Math.round(atMs), direction, message } });
    node.hidden = !this.passes(this.entries.at(-1));
    const isAtEnd = this.isAtEnd();
    this.parts.list.append(node);
    if (this.entries.length > entriesMax) this.entries.shift().node.remove();
    this.parts.count.textContent = String(this.entries.length);
    if (isAtEnd) this.parts.list.scrollTop = this.parts.list.scrollHeight;
  }

  clear() {
    this.entries = [];
    this.parts.list.replaceChildren();
    this.parts.count.textContent = "0";
  }

  async copy() {
    const lines = this.entries.filter((entry) => this.passes(entry)).map((entry) => JSON.stringify(entry.line));
    const label = this.parts.copy.textContent;
    const done = await navigator.clipboard.writeText(`${lines.join("\n")}\n`).then(
      () => "Copied",
      () => "Not allowed",
    );
    this.parts.copy.textContent = done;
    setTimeout(() => {
      this.parts.copy.textContent = label;
    }, 1500);
  }

  applyFilter() {
    for (const entry of this.entries) entry.node.hidden = !this.passes(entry);
  }

  passes(entry) {
    return entry.text.includes(this.parts.filter.value.trim().toLowerCase());
  }

  isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.parts.list;
    return scrollHeight - scrollTop - clientHeight < 24;
  }
}

/** The fields that matter at a glance. */
function gistOf(fields) {
  const text =
    fields.state ?? fields.text ?? fields.delta ?? fields.name ?? fields.reason ?? fields.message ?? fields.code;
  if (text !== undefined) return String(text);
  const first = Object.entries(fields).find(([, value]) => typeof value !== "object");
  return first ? `${first[0]} ${first[1]}` : "";
}
