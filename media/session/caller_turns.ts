/** The caller's words: recognition of what was spoken, and the transcript of it and of what was typed. */

import type { Pcm, SpeechToText, SttResult, Utterance } from "#providers/provider.ts";
import { underOwnSignal, within } from "../answering/stage_limits.ts";
import type { Scheduler } from "../threads/scheduler.ts";
import { type Backchannels, backchannelMsMax } from "./backchannel.ts";
import type { CallLog } from "./call_log.ts";
import { type EndingWords, endingOf } from "./endpointing.ts";
import type { Notices } from "./notices.ts";
import { TurnTiming, tenths } from "./turn_timing.ts";
import type { TurnEvent } from "./turns.ts";

/** What `CallerTurns` needs of its session. */
export interface CallerTurnsHost {
  /** How long the recognizer may take for its final words. */
  readonly sttLimitMs: number;
  readonly backchannels: Backchannels;
  readonly endings: EndingWords;
  /** Milliseconds since the call began. */
  callMs(nowMs: number): number;
  nextItemId(): string;
  dispatch(event: TurnEvent): void;
  /** The recognizer says that the caller has finished. */
  turnEnded(): void;
}

/** The agent was speaking or thinking when the caller began to speak; `isAsked`: it had just asked something. */
export interface SpokenOver {
  isAsked: boolean;
}

/** A spoken turn as it ended. */
export interface SpokenTurn {
  turn: number;
  audio: Pcm;
  /** What came after it until it was taken for over. */
  tail: Int16Array;
  /** Its length without the prefix, and the silence that was waited for. */
  speechMs: number;
  waitedMs: number;
  /** When the frame arrived that completed the wait. */
  endedAtMs: number;
}

export function turnId(turn: number): string {
  return `turn_${turn}`;
}

export class CallerTurns {
  #stt: SpeechToText | undefined;
  readonly #scheduler: Scheduler;
  readonly #host: CallerTurnsHost;
  readonly #notices: Notices;
  readonly #log: CallLog;
  readonly #abort = new AbortController();
  /** Of turns that are spoken but not answered. */
  readonly #unanswered = new Map<number, { timing: TurnTiming; audio: Pcm }>();
  /** Of the newest partial result. */
  newestWords = "";
  #item: { turn: number; itemId: string; over: SpokenOver | undefined } | undefined;
  #utterances = 0;

  constructor(
    stt: SpeechToText | undefined,
    scheduler: Scheduler,
    host: CallerTurnsHost,
    { notices, log }: { notices: Notices; log: CallLog },
  ) {
    this.#scheduler = scheduler;
    this.#host = host;
    this.#notices = notices;
    this.#log = log;
    if (stt) this.listenWith(stt);
  }

  /** The recognizer from now on. */
  listenWith(stt: SpeechToText): void {
    this.#stt = stt;
    stt.onPartial = (result) => this.#takePartial(result.text, result.language);
    stt.onTurnEnd = () => this.#host.turnEnded();
  }

  get recognizes(): boolean {
    return this.#stt !== undefined;
  }

  /** @param over the agent was speaking or thinking */
  speechBegins(turn: number, audioMs: number, over?: SpokenOver): void {
    this.#item = { turn, itemId: this.#host.nextItemId(), over };
    this.#notices.send({ type: "user_speech_started", turn_id: turnId(turn), audio_ms: tenths(audioMs) });
  }

  hears(pcm: Pcm): void {
    this.#stt?.write(pcm);
  }

  #takePartial(text: string, language: string | undefined): void {
    const item = this.#item;
    if (this.#abort.signal.aborted || !item || !text) return;
    const labels = { turn_id: turnId(item.turn), item_id: item.itemId, ...(language && { language }) };
    this.#notices.send({ type: "transcript", role: "user", ...labels, text, final: false });
    this.newestWords = text;
    const { backchannels } = this.#host;
    const listens = item.over !== undefined && backchannels.has(text, item.over.isAsked);
    const areFew = item.over !== undefined && backchannels.isTooFew(text, item.over.isAsked);
    this.#host.dispatch({ type: "words", listens, areFew, ending: endingOf(text, this.#host.endings) });
  }

