/**
 * Who speaks, carried out. Each input of the call becomes an event; `turns.ts` decides; each effect is
 * done here, in order, one event after the other.
 */
import type { CallFailure } from "#contracts/call_record.ts";
import type { EndReason } from "#contracts/voice_protocol.ts";
import type { Answers } from "../answering/answers.ts";
import type { CallerAudio } from "../hearing/caller_audio.ts";
import type { AgentSpeech } from "../speaking/agent_speech.ts";
import { type CallerTurns, turnId } from "./caller_turns.ts";
import type { Notices } from "./notices.ts";
import { tenths } from "./turn_timing.ts";
import { decide, type Effect, type Job, shownState, type TurnEvent, type TurnState } from "./turns.ts";

/** The parts of a session that effects are carried out on. */
export interface FloorParts {
  caller: CallerAudio;
  callerTurns: CallerTurns;
  speech: AgentSpeech;
  answers: Answers;
  notices: Notices;
  nowMs(): number;
  /** Has the caller handed on; `onFailed` when that cannot be done. */
  handOver(onFailed: () => void): void;
  end(reason: EndReason, errorCode?: CallFailure): void;
  onFault(cause: unknown): void;
}

export class Floor {
  readonly #parts: FloorParts;
  #turns: TurnState;
  #shown = "initializing";
  #events: TurnEvent[] = [];
  #isDispatching = false;
  #isOpen = false;
  #isClosed = false;
  /** Arrival of the input that is being processed. */
  arrivedAtMs: number;

  constructor(turns: TurnState, parts: FloorParts) {
    this.#turns = turns;
    this.#parts = parts;
    this.arrivedAtMs = turns.startedMs;
  }

  /** The client is told of states from now on. */
  open(): void {
    this.#isOpen = true;
    this.#parts.notices.send({ type: "state", state: "initializing" });
  }

  /** No event is decided on any more. */
  close(): void {
    this.#isClosed = true;
    this.#parts.answers.forgetAhead();
  }

  /** One event after the other, also those that an effect causes. */
  dispatch(event: TurnEvent): void {
    this.#events.push(event);
    if (this.#isDispatching) return;
    this.#isDispatching = true;
    for (let next = this.#events.shift(); next && !this.#isClosed; next = this.#events.shift()) {
      const decision = decide(this.#turns, next, this.#parts.nowMs());
      this.#turns = decision.state;
      for (const effect of decision.effects) if (!this.#isClosed) this.#carryOut(effect);
      if (!this.#isClosed) this.showState();
    }
    this.#isDispatching = false;
  }

  /** Tells the client the state where it changed. */
  showState(): void {
    if (!this.#isOpen) return;
    const { state, turn } = shownState(this.#turns);
    if (this.#shown === state) return;
    this.#shown = state;
    this.#parts.notices.send({ type: "state", state, ...(turn !== undefined && { turn_id: turnId(turn) }) });
  }

  #carryOut(effect: Effect): void {
    const { caller, speech, notices } = this.#parts;
    const nowMs = this.#parts.nowMs();
    switch (effect.do) {
      case "user_speech_started":
        this.#userSpeechBegins(effect, speech.isAsking(nowMs));
        return;
      case "barge_in": {
        const isAsked = speech.isAsking(nowMs);
        speech.stop("user_speech", true, () => this.#userSpeechBegins(effect, isAsked), nowMs);
        return;
      }
      case "user_speech_stopped":
        notices.send({ type: "user_speech_stopped", turn_id: turnId(effect.turn), audio_ms: tenths(effect.audioMs) });
        return;
      case "ask_ahead": {
        const { answers, callerTurns } = this.#parts;
        answers.askAhead(effect.turn, callerTurns.newestWords);
        return;
      }
      case "forget_ahead":
        this.#parts.answers.forgetAhead();
        return;
      case "recognize":
        this.#recognize(effect);
        return;
      case "forget_speech":
        caller.forgetSpeech();
        return;
      case "go_on":
        speech.goOn(nowMs);
        return;
      case "discard":
        speech.discard(nowMs);
        return;
      case "cut":
        speech.stop(effect.reason, false, () => {}, nowMs);
        return;
      case "clear_nothing":
        if (speech.lastUtteranceId) {
          notices.send({ type: "clear", utterance_id: speech.lastUtteranceId, reason: effect.reason });
        }
        return;
      case "begin":
        this.#begin(effect.job);
        return;
      case "refuse":
        notices.warn(effect.code, effect.message);
        return;
      case "hand_over":
        this.#parts.handOver(() => this.dispatch({ type: "hand_over_failed" }));
        return;
      case "end":
        this.#parts.end(effect.reason, effect.errorCode);
        return;
    }
  }

  #begin(job: Job): void {
    const { answers, speech } = this.#parts;
    speech.play(job.is === "reply" ? answers.toTurn(job) : answers.ofText(job, this.#turns.turns));
  }

  #userSpeechBegins({ turn, audioMs }: { turn: number; audioMs: number }, isAsked: boolean): void {
    this.#parts.callerTurns.speechBegins(turn, audioMs, this.#callerIsOver() ? { isAsked } : undefined);
    this.#parts.caller.confirmSpeech();
  }

  #callerIsOver(): boolean {
    const { caller } = this.#turns;
    return caller.is === "speaking" && caller.over;
  }

  #recognize({ turn, startMs, endMs, waitedMs }: Extract<Effect, { do: "recognize" }>): void {
    const { caller, callerTurns, onFault } = this.#parts;
    const { tail, ...audio } = caller.takeUtterance(endMs);
    const spoken = { turn, audio, tail, speechMs: endMs - startMs, waitedMs, endedAtMs: this.arrivedAtMs };
    callerTurns.recognize(spoken).catch(onFault);
  }
}
