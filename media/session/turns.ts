/**
 * Who has the floor: endpointing, turn-taking, barge-in and its recovery, queued speech, idle time
 * and the longest call, as one pure function. `decide(state, event, nowMs)` answers the next state
 * and what is to be done, in order; it reads no clock and does nothing itself.
 *
 *     caller   silent ── voice ──► starting ── long enough ──► speaking ── silence ≥ eos ──► silent + recognizing
 *     agent    silent ── job ──► thinking ── first audio ──► speaking ── played ──► silent
 *                                    └──── barge-in ────┴──► held ── words ──► silent (dropped)
 *                                                             └─── 2 s without words, or a listener's ──► as before (goes on)
 */
import type { CallFailure } from "#contracts/call_record.ts";
import type { EndReason, ServerMessageOf } from "#contracts/voice_protocol.ts";
import type { Words } from "../words/words.ts";
import { type Ending, silenceFor } from "./endpointing.ts";

/** Speech over the agent that counts as barge-in, and where the caller's device cancels no echo. */
export const minInterruptMs = 150;
export const minInterruptWithEchoMs = 500;
/** The recognizer's last words may be away for so long before the caller hears something. */
const recognitionQuietMs = 1500;
/** A barge-in without words for this long was none: the agent goes on. */
export const falseInterruptionMs = 2000;
/** Silence that ends what a listener said over the agent: it wants to go on soon. */
export const listenerSilenceMs = 200;
/** Digits become a turn after this pause, or at `#`. */
export const digitPauseMs = 1500;
/** `later` waits until nobody has spoken for this long. */
export const laterAfterQuietMs = 1000;
/** The answer is asked for ahead after this part of the silence that ends the turn, so often at most … */
const aheadAfter = 0.5;
export const aheadTriesMax = 3;
/** … and only while there is not much to be answered: who speaks long mostly goes on. */
export const aheadSpeechMsMax = 10_000;
/** Longest utterance; a caller who speaks on is answered as if a turn had ended here. */
export const utteranceMsMax = 60_000;
/** Queued speech and typed turns; a newcomer beyond this is refused. */
export const queueMax = 32;
export const digitsMax = 64;
/** Answers in a row that fail: with the last of them the call is handed on, or ends. */
export const failuresMax = 3;
/** Who cannot be handed on within this time is told farewell. */
export const handOverMsMax = 30_000;

export interface TurnSettings {
  /** Silence that ends a turn. */
  eosSilenceMs: number;
  /** The words so far shorten or lengthen it. */
  heedsEndings: boolean;
  /** The answer is asked for before the turn is over. */
  asksAhead: boolean;
  allowInterruptions: boolean;
  /** 0 turns it off. */
  idleTimeoutMs: number;
  maxDurationMs: number;
  /** What the agent says of itself. */
  words: Pick<Words, "apology" | "farewell" | "filler" | "handOver" | "stillThere">;
  /** There is somebody whom a caller can be handed on to. */
  canHandOver: boolean;
}

/** How a turn reached the agent, with its words where it was not spoken. */
export type TurnInput = { kind: "speech" } | { kind: "text" | "dtmf"; text: string } | { kind: "task" };

/** What the agent does with the floor. */
export type Job =
  | { is: "reply"; turn: number; input: TurnInput; interruptible: boolean }
  | { is: "say"; text: string; source: "welcome" | "say" | "filler" | "apology"; interruptible: boolean };

export type CallerState =
  | { is: "silent" }
  | { is: "starting"; startMs: number }
  /** `over`: the agent was speaking or thinking when it began. `listens`: so far it is a listener's; `ending`: of the words so far. */
  | {
      is: "speaking";
      turn: number;
      startMs: number;
      over: boolean;
      listens: boolean;
      ending?: Ending | undefined;
      ahead?: Ahead;
    };

/** `words`: there are words that nothing was asked about; `asked`: their answer is being made. */
interface Ahead {
  is: "words" | "asked";
  tries: number;
}

export type AgentState =
  | { is: "silent" }
  | { is: "thinking"; job: Job }
  | { is: "speaking"; job: Job }
  | { is: "held"; job: Job; sinceMs: number; was: "thinking" | "speaking" };

