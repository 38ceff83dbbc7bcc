/**
 * How much of the agent's sound the client has taken. While sound leaves, pings carry its offset, and
 * the client's WebSocket stack returns them behind that sound (RFC 6455, 5.5.2 and 5.5.3): a pong tells
 * that all before it was read. Nobody else can tell: what the kernel took for a client that reads nothing
 * counts as sent. A client that never answers is not judged. Pure but for its own notes.
 */

/** While sound leaves, its offset is asked for this often. */
const pingEveryMs = 500;
/** Who answered promptly before and lets a ping wait for so long reads no more: with the interval, noticed within 2 s. */
const stalledAfterMs = 1500;
/** So many answers in a row within `promptMs` make a client one that answers promptly. */
const promptAnswers = 3;
const promptMs = 1000;
/** An answer that is missing for so long will not come. Pongs have been seen 8 to 30 s late. */
export const unansweredMsMax = 30_000;
/** Pings that wait for their answers; a client may answer the newest alone. */
const waitingMax = 128;

export class Delivery {
  #waiting: { payload: string; offsetMs: number; atMs: number }[] = [];
  #pingedMs = 0;
  #pingedAtMs: number | undefined;
  #takenMsOrNone: number | undefined;
  #promptInRow = 0;

  /** Offset up to which the client has taken the sound; undefined for one that has answered no ping. */
  get takenMs(): number | undefined {
    return this.#takenMsOrNone;
  }

  /** Whether `due` or `isStalled` are to be asked regularly. */
  isWatching(sentMs: number): boolean {
    return this.#waiting.length > 0 || sentMs > this.#pingedMs;
  }

  /** A new link: its first ping asks whether its pings are answered at all. @returns what it is to carry */
  begin(nowMs: number, sentMs: number): string {
    this.#waiting = [];
    this.#promptInRow = 0;
    return this.#ping(nowMs, sentMs);
  }

  /** What a ping is to carry now, if one is due: `sentMs` of sound have left, the last of it just now where `isMarked`. */
  due(nowMs: number, sentMs: number, isMarked: boolean): string | undefined {
    if (this.#pingedAtMs === undefined || sentMs <= this.#pingedMs) return undefined;
    if (!isMarked && nowMs - this.#pingedAtMs < pingEveryMs) return undefined;
    return this.#ping(nowMs, sentMs);
  }

  #ping(nowMs: number, sentMs: number): string {
    const payload = `a:${Math.round(sentMs)}`;
    this.#waiting.push({ payload, offsetMs: sentMs, atMs: nowMs });
    // The oldest tells since when nothing was answered: the second oldest goes.
    if (this.#waiting.length > waitingMax) this.#waiting.splice(1, 1);
    this.#pingedMs = sentMs;
    this.#pingedAtMs = nowMs;
    return payload;
  }

  /** @returns whether the client is known to have taken more than before */
  pong(nowMs: number, payload: string): boolean {
    const at = this.#waiting.findLastIndex((ping) => ping.payload === payload);
    const answered = this.#waiting[at];
    if (!answered) return false;
    this.#waiting = this.#waiting.slice(at + 1);
    this.#promptInRow = nowMs - answered.atMs <= promptMs ? this.#promptInRow + 1 : 0;
    if (answered.offsetMs <= (this.#takenMsOrNone ?? -1)) return false;
    this.#takenMsOrNone = answered.offsetMs;
    return true;
  }

  /** For how long the oldest ping has waited for its answer. */
  #unansweredMs(nowMs: number): number {
    const oldest = this.#waiting[0];
    return oldest ? nowMs - oldest.atMs : 0;
  }

  /** The client, who used to answer promptly, takes nothing any more. */
  isStalled(nowMs: number): boolean {
    return this.#promptInRow >= promptAnswers && this.#unansweredMs(nowMs) >= stalledAfterMs;
  }

  /** A client that has answered before does not any more. */
  isGivenUp(nowMs: number): boolean {
    return this.#takenMsOrNone !== undefined && this.#unansweredMs(nowMs) >= unansweredMsMax;
  }
}