  /** The words of a spoken turn, where a recognizer is set: `recognized` follows. */
  async recognize({ turn, audio, tail, speechMs, waitedMs, endedAtMs }: SpokenTurn): Promise<void> {
    const { itemId, over } = this.#item?.turn === turn ? this.#item : { itemId: this.#host.nextItemId() };
    this.#item = undefined;
    const timing = new TurnTiming(turnId(turn), endedAtMs, waitedMs);
    this.#unanswered.set(turn, { timing, audio });
    const endMs = this.#host.callMs(endedAtMs) - waitedMs;
    const at = { startMs: endMs - speechMs, endMs };
    if (!this.#stt) {
      this.#record(turn, itemId, "", at);
      this.#host.dispatch({ type: "recognized", turn, understood: true });
      return;
    }
    this.#log.count((usage) => {
      usage.stt_ms += speechMs;
    });
    const utterance = { ...audio, tail, index: this.#utterances, turnId: turnId(turn) };
    this.#utterances += 1;
    const result = await this.#finish(this.#stt, utterance);
    if (this.#abort.signal.aborted) return;
    if (!result) {
      this.#unanswered.delete(turn);
      this.#host.dispatch({ type: "recognized", turn, understood: false, failed: true });
      return;
    }
    timing.note("stt_final", this.#scheduler.nowMs());
    const text = result.text.trim();
    if (over && this.#isListeners(text, over, speechMs)) {
      this.#unanswered.delete(turn);
      this.#showListener(turn, itemId, text, at);
      this.#host.dispatch({ type: "recognized", turn, understood: false, listened: true });
      return;
    }
    if (text) {
      this.#show(turn, itemId, text, { ...at, language: result.language });
      this.#log.remember({ role: "user", text, audio });
    } else this.#unanswered.delete(turn);
    this.#host.dispatch({ type: "recognized", turn, understood: text !== "" });
  }

  #isListeners(text: string, { isAsked }: SpokenOver, speechMs: number): boolean {
    const { backchannels } = this.#host;
    return (speechMs <= backchannelMsMax && backchannels.has(text, isAsked)) || backchannels.isTooFew(text, isAsked);
  }

  #showListener(turn: number, itemId: string, text: string, at: { startMs: number; endMs: number }): void {
    const start_ms = tenths(Math.max(0, at.startMs));
    const end_ms = tenths(Math.max(0, at.endMs));
    this.#notices.send({ type: "user_backchannel", turn_id: turnId(turn), item_id: itemId, text, start_ms, end_ms });
    this.#record(turn, itemId, text, at, true);
  }

  /** The recognizer's final answer; undefined when it failed, which is reported. */
  async #finish(stt: SpeechToText, utterance: Utterance): Promise<SttResult | undefined> {
    const { signal } = this.#abort;
    let result: SttResult | undefined;
    try {
      await underOwnSignal(signal, async (own) => {
        result = await within(stt.finish(utterance, own), this.#host.sttLimitMs, own, this.#scheduler);
      });
    } catch (cause) {
      if (!signal.aborted) this.#notices.fail("stt", cause);
    }
    return result;
  }

  /** A spoken turn gets its answer: its timing. Older turns are answered with it. */
  takeSpoken(turn: number): TurnTiming {
    const spoken = this.#unanswered.get(turn);
    this.#unanswered.clear();
    if (!this.#stt && spoken) this.#log.remember({ role: "user", text: "", audio: spoken.audio });
    const timing = spoken?.timing ?? new TurnTiming(turnId(turn), this.#scheduler.nowMs(), 0);
    timing.note("floor", this.#scheduler.nowMs());
    return timing;
  }

  /** A typed turn gets its answer. */
  takeTyped(turn: number, text: string): TurnTiming {
    const nowMs = this.#scheduler.nowMs();
    const callMs = this.#host.callMs(nowMs);
    this.#unanswered.clear();
    this.#show(turn, this.#host.nextItemId(), text, { startMs: callMs, endMs: callMs });
    this.#log.remember({ role: "user", text });
    return new TurnTiming(turnId(turn), nowMs, 0);
  }

  #show(
    turn: number,
    itemId: string,
    text: string,
    at: { startMs: number; endMs: number; language?: string | undefined },
  ): void {
    this.#notices.send({
      type: "transcript",
      role: "user",
      turn_id: turnId(turn),
      item_id: itemId,
      text,
      final: true,
      ...(at.language && { language: at.language }),
      start_ms: tenths(Math.max(0, at.startMs)),
      end_ms: tenths(Math.max(0, at.endMs)),
    });
    this.#record(turn, itemId, text, at);
  }

  #record(
    turn: number,
    itemId: string,
    text: string,
    at: { startMs: number; endMs: number },
    backchannel = false,
  ): void {
    this.#log.item({
      item_id: itemId,
      turn_id: turnId(turn),
      role: "user",
      text,
      heard_text: text,
      interrupted: false,
      ...(backchannel && { backchannel }),
      start_ms: tenths(Math.max(0, at.startMs)),
      end_ms: tenths(Math.max(0, at.endMs)),
    });
    this.#log.flush();
  }

  close(): void {
    this.#abort.abort();
    this.#stt?.close();
  }
}