export interface TurnState {
  readonly settings: TurnSettings;
  readonly minInterruptMs: number;
  readonly caller: CallerState;
  readonly agent: AgentState;
  /** Turns whose words are awaited from the recognizer. */
  readonly recognizing: readonly number[];
  /** The newest turn whose recognition took so long that the agent asked for patience. */
  readonly filledTurn: number | undefined;
  /** Turn that was understood but not answered, because the caller had gone on to speak. */
  readonly owed: number | undefined;
  readonly queue: readonly { job: Job; when: "soon" | "later" }[];
  /** Number of the newest turn; the first one is 1. */
  readonly turns: number;
  readonly digits: { text: string; lastMs: number };
  readonly startedMs: number;
  /** Since when nobody has spoken, typed or thought. */
  readonly quietSinceMs: number;
  /** The idle prompt was given since the caller was last heard. */
  readonly prompted: boolean;
  readonly pausedSinceMs: number | undefined;
  /** The agent is silent because its tools run. */
  readonly waitsForTools: boolean;
  /** Tools that go on by themselves: nobody is idle meanwhile. */
  readonly tasks: number;
  /** Set when the call ends as soon as the agent has finished. */
  readonly ending: EndReason | undefined;
  /** Since when the client has been asked to hand the caller on. */
  readonly handingOverSinceMs: number | undefined;
  /** Answers that failed since the last one that did not. */
  readonly failures: number;
  /** The agent has said its farewell: it hangs up unless the caller turns out to have gone on. */
  readonly leaving: boolean;
}

export type TurnEvent =
  /** One window of input while speech is detected; offsets in the input audio, and the speech without its pauses. */
  | { type: "voice"; startMs: number; endMs: number; speechMs: number; silenceMs: number }
  /** The recognizer says that the caller has finished; the newest speech, and the silence since. */
  | { type: "turn_end"; endMs: number; silenceMs: number }
  /** A partial result with words in it; `listens`: so far they are a listener's, who does not want the floor; `areFew`: too few to take it. */
  | { type: "words"; listens: boolean; areFew?: boolean; ending?: Ending | undefined }
  /** The recognizer's answer to `recognize`: whether it understood anything, heard a mere listener (`listened`), or failed. */
  | { type: "recognized"; turn: number; understood: boolean; listened?: boolean; failed?: boolean }
  | { type: "typed"; text: string; urgency: "immediate" | "soon" | "later" }
  | { type: "digit"; digit: string }
  | { type: "say"; text: string; behavior: "default" | "queue" | "interrupt"; interruptible: boolean }
  | { type: "welcome"; text: string }
  | { type: "interrupt" }
  | { type: "activity" }
  | { type: "hang_up"; message: string | undefined }
  /** The call is to end, after a farewell. */
  | { type: "leave"; reason: EndReason }
  | { type: "echo_cancellation"; present: boolean }
  /** The job's first audio left. */
  | { type: "agent_speaking" }
  /** The job is over: heard to its end, failed, or without a sound. `leaves`: the agent hangs up with it. `failed`: the caller got no whole answer. */
  | { type: "agent_done"; leaves: boolean; failed?: boolean }
  /** Nothing is heard because the job's tools run, or that is over. */
  | { type: "tool_wait"; waiting: boolean }
  /** So many tools go on by themselves. */
  | { type: "tasks"; running: number }
  /** How far one of them has come. */
  | { type: "task_progress"; text: string }
  /** One of them has ended, and the caller is to hear of it. */
  | { type: "task_over" }
  /** The client could not hand the caller on. */
  | { type: "hand_over_failed" }
  | { type: "paused" }
  | { type: "resumed" }
  | { type: "tick" };

export type ClearReason = ServerMessageOf<"clear">["reason"];

export type Effect =
  /** The caller began to speak while the agent was silent. */
  | { do: "user_speech_started"; turn: number; audioMs: number }
  /** The caller spoke over the agent: stop, `clear`, `user_speech_started`, `truncated`; keep the rest. */
  | { do: "barge_in"; turn: number; audioMs: number }
  | { do: "user_speech_stopped"; turn: number; audioMs: number }
  /** The words so far may be all: ask the model what it answers to them. */
  | { do: "ask_ahead"; turn: number }
  /** It is not wanted: the caller went on, or there is nothing to answer. */
  | { do: "forget_ahead" }
  | { do: "recognize"; turn: number; startMs: number; endMs: number; waitedMs: number }
  /** What was heard was too short to be speech: drop its recording. */
  | { do: "forget_speech" }
  /** Go on from where a barge-in cut. */
  | { do: "go_on" }
  /** Drop the job that is held or has not been heard yet. */
  | { do: "discard" }
  /** Stop the utterance in the air, for good. */
  | { do: "cut"; reason: ClearReason }
  /** Answer an `interrupt` that found nothing to stop. */
  | { do: "clear_nothing"; reason: ClearReason }
  | { do: "begin"; job: Job }
  | { do: "refuse"; code: "say_refused" | "queue_full"; message: string }
  /** The client hands the caller on: that ends the call, or `hand_over_failed` follows. */
  | { do: "hand_over" }
  | { do: "end"; reason: EndReason; errorCode?: CallFailure };

