/** When a link is to be pinged and when it is dead. Pongs have been seen 8 to 30 s late, hence 60 s. */
import { voiceLimits } from "#contracts/voice_protocol.ts";

export class LinkKeepalive {
  #pingedAtMs = 0;
  /** When the last frame came in. */
  frameAtMs = 0;

  start(nowMs: number): void {
    this.#pingedAtMs = nowMs;
    this.frameAtMs = nowMs;
  }

  frame(nowMs: number): void {
    this.frameAtMs = nowMs;
  }

  due(nowMs: number): "ping" | "dead" | undefined {
    if (nowMs - this.frameAtMs >= voiceLimits.deadLinkS * 1000) return "dead";
    if (nowMs - this.#pingedAtMs < voiceLimits.pingIntervalS * 1000) return undefined;
    this.#pingedAtMs = nowMs;
    return "ping";
  }
}
