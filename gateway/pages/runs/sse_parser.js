/**
 * Server-sent events out of text in pieces, as the WHATWG's algorithm reads them. Pure: text in,
 * messages out; what is not complete yet is kept.
 */
export class SseParser {
  #rest = "";
  #id = "";
  #event = "";
  #data = [];

  /** Milliseconds that the server asked to wait before coming back. @type {number | undefined} */
  retryMs;

  /** @param {string} text @returns {{id: string, event: string, data: string}[]} the messages that it completes */
  push(text) {
    const messages = [];
    const all = this.#rest + text;
    let start = 0;
    for (const match of all.matchAll(/\r\n|\n|\r/g)) {
      // A carriage return at the very end may be half of a line's end.
      if (match[0] === "\r" && match.index === all.length - 1) break;
      this.#line(all.slice(start, match.index), messages);
      start = match.index + match[0].length;
    }
    this.#rest = all.slice(start);
    return messages;
  }

  #line(line, messages) {
    if (line === "") {
      if (this.#data.length > 0) {
        messages.push({ id: this.#id, event: this.#event || "message", data: this.#data.join("\n") });
      }
      this.#id = "";
      this.#event = "";
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id") this.#id = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
  }
}