export interface Decision {
  state: TurnState;
  effects: readonly Effect[];
}

export function initialTurnState(settings: TurnSettings, nowMs: number): TurnState {
  return {
    settings,
    minInterruptMs,
    caller: { is: "silent" },
    agent: { is: "silent" },
    recognizing: [],
    filledTurn: undefined,
    owed: undefined,
    queue: [],
    turns: 0,
    digits: { text: "", lastMs: 0 },
    startedMs: nowMs,
    quietSinceMs: nowMs,
    prompted: false,
    pausedSinceMs: undefined,
    waitsForTools: false,
    tasks: 0,
    ending: undefined,
    handingOverSinceMs: undefined,
    failures: 0,
    leaving: false,
  };
}

export interface ShownState {
  state: "initializing" | "listening" | "thinking" | "tool" | "speaking";
  turn: number | undefined;
}

/** What the client is told. A welcome or a `say` that has no audio yet is not thinking. */
export function shownState(state: TurnState): ShownState {
  const { agent, recognizing } = state;
  if (agent.is === "thinking" && agent.job.is === "say" && agent.job.source === "welcome")
    return { state: "initializing", turn: undefined };
  if (state.waitsForTools && (agent.is === "thinking" || agent.is === "speaking")) {
    return { state: "tool", turn: turnOf(agent.job) };
  }
  if (agent.is === "speaking") return { state: "speaking", turn: turnOf(agent.job) };
  if (agent.is === "thinking" && agent.job.is === "reply") return { state: "thinking", turn: agent.job.turn };
  if (recognizing.length > 0) return { state: "thinking", turn: recognizing.at(-1) };
  return { state: "listening", turn: undefined };
}

function turnOf(job: Job): number | undefined {
  return job.is === "reply" ? job.turn : undefined;
}

/** The one decision function. `nowMs` never goes back. */
export function decide(state: TurnState, event: TurnEvent, nowMs: number): Decision {
  if (state.ending) return decideWhileEnding(state, event, nowMs);
  const step = new Step(state, nowMs);
  react(step, event);
  takeTheFloor(step);
  return { state: step.state, effects: step.effects };
}

/** The state as it grows during one decision, and the effects so far. */
class Step {
  state: TurnState;
  readonly effects: Effect[] = [];
  readonly nowMs: number;

  constructor(state: TurnState, nowMs: number) {
    this.state = state;
    this.nowMs = nowMs;
  }

  set(change: Partial<TurnState>): void {
    this.state = { ...this.state, ...change };
  }

  add(effect: Effect): void {
    this.effects.push(effect);
  }

  /** The caller did something: idle time begins anew. */
  active(): void {
    this.set({ quietSinceMs: this.nowMs, prompted: false });
  }

  begin(job: Job): void {
    this.set({ agent: { is: "thinking", job }, owed: undefined, leaving: false, waitsForTools: false });
    this.add({ do: "begin", job });
  }

  /** Takes the floor from the agent for good. */
  dropAgent(reason: ClearReason): void {
    const { agent } = this.state;
    if (agent.is === "silent") return;
    this.add(agent.is === "speaking" ? { do: "cut", reason } : { do: "discard" });
    this.set({ agent: { is: "silent" } });
  }

  enqueue(job: Job, when: "soon" | "later"): void {
    if (this.state.queue.length >= queueMax) {
      this.add({ do: "refuse", code: "queue_full", message: `Expected at most ${queueMax} waiting messages` });
      return;
    }
    this.set({ queue: [...this.state.queue, { job, when }] });
  }

  /** A new turn of the caller, answered by `reply`. */
  newTurn(): number {
    this.set({ turns: this.state.turns + 1 });
    return this.state.turns;
  }
}

