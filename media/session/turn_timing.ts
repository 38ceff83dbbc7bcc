/** Where the time of a turn went: moments of one answer, and the figures of `turn_metrics` made of them. Pure but for its own notes. */
import type { TurnMetrics } from "#contracts/call_record.ts";

export type Moment =
  | "stt_final"
  /** The agent took the floor: later than the words where it had to finish something first. */
  | "floor"
  | "llm_asked"
  | "llm_first"
  | "clause_first"
  | "tts_asked"
  | "tts_first"
  | "audio_out"
  | "playout";

export class TurnTiming {
  readonly turnId: string;
  /** When the turn was the agent's: the frame arrived that completed the end-of-speech wait, or the text did. */
  readonly endOfTurnMs: number;
  readonly eosWaitMs: number;
  readonly #moments = new Map<Moment, number>();
  toolMs: number | undefined;
  /** The answer was asked for before the turn was over. */
  preemptiveHit = false;

  constructor(turnId: string, endOfTurnMs: number, eosWaitMs: number) {
    this.turnId = turnId;
    this.endOfTurnMs = endOfTurnMs;
    this.eosWaitMs = eosWaitMs;
  }

  /** The first time counts. */
  note(moment: Moment, nowMs: number): void {
    if (!this.#moments.has(moment)) this.#moments.set(moment, nowMs);
  }

  #between(from: number | Moment, to: Moment): number {
    const start = typeof from === "number" ? from : this.#moments.get(from);
    const end = this.#moments.get(to);
    return start === undefined || end === undefined ? 0 : Math.max(0, end - start);
  }

  /** `gateway_ms` is the whole less the providers (recognition, the model up to its first clause, speech) and the wait for the floor. */
  metrics(interrupted: boolean): TurnMetrics {
    const sttMs = this.#between(this.endOfTurnMs, "stt_final");
    const ttsMs = this.#between("tts_asked", "tts_first");
    const wholeMs = this.#between(this.endOfTurnMs, "audio_out");
    const floorMs = this.#between(this.#moments.has("stt_final") ? "stt_final" : this.endOfTurnMs, "floor");
    const providersMs = sttMs + floorMs + this.#between("llm_asked", "clause_first") + ttsMs;
    const playout = this.#moments.has("playout") ? this.#between(this.endOfTurnMs, "playout") : undefined;
    return {
      turn_id: this.turnId,
      eos_wait_ms: tenths(this.eosWaitMs),
      stt_final_ms: tenths(sttMs),
      llm_ttft_ms: tenths(this.#between("llm_asked", "llm_first")),
      tts_ttfb_ms: tenths(ttsMs),
      gateway_ms: tenths(Math.max(0, wholeMs - providersMs)),
      end_of_turn_to_audio_ms: tenths(wholeMs),
      ...(playout !== undefined && { to_playout_ms: tenths(playout) }),
      interrupted,
      ...(this.toolMs !== undefined && { tool_ms: tenths(this.toolMs) }),
      preemptive_hit: this.preemptiveHit,
    };
  }
}

/** Milliseconds to a tenth. */
export function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
