/**
 * One call: joins the caller's audio, the turns, the pipeline and the playout. What to do is
 * decided in `turns.ts`; here each effect is carried out, in order, and each input becomes an event.
 */
import type { EndReason, ServerMessageOf } from "#contracts/voice_protocol.ts";
import { voiceLimits } from "#contracts/voice_protocol.ts";
import { AgentSpeech } from "./agent_speech.ts";
import { type CodecPair, openCodecPair } from "./audio/codec_pair.ts";
import { CallLog } from "./call_log.ts";
import { CallerAudio } from "./caller_audio.ts";
import type {
  MediaHost,
  MediaSession,
  SessionCommand,
  SessionMessage,
  SessionSink,
  SessionSpec,
} from "./media_session.ts";
import {
  type AnswerHooks,
  answer,
  recognize,
  type StageFactories,
  type Stages,
  say,
  type ToolCall,
} from "./pipeline.ts";
import type { Pcm, ToolSpec } from "./providers/provider.ts";
import type { Scheduler } from "./scheduler.ts";
import { TurnTiming, tenths } from "./turn_timing.ts";
import {
  decide,
  type Effect,
  initialTurnState,
  type Job,
  shownState,
  type TurnEvent,
  type TurnState,
} from "./turns.ts";
import type { VadEngine } from "./vad/vad.ts";

export interface SessionDeps {
  scheduler: Scheduler;
  stages: StageFactories;
  vad: VadEngine;
}

const endCallTool: ToolSpec = {
  name: "end_call",
  description: "Ends the call, after saying `message` where one is given.",
  parameters: { type: "object", properties: { message: { type: "string" } }, additionalProperties: false },
};

/**
 * Opens a session on this thread. The sink hears nothing before this returns.
 * @throws MediaFullError when no Opus instance is free; Error when a provider's options do not fit
 */
export function createSession(spec: SessionSpec, sink: SessionSink, deps: SessionDeps): MediaSession {
  const session = new Session(spec, sink, deps);
  queueMicrotask(() => session.begin());
  return session;
}

/** Sessions of this thread alone. */
export function createLocalMediaHost(deps: SessionDeps): MediaHost {
  const open = new Set<MediaSession>();
  return {
    open(spec, sink) {
      const session: MediaSession = createSession(
        spec,
        {
          audio: (frame, durationMs) => sink.audio(frame, durationMs),
          message: (message) => sink.message(message),
          record: (progress) => sink.record(progress),
          ended(end, usage) {
            open.delete(session);
            sink.ended(end, usage);
          },
        },
        deps,
      );
      open.add(session);
      return session;
    },
    async close() {
      for (const session of open) session.end("drained");
    },
  };
}

class Session implements MediaSession {
  readonly #spec: SessionSpec;
  readonly #sink: SessionSink;
  readonly #scheduler: Scheduler;
  readonly #stages: Stages;
  readonly #codecs: CodecPair;
  readonly #caller: CallerAudio;
  readonly #speech: AgentSpeech;
  readonly #log: CallLog;
  readonly #startedMs: number;
  readonly #stopBeat: () => void;
  readonly #abort = new AbortController();
  /** Of turns that are recognized but not answered: when they ended, and their audio. */
  readonly #spokenTurns = new Map<number, { timing: TurnTiming; audio: Pcm }>();
  #turns: TurnState;
  #shown: string | undefined;
  #events: TurnEvent[] = [];
  #isDispatching = false;
  #isEnding = false;
  #isEnded = false;
  #isMuted = false;
  #isPaused = false;
  /** Arrival of the input that is being processed. */
  #arrivedAtMs: number;
  #userTurns = 0;
  #utterances = 0;
  #agentTurns = 0;
  #usageDueMs: number;
  #partialItem: { turn: number; itemId: string } | undefined;