function react(step: Step, event: TurnEvent): void {
  const { state, nowMs } = step;
  switch (event.type) {
    case "voice":
      hearVoice(step, event);
      return;
    case "turn_end":
      if (state.caller.is === "speaking") endTurn(step, state.caller, event);
      return;
    case "words":
      step.active();
      if (state.caller.is === "speaking") takeWords(step, state.caller, event);
      if (state.agent.is === "held" && !event.listens && !event.areFew) step.dropAgent("user_speech");
      return;
    case "recognized":
      takeRecognized(step, event);
      return;
    case "typed":
      step.active();
      takeTyped(step, { kind: "text", text: event.text }, event.urgency);
      return;
    case "digit":
      takeDigit(step, event.digit);
      return;
    case "say":
      takeSay(step, event);
      return;
    case "welcome":
      step.begin({ is: "say", text: event.text, source: "welcome", interruptible: true });
      return;
    case "interrupt":
      step.active();
      if (state.agent.is !== "speaking") step.add({ do: "clear_nothing", reason: "client_interrupt" });
      step.dropAgent("client_interrupt");
      step.set({ queue: state.queue.filter(({ job }) => job.is === "reply") });
      return;
    case "activity":
      step.active();
      return;
    case "hang_up":
      hangUp(step, event.message);
      return;
    case "leave":
      sayAndLeave(step, state.settings.words.farewell, event.reason);
      return;
    case "echo_cancellation":
      step.set({ minInterruptMs: event.present ? minInterruptMs : minInterruptWithEchoMs });
      return;
    case "agent_speaking":
      if (state.agent.is === "thinking") step.set({ agent: { is: "speaking", job: state.agent.job } });
      return;
    case "agent_done":
      finishJob(step, event);
      return;
    case "tool_wait":
      step.set({ waitsForTools: event.waiting });
      return;
    case "tasks":
      step.set({ tasks: event.running, quietSinceMs: nowMs });
      return;
    case "task_progress":
      // What comes while somebody speaks is old when that is over.
      if (floorIsFree(state)) step.begin({ is: "say", text: event.text, source: "filler", interruptible: true });
      return;
    case "task_over":
      // One answer tells of all that have ended by then.
      if (!state.queue.some(({ job }) => job.is === "reply" && job.input.kind === "task"))
        takeTyped(step, { kind: "task" }, "later");
      return;
    case "hand_over_failed":
      return;
    case "paused":
      if (state.pausedSinceMs === undefined) step.set({ pausedSinceMs: nowMs });
      return;
    case "resumed":
      resumeClocks(step);
      return;
    case "tick":
      tick(step);
      return;
  }
}

/** Speech of the caller, window by window: onset, barge-in, end of turn. */
function hearVoice(step: Step, voice: Extract<TurnEvent, { type: "voice" }>): void {
  const { caller, agent, recognizing, settings } = step.state;
  const waitMs = silenceThatEnds(caller, settings);
  const over = voice.silenceMs >= waitMs || voice.endMs - voice.startMs >= utteranceMsMax;

  if (caller.is === "speaking") {
    step.active();
    if (over) endTurn(step, caller, voice);
    else if (voice.silenceMs >= waitMs * aheadAfter) askAhead(step, caller, voice.endMs - voice.startMs);
    return;
  }

  const busy = agent.is === "thinking" || agent.is === "speaking" || recognizing.length > 0;
  if (busy && voice.speechMs < step.state.minInterruptMs) {
    step.set({ caller: over ? { is: "silent" } : { is: "starting", startMs: voice.startMs } });
    if (over) step.add({ do: "forget_speech" });
    return;
  }
  step.active();
  const turn = step.newTurn();
  step.set({ caller: { is: "speaking", turn, startMs: voice.startMs, over: agent.is !== "silent", listens: false } });
  if ((agent.is === "thinking" || agent.is === "speaking") && mayInterrupt(step.state, agent.job)) {
    step.set({ agent: { is: "held", job: agent.job, sinceMs: step.nowMs, was: agent.is } });
    step.add({ do: "barge_in", turn, audioMs: voice.startMs });
  } else {
    step.add({ do: "user_speech_started", turn, audioMs: voice.startMs });
  }
}

function takeWords(
  step: Step,
  caller: Extract<CallerState, { is: "speaking" }>,
  { listens, ending }: Extract<TurnEvent, { type: "words" }>,
): void {
  const tries = caller.ahead?.tries ?? 0;
  if (caller.ahead?.is === "asked") step.add({ do: "forget_ahead" });
  step.set({ caller: { ...caller, listens, ending, ahead: { is: "words", tries } } });
}

