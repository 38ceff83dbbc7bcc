/**
 * Follows one run's events to its end, over any number of connections. It remembers the last event's
 * id, comes back with it, and hands on each event exactly once and in order: what is repeated is
 * dropped, and a gap is a reason to come back.
 */
import { SseParser } from "./sse_parser.js";

/** The server says something every 15 s: three of these missed, and the connection is dead. */
const silenceMaxMs = 45_000;
const retryDefaultMs = 2000;
const retryMaxMs = 30_000;
const terminal = new Set(["run.succeeded", "run.failed", "run.canceled"]);

/**
 * @typedef {object} StreamListener
 * @property {(event: object) => void} event
 * @property {(link: {is: "connecting" | "live" | "waiting" | "over", retryInMs?: number, reason?: string}) => void} link
 * @property {(error: Error & {status?: number}) => void} refused the server's answer says that coming back is of no use
 */
export class RunStream {
  #listener;
  #open;
  #closed = false;
  #attempt = new AbortController();
  #failures = 0;
  #retryMs = retryDefaultMs;
  #wake = () => undefined;

  /** Id of the last event that was handed on; 0 before the first. */
  cursor;

  /**
   * @param {(cursor: number, signal: AbortSignal) => Promise<Response>} open asks for the stream after `cursor`
   * @param {number} cursor events up to here are known
   * @param {StreamListener} listener
   */
  constructor(open, cursor, listener) {
    this.#open = open;
    this.#listener = listener;
    this.cursor = cursor;
    // A network that is back, and a page that is looked at again, need no more waiting.
    this.hurry = () => document.visibilityState === "visible" && this.#wake();
    addEventListener("online", this.hurry);
    document.addEventListener("visibilitychange", this.hurry);
    void this.#follow();
  }

  close() {
    this.#closed = true;
    removeEventListener("online", this.hurry);
    document.removeEventListener("visibilitychange", this.hurry);
    this.#attempt.abort();
    this.#wake();
  }

  async #follow() {
    let reason;
    while (!this.#closed) {
      this.#listener.link({ is: "connecting", ...(reason && { reason }) });
      const end = await this.#connect().catch((error) => ({ is: "lost", reason: error.message }));
      if (this.#closed) return;
      if (end.is === "over") {
        this.close();
        return this.#listener.link({ is: "over" });
      }
      if (end.is === "refused") {
        this.close();
        return this.#listener.refused(end.error);
      }
      reason = end.reason;
      const retryInMs = this.#delayMs(end);
      this.#listener.link({ is: "waiting", retryInMs, reason });
      await this.#pause(retryInMs);
    }
  }

  /** One connection, from its request to its end. */
  async #connect() {
    const attempt = new AbortController();
    this.#attempt = attempt;
    let watchdog = setTimeout(() => attempt.abort(), silenceMaxMs);
    try {
      const response = await this.#open(this.cursor, attempt.signal);
      if (response.status === 204) return { is: "over" };
      if (!response.ok) return await this.#refusal(response);
      this.#listener.link({ is: "live" });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new SseParser();
      let leave;
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return leave ?? { is: "lost", reason: "the connection ended" };
        clearTimeout(watchdog);
        watchdog = setTimeout(() => attempt.abort(), silenceMaxMs);
        for (const message of parser.push(value)) leave = this.#take(message) ?? leave;
        this.#retryMs = parser.retryMs ?? this.#retryMs;
        if (leave?.is === "over" || leave?.is === "gap") return leave;
      }
    } finally {
      clearTimeout(watchdog);
      attempt.abort();
    }
  }

  /** @returns what a message means for the connection, if anything */
  #take({ id, event, data }) {
    if (event === "stream.closing") return { is: "sent_away", reason: JSON.parse(data).reason };
    if (event === "stream.compacted") {
      this.cursor = Math.max(this.cursor, JSON.parse(data).to);
      return undefined;
    }
    const number = Number(id);
    if (!(number > this.cursor)) return undefined;
    if (number !== this.cursor + 1) return { is: "gap", reason: "events were missing" };
    this.cursor = number;
    this.#failures = 0;
    const parsed = JSON.parse(data);
    this.#listener.event(parsed);
    return terminal.has(parsed.type) ? { is: "over" } : undefined;
  }

  async #refusal(response) {
    const answer = await response.json().catch(() => undefined);
    const message = answer?.error?.message ?? `The server answered ${response.status}`;
    const passing = response.status === 429 || response.status >= 500;
    if (passing) return { is: "lost", reason: message };
    return { is: "refused", error: Object.assign(new Error(message), { status: response.status }) };
  }

  /** Doubles with each failure in a row; spread, so that clients do not all come back at once. */
  #delayMs(end) {
    if (end.is !== "sent_away" && end.is !== "gap") this.#failures += 1;
    const doubled = this.#retryMs * 2 ** Math.max(0, this.#failures - 1);
    return Math.min(retryMaxMs, doubled) * (0.5 + Math.random() / 2);
  }

  #pause(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