  constructor(spec: SessionSpec, sink: SessionSink, deps: SessionDeps) {
    const { config } = spec;
    const { advanced } = config;
    this.#spec = spec;
    this.#sink = sink;
    this.#scheduler = deps.scheduler;
    this.#startedMs = deps.scheduler.nowMs();
    this.#arrivedAtMs = this.#startedMs;
    this.#usageDueMs = this.#startedMs + voiceLimits.usageIntervalS * 1000;
    this.#log = new CallLog(sink);
    this.#stages = {
      stt: config.stt && deps.stages.stt(config.stt),
      llm: deps.stages.llm(config.llm),
      tts: deps.stages.tts(config.tts),
    };
    this.#turns = initialTurnState(
      {
        eosSilenceMs: advanced.eos_silence_ms,
        allowInterruptions: advanced.allow_interruptions,
        idleTimeoutMs: advanced.idle_timeout_s * 1000,
        maxDurationMs: advanced.max_call_duration_s * 1000,
      },
      this.#startedMs,
    );
    this.#codecs = openCodecPair(spec.inputFormat, spec.outputFormat);
    this.#caller = new CallerAudio(
      { format: spec.inputFormat, vad: deps.vad, turnSensitivity: advanced.turn_sensitivity },
      this.#codecs.decoder,
      { voice: (voice) => this.#dispatch({ type: "voice", ...voice }), speech: (pcm) => this.#stages.stt?.write(pcm) },
      this.#startedMs,
    );
    this.#speech = new AgentSpeech(
      { format: spec.outputFormat, leadMs: spec.clientBufferMs },
      this.#codecs.encoder,
      {
        nowMs: () => this.#scheduler.nowMs(),
        callMs: (nowMs) => nowMs - this.#startedMs,
        send: (message) => this.#send(message),
        onSpeaking: () => this.#dispatch({ type: "agent_speaking" }),
        onDone: (leaves) => this.#dispatch({ type: "agent_done", leaves }),
      },
      sink,
      this.#log,
    );
    if (this.#stages.stt) this.#stages.stt.onPartial = (result) => this.#takePartial(result.text, result.language);
    for (const { role, text } of spec.initialMessages) this.#log.remember({ role, text });
    this.#stopBeat = deps.scheduler.onBeat((nowMs) => this.#beat(nowMs));
  }

  /** First words: what is not available, and the welcome. */
  begin(): void {
    if (this.#isEnded) return;
    this.#shown = "initializing";
    this.#send({ type: "state", state: "initializing" });
    for (const field of this.#spec.config.not_available) {
      this.#warn("not_available", `${field} is configured but not available yet: the call goes on without it`, field);
    }
    const { welcome_message } = this.#spec.config;
    if (welcome_message.trim()) this.#dispatch({ type: "welcome", text: welcome_message });
    else this.#showState();
  }

  audio(bytes: Uint8Array, arrivedAtMs: number): void {
    if (this.#isEnded) return;
    this.#arrivedAtMs = arrivedAtMs;
    const durationMs = this.#caller.hear(bytes, this.#isMuted, this.#scheduler.nowMs());
    this.#log.count((usage) => {
      usage.input_audio_ms += durationMs;
    });
  }

  command(command: SessionCommand): void {
    if (this.#isEnded) return;
    const nowMs = this.#scheduler.nowMs();
    this.#arrivedAtMs = nowMs;
    switch (command.type) {
      case "start":
        this.#takeCapabilities(command);
        return;
      case "mark":
        this.#speech.heardMark(command.name, command.cleared === true, nowMs);
        return;
      case "interrupt":
        this.#dispatch({ type: "interrupt" });
        return;
      case "dtmf":
        this.#dispatch({ type: "digit", digit: command.digit });
        return;
      case "user_message":
        this.#dispatch({ type: "typed", text: command.text, urgency: command.urgency ?? "soon" });
        return;
      case "context_update":
        this.#log.remember({ role: "context", text: command.text });
        return;
      case "say": {
        const { text, behavior = "default", interruptible = true } = command;
        this.#dispatch({ type: "say", text, behavior, interruptible });
        return;
      }
      case "mute":
        this.#isMuted = true;
        return;
      case "unmute":
        this.#isMuted = false;
        return;
      case "user_activity":
        this.#dispatch({ type: "activity" });
        return;
      case "hang_up":
        this.#dispatch({ type: "hang_up", message: command.message?.trim() || undefined });
        return;
      case "client_tool_result":
      case "transfer_result":
        this.#warn("not_available", `Cannot take ${command.type}: nothing of the kind was asked for`, command.type);
        return;
    }
  }

  #takeCapabilities(start: Extract<SessionCommand, { type: "start" }>): void {
    const { marks, clear, text_only, echo_cancellation } = start.capabilities ?? {};
    // A client that cannot drop what it buffered must not hold much of it, or nobody can interrupt the agent.
    this.#speech.setCapabilities({ marks, leadMs: clear === false ? voiceLimits.clientBufferMsMin : undefined });
    if (text_only !== undefined) this.#speech.isTextOnly = text_only;
    if (echo_cancellation !== undefined) this.#dispatch({ type: "echo_cancellation", present: echo_cancellation });
  }

  reportUnsent(unsentMs: number): void {
    this.#speech.reportUnsent(unsentMs);
  }

  pause(): void {
    if (this.#isEnded || this.#isPaused) return;
    this.#isPaused = true;
    this.#speech.pause();
    this.#dispatch({ type: "paused" });
  }

  resume(): void {
    if (this.#isEnded || !this.#isPaused) return;
    this.#isPaused = false;
    const nowMs = this.#scheduler.nowMs();
    this.#caller.linkIsBack(nowMs);
    this.#dispatch({ type: "resumed" });
    this.#speech.resume(nowMs);
  }

  end(reason: EndReason, errorCode?: string): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#stopBeat();
    this.#abort.abort();
    const nowMs = this.#scheduler.nowMs();
    this.#speech.hangUp(nowMs);
    this.#isEnded = true;
    this.#speech.close();
    this.#caller.close();
    this.#codecs.close();
    this.#stages.stt?.close();
    this.#stages.llm.close();
    this.#stages.tts.close();
    const usage = this.#log.usage();
    this.#log.flush(true);
    const durationMs = Math.round(nowMs - this.#startedMs);
    this.#sink.ended({ reason, duration_ms: durationMs, ...(errorCode && { error_code: errorCode }) }, usage);
  }

  /** The thread's beat: pacing, gaps in the input, deadlines. */
  #beat(nowMs: number): void {
    this.#speech.pump(nowMs);
    if (this.#isEnded) return;
    if (!this.#isPaused) {
      const wasSilentFor = this.#caller.fillGap(nowMs);
      if (wasSilentFor && !this.#isMuted && !this.#speech.isTextOnly) {
        this.#warn("no_input_audio", "No audio is coming in: send silence while the caller is silent");
      }
    }
    this.#dispatch({ type: "tick" });
    if (nowMs < this.#usageDueMs || this.#isEnded) return;
    this.#usageDueMs += voiceLimits.usageIntervalS * 1000;
    this.#send({ type: "usage", ...this.#log.usage() });
    this.#log.flush(true);
  }

  /** One event after the other, also those that an effect causes. */
  #dispatch(event: TurnEvent): void {
    this.#events.push(event);
    if (this.#isDispatching) return;
    this.#isDispatching = true;
    for (let next = this.#events.shift(); next && !this.#isEnded; next = this.#events.shift()) {
      const decision = decide(this.#turns, next, this.#scheduler.nowMs());
      this.#turns = decision.state;
      for (const effect of decision.effects) if (!this.#isEnded) this.#carryOut(effect);
      if (!this.#isEnded) this.#showState();
    }
    this.#isDispatching = false;
  }

  #carryOut(effect: Effect): void {
    const nowMs = this.#scheduler.nowMs();
    switch (effect.do) {
      case "user_speech_started":
        this.#startUserSpeech(effect.turn, effect.audioMs);
        return;
      case "barge_in":
        this.#speech.stop("user_speech", true, () => this.#startUserSpeech(effect.turn, effect.audioMs), nowMs);
        return;
      case "user_speech_stopped":
        this.#send({
          type: "user_speech_stopped",
          turn_id: turnId(effect.turn),
          audio_ms: tenths(effect.audioMs),
        });
        return;
      case "recognize":
        void this.#recognize(effect);
        return;
      case "forget_speech":
        this.#caller.forgetSpeech();
        return;
      case "go_on":
        this.#speech.goOn(nowMs);
        return;
      case "discard":
        this.#speech.discard(nowMs);
        return;
      case "cut":
        this.#speech.stop(effect.reason, false, () => {}, nowMs);
        return;
      case "clear_nothing": {
        const utteranceId = this.#speech.lastUtteranceId;
        if (utteranceId) this.#send({ type: "clear", utterance_id: utteranceId, reason: effect.reason });
        return;
      }
      case "begin":
        effect.job.is === "reply" ? this.#beginReply(effect.job) : this.#beginSay(effect.job);
        return;
      case "refuse":
        this.#warn(effect.code, effect.message);
        return;
      case "end":
        this.end(effect.reason);
        return;
    }
  }

  #startUserSpeech(turn: number, audioMs: number): void {
    this.#partialItem = { turn, itemId: this.#speech.nextItemId() };
    this.#send({ type: "user_speech_started", turn_id: turnId(turn), audio_ms: tenths(audioMs) });
    this.#caller.confirmSpeech();
  }

  #takePartial(text: string, language: string | undefined): void {
    const item = this.#partialItem;
    if (this.#isEnded || !item || !text) return;
    this.#send({
      type: "transcript",
      role: "user",
      turn_id: turnId(item.turn),
      item_id: item.itemId,
      text,
      final: false,
      ...(language && { language }),
    });
    this.#dispatch({ type: "words" });
  }

  /** The end of the caller's speech: its words, where a recognizer is set. */
  async #recognize({ turn, startMs, endMs, waitedMs }: Extract<Effect, { do: "recognize" }>): Promise<void> {
    const audio = this.#caller.takeUtterance(endMs);
    const itemId = this.#partialItem?.turn === turn ? this.#partialItem.itemId : this.#speech.nextItemId();
    this.#partialItem = undefined;
    const timing = new TurnTiming(turnId(turn), this.#arrivedAtMs, waitedMs);
    const endedMs = this.#scheduler.nowMs() - this.#startedMs - waitedMs;
    const lengthMs = endMs - startMs;
    this.#spokenTurns.set(turn, { timing, audio });
    const { stt } = this.#stages;
    if (!stt) {
      this.#logUser(turn, itemId, "", endedMs - lengthMs, endedMs);
      return this.#dispatch({ type: "recognized", turn, understood: true });
    }
    this.#log.count((usage) => {
      usage.stt_ms += lengthMs;
    });
    const index = this.#utterances;
    this.#utterances += 1;
    const { signal } = this.#abort;
    const result = await recognize(stt, { ...audio, index }, signal, this.#scheduler, (stage, reason) =>
      this.#fail(stage, reason),
    );
    if (this.#isEnded) return;
    timing.note("stt_final", this.#scheduler.nowMs());
    const text = result.text.trim();
    if (!text) this.#spokenTurns.delete(turn);
    else {
      this.#sendUserText(turn, itemId, text, {
        startMs: endedMs - lengthMs,
        endMs: endedMs,
        language: result.language,
      });
      this.#log.remember({ role: "user", text, audio });
    }
    this.#dispatch({ type: "recognized", turn, understood: text !== "" });
  }

  #sendUserText(
    turn: number,
    itemId: string,
    text: string,
    at: { startMs: number; endMs: number; language?: string | undefined },
  ): void {
    this.#send({
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
    this.#logUser(turn, itemId, text, at.startMs, at.endMs);
  }

  #logUser(turn: number, itemId: string, text: string, startMs: number, endMs: number): void {
    this.#log.item({
      item_id: itemId,
      turn_id: turnId(turn),
      role: "user",
      text,
      heard_text: text,
      interrupted: false,
      start_ms: tenths(Math.max(0, startMs)),
      end_ms: tenths(Math.max(0, endMs)),
    });
    this.#log.flush();
  }

  #beginReply(job: Extract<Job, { is: "reply" }>): void {
    const { turn, input } = job;
    const nowMs = this.#scheduler.nowMs();
    const spoken = this.#spokenTurns.get(turn);
    this.#spokenTurns.clear();
    if (input.kind !== "speech") {
      const callMs = nowMs - this.#startedMs;
      this.#sendUserText(turn, this.#speech.nextItemId(), input.text, { startMs: callMs, endMs: callMs });
      this.#log.remember({ role: "user", text: input.text });
    } else if (!this.#stages.stt && spoken) this.#log.remember({ role: "user", text: "", audio: spoken.audio });
    const turnIndex = this.#userTurns;
    this.#userTurns += 1;
    const timing = spoken?.timing ?? new TurnTiming(turnId(turn), this.#arrivedAtMs, 0);
    this.#speech.begin({ turnId: turnId(turn), source: "model", timing }, this.#hooks(timing), (hooks, signal) =>
      answer(
        {
          instructions: this.#spec.config.instructions,
          history: this.#log.historyForRequest(),
          turnIndex,
          inputKind: input.kind,
          unrecognized: input.kind === "speech" && !this.#stages.stt,
          tools: this.#spec.config.end_call_enabled ? [endCallTool] : [],
          toolStepsMax: this.#spec.config.advanced.max_tool_steps,
        },
        this.#stages,
        this.#nextAgentTurn(),
        hooks,
        signal,
        this.#scheduler,
      ),
    );
  }

  #beginSay(job: Extract<Job, { is: "say" }>): void {
    this.#speech.begin(
      { turnId: turnId(this.#turns.turns), source: job.source, timing: undefined },
      this.#hooks(undefined),
      (hooks, signal) => say(job.text, this.#stages.tts, this.#nextAgentTurn(), hooks, signal, this.#scheduler),
    );
  }

  #nextAgentTurn(): number {
    const index = this.#agentTurns;
    this.#agentTurns += 1;
    return index;
  }

  #hooks(timing: TurnTiming | undefined): Pick<AnswerHooks, "used" | "runTool" | "tooManySteps" | "failed"> {
    return {
      used: ({ prompt, completion, cached }) =>
        this.#log.count(({ llm }) => {
          llm.prompt += prompt;
          llm.completion += completion;
          llm.cached += cached;
        }),
      tooManySteps: () =>
        this.#warn(
          "max_tool_steps",
          `The turn used its ${this.#spec.config.advanced.max_tool_steps} tool steps and ended there`,
        ),
      failed: (stage, reason) => this.#fail(stage, reason),
      runTool: (call) => this.#runTool(call, timing),
    };
  }

  /** Tools that are built in. Any other name is answered to the model as an error. */
  #runTool(call: ToolCall, timing: TurnTiming | undefined): { text: string; isError: boolean; leaves: boolean } {
    this.#log.count((usage) => {
      usage.tool_calls += 1;
    });
    const isKnown = call.name === endCallTool.name && this.#spec.config.end_call_enabled;
    const event = { type: "tool_event", tool_call_id: call.id, name: call.name, source: "builtin" } as const;
    if (timing) timing.toolMs ??= 0;
    this.#send({ ...event, phase: "started" });
    if (isKnown) {
      this.#send({ ...event, phase: "completed", duration_ms: 0 });
      return { text: "", isError: false, leaves: true };
    }
    const error = `Tool ${call.name} is not available`;
    this.#send({ ...event, phase: "failed", duration_ms: 0, error });
    this.#warn("not_available", error, call.id);
    return { text: error, isError: true, leaves: false };
  }

  #fail(stage: "stt" | "llm" | "tts", reason: string): void {
    if (this.#isEnded) return;
    this.#send({ type: "error", code: `${stage}_failed`, message: reason, fatal: false });
  }

  #warn(code: string, message: string, ref?: string): void {
    this.#send({ type: "warning", code, message, fatal: false, ...(ref && { ref }) });
  }

  #showState(): void {
    const { state, turn } = shownState(this.#turns);
    if (this.#shown === state) return;
    this.#shown = state;
    const message: ServerMessageOf<"state"> = {
      type: "state",
      state,
      ...(turn !== undefined && { turn_id: turnId(turn) }),
    };
    this.#send(message);
  }

  #send(message: SessionMessage): void {
    if (!this.#isEnded) this.#sink.message(message);
  }
}

function turnId(turn: number): string {
  return `turn_${turn}`;
}