function askAhead(step: Step, caller: Extract<CallerState, { is: "speaking" }>, speechMs: number): void {
  const { settings, agent, recognizing, owed, queue } = step.state;
  const { turn, listens, ahead } = caller;
  if (!settings.asksAhead || listens || ahead?.is !== "words" || ahead.tries >= aheadTriesMax) return;
  const isNext = agent.is === "silent" && recognizing.length === 0 && owed === undefined && queue.length === 0;
  if (!isNext || speechMs > aheadSpeechMsMax) return;
  step.set({ caller: { ...caller, ahead: { is: "asked", tries: ahead.tries + 1 } } });
  step.add({ do: "ask_ahead", turn });
}

function silenceThatEnds(caller: CallerState, { eosSilenceMs, heedsEndings }: TurnSettings): number {
  if (caller.is !== "speaking") return eosSilenceMs;
  if (caller.listens) return Math.min(listenerSilenceMs, eosSilenceMs);
  return heedsEndings ? silenceFor(caller.ending, eosSilenceMs) : eosSilenceMs;
}

/** The caller's words are complete: they are recognized. */
function endTurn(
  step: Step,
  { turn, startMs }: Extract<CallerState, { is: "speaking" }>,
  { endMs, silenceMs }: { endMs: number; silenceMs: number },
): void {
  step.set({ caller: { is: "silent" }, recognizing: [...step.state.recognizing, turn] });
  step.add({ do: "user_speech_stopped", turn, audioMs: endMs });
  step.add({ do: "recognize", turn, startMs, endMs, waitedMs: silenceMs });
}

function mayInterrupt(state: TurnState, job: Job): boolean {
  return state.settings.allowInterruptions && job.interruptible;
}

function takeRecognized(
  step: Step,
  { turn, understood, listened, failed }: Extract<TurnEvent, { type: "recognized" }>,
): void {
  const { state } = step;
  if (!state.recognizing.includes(turn)) return;
  step.set({ recognizing: state.recognizing.filter((other) => other !== turn), quietSinceMs: step.nowMs });
  if (failed) failAnswer(step);
  if (listened) goOnAfterListener(step);
  if (!understood && state.settings.asksAhead) step.add({ do: "forget_ahead" });
  if (!understood) return;
  step.active();
  if (state.agent.is === "held") step.dropAgent("user_speech");
  if (step.state.agent.is !== "silent") {
    step.enqueue(replyTo(turn, { kind: "speech" }), "soon");
    return;
  }
  step.set({ owed: turn });
}

/** "Mm-hm" was no interruption: the agent goes on at once. */
function goOnAfterListener(step: Step): void {
  const { agent, caller, recognizing } = step.state;
  if (agent.is !== "held" || caller.is === "speaking" || recognizing.length > 0) return;
  step.set({ agent: { is: agent.was, job: agent.job } });
  step.add({ do: "go_on" });
}

function replyTo(turn: number, input: TurnInput): Job {
  return { is: "reply", turn, input, interruptible: true };
}

function takeTyped(step: Step, input: TurnInput, urgency: "immediate" | "soon" | "later"): void {
  const job = replyTo(step.newTurn(), input);
  // Who types has something to say: whatever was held back by a noise is not gone on with.
  if (urgency === "immediate") step.dropAgent("client_interrupt");
  else if (step.state.agent.is === "held" && urgency === "soon") step.dropAgent("user_speech");
  if (urgency === "immediate") step.begin(job);
  else step.enqueue(job, urgency);
}

/** Digits gather until `#` or a pause. A finished number interrupts the agent, as it does in any voice menu. */
function takeDigit(step: Step, digit: string): void {
  step.active();
  const text = digit === "#" ? step.state.digits.text : step.state.digits.text + digit;
  step.set({ digits: { text, lastMs: step.nowMs } });
  if (digit === "#" || text.length >= digitsMax) takeDigits(step);
}

function takeDigits(step: Step): void {
  const { text } = step.state.digits;
  step.set({ digits: { text: "", lastMs: 0 } });
  if (!text) return;
  const { agent } = step.state;
  const yields = agent.is === "held" || (agent.is !== "silent" && mayInterrupt(step.state, agent.job));
  takeTyped(step, { kind: "dtmf", text }, yields ? "immediate" : "soon");
}

