/** A job of the agent under way: its answer, its text as it grows, and what the record keeps of it. */
import type { ModelStage } from "#contracts/voice_agent.ts";
import type { Answer } from "../answering/answer.ts";
import type { CallLog } from "../session/call_log.ts";
import type { Notices } from "../session/notices.ts";
import { type TurnTiming, tenths } from "../session/turn_timing.ts";
import type { HeardBasis } from "./playout.ts";
import { SpokenItem } from "./spoken_item.ts";

export class AgentJob {
  readonly answer: Answer;
  readonly #notices: Notices;
  readonly #log: CallLog;
  /** Until its figures were sent. */
  timing: TurnTiming | undefined;
  /** The answer has nothing more to give. */
  isGenerated = false;
  /** The agent hangs up with it. */
  leaves = false;
  readonly failedStages = new Set<ModelStage>();
  held = false;
  isUsingTools = false;
  /** The same, and nothing is heard meanwhile. */
  isWaitingForTools = false;
  /** Said while tools ran: for the caller, and nothing that the model has said. */
  readonly fillers: string[] = [];
  /** What a barge-in left unsaid, as long as it may be taken back. */
  rest: Int16Array[] | undefined;
  item: SpokenItem;

  constructor(answer: Answer, itemId: string, notices: Notices, log: CallLog) {
    this.answer = answer;
    this.#notices = notices;
    this.#log = log;
    this.timing = answer.plan.timing;
    this.item = new SpokenItem(answer.plan.turnId, itemId);
  }

  /** The model broke off, or no clause could be spoken: the caller is to be told. */
  get hasFailed(): boolean {
    return this.failedStages.has("llm") || (this.failedStages.has("tts") && !this.item.isAnnounced);
  }

  growText(delta: string, callMs: number): void {
    this.item.grow(delta, callMs);
    if (!this.held) this.#notices.send(this.item.show(delta));
  }

  /** The transcript in full, for the client. */
  finishText(): void {
    const transcript = this.item.finish();
    if (transcript) this.#notices.send(transcript);
  }

  begins(utteranceId: string): void {
    this.#notices.send({ type: "agent_speech_started", ...this.#labels(utteranceId) });
  }

  ends(utteranceId: string, audioMs: number, interrupted: boolean): void {
    this.#notices.send({
      type: "agent_speech_done",
      ...this.#labels(utteranceId),
      audio_ms: tenths(audioMs),
      interrupted,
    });
  }

  /** The utterance was cut after `playedMs`, when `heard` of its text was heard. */
  wasCut(utteranceId: string, playedMs: number, heard: string): void {
    // First the item in full: what was cut is read against it.
    this.finishText();
    this.#notices.send({
      type: "truncated",
      utterance_id: utteranceId,
      played_ms: tenths(playedMs),
      spoken_text: heard,
      full_text: this.item.text,
    });
    this.ends(utteranceId, playedMs, true);
  }

  #labels(utteranceId: string) {
    return { turn_id: this.answer.plan.turnId, utterance_id: utteranceId, source: this.answer.plan.source };
  }

  /** Keeps what was heard, in the model's history and in the record. */
  keep(heard: string, interrupted: boolean, callMs: number, basis?: HeardBasis): void {
    this.#log.remember({ role: "agent", text: this.#withoutFillers(heard) });
    const record = this.item.record(heard, interrupted, callMs);
    if (record) this.#log.item({ ...record, ...(basis && { heard_basis: basis }) });
  }

  #withoutFillers(heard: string): string {
    return this.fillers.reduce((text, filler) => text.replace(filler.trim(), ""), heard).trim();
  }

  /** Once for each answered turn; the record grows by what was said and by the figures. */
  sendMetrics(interrupted: boolean): void {
    if (this.timing) {
      const metrics = this.#log.turn(this.timing.metrics(interrupted));
      this.timing = undefined;
      this.#notices.send({ type: "turn_metrics", ...metrics });
    }
    this.#log.flush();
  }
}
