/**
 * A call in protocol voice.v1, as a client: connects, speaks, and comes back on a new socket when
 * the link is lost. Knows neither the page nor the sound card.
 */

/** Close codes after which the call is still there (a 1006 is a link that broke). */
const resumableCodes = new Set([1006, 1012]);
const busyRetryMs = 2000;
const busyPatienceMs = 30_000;
const resumeRetryMs = 700;
const pingIntervalMs = 5000;
/** Unsent audio above this is dropped: late speech is worse than a gap. */
const unsentBytesMax = 64_000;
const hangUpPatienceMs = 3000;

/**
 * @typedef {object} CallListener
 * @property {(message: object) => void} message each message of the server, in order
 * @property {(audio: ArrayBuffer) => void} audio
 * @property {(message: object) => void} sent each message of ours
 * @property {(link: "connecting" | "busy" | "live" | "resuming") => void} link
 * @property {(end: {reason: string, explanation: string}) => void} ended once, last
 * @property {(rttMs: number) => void} roundTrip
 */
export class Call {
  /** @param {string} websocketUrl @param {CallListener} listener */
  constructor(websocketUrl, listener) {
    this.websocketUrl = websocketUrl;
    this.listener = listener;
    this.socket = undefined;
    this.resumption = undefined;
    this.lastSeq = 0;
    this.over = false;
    this.endReason = undefined;
    this.lostAtMs = undefined;
    this.startedAtMs = performance.now();
    this.timers = new Set();
  }

  connect() {
    this.listener.link("connecting");
    this.open(this.websocketUrl);
  }

  /** @param {object} message of the client; nothing is sent while the link is down */
  send(message) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    this.listener.sent(message);
    return true;
  }

  /** @param {ArrayBuffer} frame Int16 samples */
  sendAudio(frame) {
    if (this.socket?.readyState === WebSocket.OPEN && this.socket.bufferedAmount < unsentBytesMax) {
      this.socket.send(frame);
    }
  }

  hangUp() {
    // Whoever hung up is not to wait for a server that has nothing more to say.
    if (this.send({ type: "hang_up" })) this.later(hangUpPatienceMs, () => this.drop());
    else this.finish("client_hangup", "You hung up.");
  }

  /** Ends at once, without waiting for the server's goodbye: the page is being left. */
  drop() {
    this.socket?.close(1000);
    this.finish("client_hangup", "You hung up.");
  }

  open(url) {
    const socket = new WebSocket(url, ["voice.v1"]);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => {
      if (socket === this.socket) this.keepPinging(socket);
    };
    socket.onmessage = ({ data }) => {
      if (socket !== this.socket || this.over) return;
      if (typeof data === "string") this.take(JSON.parse(data));
      else this.listener.audio(data);
    };
    socket.onclose = ({ code, reason }) => {
      if (socket === this.socket && !this.over) this.closed(code, reason);
    };
  }

  take(message) {
    this.lastSeq = Math.max(this.lastSeq, message.seq ?? 0);
    if (message.type === "call_started") {
      this.resumption = message.resume;
      this.lostAtMs = undefined;
      this.listener.link("live");
    } else if (message.type === "pong") {
      this.listener.roundTrip(performance.now() - message.timestamp);
    } else if (message.type === "call_ended") {
      this.endReason = message.reason;
    }
    this.listener.message(message);
    // Nothing follows it, however long the connection takes to close.
    if (this.endReason) this.finish(this.endReason, endings[this.endReason] ?? "The call has ended.");
  }

  closed(code, reason) {
    if (!this.resumption) {
      void this.explainRefusal();
      return;
    }
    if (!resumableCodes.has(code)) {
      return this.finish(reason || "closed", closings[code] ?? `The connection was closed (${code}).`);
    }
    this.lostAtMs ??= performance.now();
    void this.learnWhetherOver();
    const leftMs = this.resumption.window_s * 1000 - (performance.now() - this.lostAtMs);
    if (leftMs <= 0) return this.finish("error", "The connection was lost and could not be brought back in time.");
    this.listener.link("resuming");
    const url = new URL(this.resumption.url);
    url.searchParams.set("last_seq", String(this.lastSeq));
    this.later(resumeRetryMs, () => this.open(url.href));
  }

  /** Some servers cut a call that broke the protocol without a close frame: that looks like a lost link, but is over. */
  async learnWhetherOver() {
    const state = await this.reservationState();
    if (state === "ended") this.finish("error", "The server ended the call.");
  }

  /** A refused upgrade shows as 1006 and nothing else, so the reservation itself is asked. */
  async explainRefusal() {
    const state = await this.reservationState();
    if (this.over) return;
    const waited = performance.now() - this.startedAtMs;
    if (state === "reserved" && waited < busyPatienceMs) {
      this.listener.link("busy");
      this.later(busyRetryMs, () => this.open(this.websocketUrl));
      return;
    }
    this.finish("refused", refusals[state] ?? "The server could not be reached.");
  }

  /** State of the call as a GET without Upgrade tells it, or the code of a refusal; undefined when nobody answers. */
  async reservationState() {
    const answer = await fetch(this.websocketUrl.replace(/^ws/, "http"))
      .then((response) => response.json())
      .catch(() => undefined);
    return answer?.state ?? answer?.code;
  }

  keepPinging(socket) {
    this.later(pingIntervalMs, () => {
      if (socket !== this.socket || socket.readyState !== WebSocket.OPEN) return;
      socket.send(JSON.stringify({ type: "ping", timestamp: performance.now() }));
      this.keepPinging(socket);
    });
  }

  finish(reason, explanation) {
    if (this.over) return;
    this.over = true;
    for (const timer of this.timers) clearTimeout(timer);
    this.socket?.close(1000);
    this.listener.ended({ reason, explanation });
  }

  later(delayMs, action) {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      if (!this.over) action();
    }, delayMs);
    this.timers.add(timer);
  }
}

/** The reasons of `call_ended`, in words. */
export const endings = {
  client_hangup: "You hung up.",
  agent_hangup: "The agent hung up.",
  transferred: "The call was transferred.",
  max_duration: "The call reached its longest duration.",
  idle_timeout: "Nobody spoke for a while, so the call ended.",
  error: "The call ended because of an error.",
  drained: "The server is shutting down.",
  superseded: "The call goes on somewhere else.",
};

const closings = {
  1008: "The server ended the call: too many messages that it could not accept.",
  1011: "The server met an error.",
  4009: "The call goes on in another window.",
  4014: "This connection was too slow for the call.",
  4015: "More audio was sent than the call can take.",
};

const refusals = {
  reserved: "All lines stayed busy. Please try again in a moment.",
  in_progress: "This call was answered somewhere else.",
  ended: "This call is over.",
  expired: "The reservation ran out. Start the call again.",
  consumed: "This call was answered somewhere else.",
  not_found: "The server does not know this call.",
  unavailable: "The server is not ready yet. Please try again in a moment.",
};