function takeSay(
  step: Step,
  say: { text: string; behavior: "default" | "queue" | "interrupt"; interruptible: boolean },
): void {
  const job: Job = { is: "say", text: say.text, source: "say", interruptible: say.interruptible };
  if (say.behavior === "interrupt") {
    step.dropAgent("say");
    step.begin(job);
    return;
  }
  if (say.behavior === "default" && !floorIsFree(step.state)) {
    step.add({
      do: "refuse",
      code: "say_refused",
      message: "Cannot say: a turn is in progress; use behavior queue or interrupt",
    });
    return;
  }
  step.enqueue(job, "soon");
}

function hangUp(step: Step, message: string | undefined): void {
  if (!message) {
    leave(step, "client_hangup");
    return;
  }
  sayAndLeave(step, message, "client_hangup");
}

function sayAndLeave(step: Step, text: string, reason: EndReason): void {
  step.dropAgent("say");
  step.set({ ending: reason, queue: [] });
  step.begin({ is: "say", text, source: "say", interruptible: false });
}

function leave(step: Step, reason: EndReason): void {
  step.set({ ending: reason });
  step.add({ do: "end", reason });
}

function finishJob(step: Step, { leaves, failed }: Extract<TurnEvent, { type: "agent_done" }>): void {
  const { agent, settings, prompted } = step.state;
  if (agent.is === "silent") return;
  step.set({ agent: { is: "silent" }, leaving: leaves });
  if (agent.job.is === "reply" && failed) {
    failAnswer(step);
    return;
  }
  if (agent.job.is === "reply") step.set({ failures: 0 });
  // The prompt itself spends no idle time: the second half begins when it was heard.
  const isPrompt = prompted && agent.job.is === "say" && agent.job.source === "filler";
  step.set({ quietSinceMs: isPrompt ? step.nowMs - settings.idleTimeoutMs / 2 : step.nowMs, prompted: isPrompt });
}

/** The caller hears that an answer failed, unless there is something to answer; with the last of a row the agent gives up. */
function failAnswer(step: Step): void {
  const { words, canHandOver } = step.state.settings;
  step.set({ failures: step.state.failures + 1, quietSinceMs: step.nowMs });
  if (step.state.failures >= failuresMax) {
    step.dropAgent("error");
    step.set({ ending: canHandOver ? "transferred" : "error", queue: [] });
    step.begin({
      is: "say",
      text: canHandOver ? words.handOver : words.farewell,
      source: "apology",
      interruptible: false,
    });
    return;
  }
  const apology: Job = { is: "say", text: words.apology, source: "apology", interruptible: true };
  const { agent, recognizing } = step.state;
  const isFilling =
    recognizing.length === 0 && agent.is !== "silent" && agent.job.is === "say" && agent.job.source === "filler";
  if (floorIsFree(step.state)) step.begin(apology);
  else if (isFilling) step.enqueue(apology, "soon");
}

/** Nothing counts while the link is lost, but the longest duration. */
function resumeClocks(step: Step): void {
  const { pausedSinceMs, quietSinceMs, agent, digits } = step.state;
  if (pausedSinceMs === undefined) return;
  const lostMs = step.nowMs - pausedSinceMs;
  step.set({
    pausedSinceMs: undefined,
    quietSinceMs: quietSinceMs + lostMs,
    digits: { ...digits, lastMs: digits.lastMs + lostMs },
    agent: agent.is === "held" ? { ...agent, sinceMs: agent.sinceMs + lostMs } : agent,
  });
}

function tick(step: Step): void {
  const { state, nowMs } = step;
  const { settings, agent, digits } = state;
  if (nowMs - state.startedMs >= settings.maxDurationMs) {
    leave(step, "max_duration");
    return;
  }
  if (state.pausedSinceMs !== undefined) return;
  if (digits.text && nowMs - digits.lastMs >= digitPauseMs) takeDigits(step);
  if (agent.is === "held") {
    const quiet = state.caller.is === "silent" && state.recognizing.length === 0;
    if (!quiet || nowMs - agent.sinceMs < falseInterruptionMs) return;
    step.set({ agent: { is: agent.was, job: agent.job }, quietSinceMs: nowMs });
    step.add({ do: "go_on" });
    return;
  }
  fillRecognition(step);
  if (settings.idleTimeoutMs === 0 || state.tasks > 0 || !floorIsFree(step.state)) return;
  const idleMs = nowMs - state.quietSinceMs;
  if (idleMs >= settings.idleTimeoutMs) {
    leave(step, "idle_timeout");
    return;
  }
  if (idleMs >= settings.idleTimeoutMs / 2 && !state.prompted) {
    step.begin({ is: "say", text: settings.words.stillThere, source: "filler", interruptible: true });
    step.set({ prompted: true });
  }
}

/** Words that are awaited for long are not waited for in silence. Once a turn. */
function fillRecognition(step: Step): void {
  const { agent, caller, recognizing, filledTurn, quietSinceMs, settings } = step.state;
  const turn = recognizing.at(-1);
  const isQuiet = agent.is === "silent" && caller.is === "silent" && step.nowMs - quietSinceMs >= recognitionQuietMs;
  if (turn === undefined || turn === filledTurn || !isQuiet) return;
  step.set({ filledTurn: turn });
  step.begin({ is: "say", text: settings.words.filler, source: "filler", interruptible: true });
}

function floorIsFree(state: TurnState): boolean {
  return (
    state.agent.is === "silent" &&
    state.caller.is !== "speaking" &&
    state.recognizing.length === 0 &&
    state.owed === undefined &&
    !state.queue.some(({ when }) => when === "soon")
  );
}

/** After every event: an owed answer first, then what waits for the end of speech, then what waits for quiet. */
function takeTheFloor(step: Step): void {
  const { agent, caller, recognizing, owed, queue, ending, pausedSinceMs, quietSinceMs } = step.state;
  if (ending || agent.is !== "silent" || caller.is === "speaking" || recognizing.length > 0) return;
  if (step.state.leaving && hasNothingToAnswer(step.state)) {
    leave(step, "agent_hangup");
    return;
  }
  if (owed !== undefined) {
    step.begin(replyTo(owed, { kind: "speech" }));
    return;
  }
  const quietMs = step.nowMs - quietSinceMs;
  const laterIsNow = pausedSinceMs === undefined && quietMs >= laterAfterQuietMs;
  const next = queue.find(({ when }) => when === "soon") ?? (laterIsNow ? queue[0] : undefined);
  if (!next) return;
  step.set({ queue: queue.filter((entry) => entry !== next) });
  step.begin(next.job);
}

/** Of the reasons that wait for a farewell, one is an error. */
function endOf(reason: EndReason): Effect {
  return { do: "end", reason, ...(reason === "error" && { errorCode: "provider_failed" }) };
}

/** Nobody spoke, typed or pressed since the farewell began. */
function hasNothingToAnswer({ caller, owed, queue, digits }: TurnState): boolean {
  return caller.is === "silent" && owed === undefined && queue.length === 0 && digits.text === "";
}

/** The farewell is being said: nothing else matters any more but its end and the longest duration. */
function decideWhileEnding(state: TurnState, event: TurnEvent, nowMs: number): Decision {
  const { agent, ending } = state;
  if (event.type === "agent_speaking" && agent.is === "thinking") {
    return { state: { ...state, agent: { is: "speaking", job: agent.job } }, effects: [] };
  }
  if (event.type === "agent_done" && agent.is !== "silent" && ending === "transferred") {
    return {
      state: { ...state, agent: { is: "silent" }, handingOverSinceMs: nowMs },
      effects: [{ do: "hand_over" }],
    };
  }
  if (state.handingOverSinceMs !== undefined) {
    const isLate = event.type === "tick" && nowMs - state.handingOverSinceMs >= handOverMsMax;
    if (isLate || event.type === "hand_over_failed") return takeLeave(state, nowMs);
  }
  if (event.type === "agent_done" && agent.is !== "silent" && ending) {
    return { state: { ...state, agent: { is: "silent" } }, effects: [endOf(ending)] };
  }
  if (event.type === "hang_up" && !event.message) return { state, effects: [{ do: "end", reason: "client_hangup" }] };
  if (event.type === "tick" && nowMs - state.startedMs >= state.settings.maxDurationMs) {
    return { state, effects: [{ do: "end", reason: "max_duration" }] };
  }
  return { state, effects: [] };
}

/** Nobody takes the call over. */
function takeLeave(state: TurnState, nowMs: number): Decision {
  const step = new Step({ ...state, ending: "error", handingOverSinceMs: undefined }, nowMs);
  step.begin({ is: "say", text: state.settings.words.farewell, source: "apology", interruptible: false });
  return { state: step.state, effects: step.effects };
}
