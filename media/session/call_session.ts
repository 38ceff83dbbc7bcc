/**
 * One call: joins the caller's audio, the turns, the pipeline and the playout. What to do is
 * decided in `turns.ts`; here each effect is carried out, in order, and each input becomes an event.
 */
import type { CallConfig } from "#contracts/voice_agent.ts";
import type { EndReason, ServerMessageOf } from "#contracts/voice_protocol.ts";
import { voiceLimits } from "#contracts/voice_protocol.ts";
import { ProviderError } from "#providers/provider.ts";
import {
  type AnswerHooks,
  answer,
  type FailedStage,
  type StageFactories,
  type Stages,
  StageTimeoutError,
  say,
} from "../answering/answer.ts";
import { runTool, toolsFor } from "../answering/builtin_tools.ts";
import { type CodecPair, openCodecPair } from "../audio/codec_pair.ts";
import { CallerAudio } from "../hearing/caller_audio.ts";
import type { VadEngine } from "../hearing/vad/create_vad.ts";
import type {
  MediaHost,
  MediaSession,
  SessionCommand,
  SessionMessage,
  SessionSink,
  SessionSpec,
} from "../media_host.ts";
import { AgentSpeech } from "../speaking/agent_speech.ts";
import type { Scheduler } from "../threads/scheduler.ts";
import { CallLog } from "./call_log.ts";
import { CallerTurns, turnId } from "./caller_turns.ts";
import { type TurnTiming, tenths } from "./turn_timing.ts";
import {
  decide,
  type Effect,
  initialTurnState,
  type Job,
  shownState,
  type TurnEvent,
  type TurnState,
} from "./turns.ts";

export interface SessionDeps {
  scheduler: Scheduler;
  stages: StageFactories;
  vad: VadEngine;
  /** For the log: a provider failed in a way of its own, or the session broke an invariant and ended with `internal_error`. */
  onFault?: (callId: string, cause: unknown) => void;
}

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

function stagesFor(config: CallConfig, factories: StageFactories): Stages {
  return {
    stt: config.stt && factories.stt(config.stt),
    llm: factories.llm(config.llm),
    tts: factories.tts(config.tts),
  };
}

class Session implements MediaSession {
  readonly #spec: SessionSpec;
  readonly #sink: SessionSink;
  readonly #scheduler: Scheduler;
  readonly #onFault: (cause: unknown) => void;
  readonly #stages: Stages;
  readonly #codecs: CodecPair;
  readonly #caller: CallerAudio;
  readonly #callerTurns: CallerTurns;
  readonly #speech: AgentSpeech;
  readonly #log: CallLog;
  readonly #startedMs: number;
  readonly #stopBeat: () => void;
  #turns: TurnState;
  #shown = "initializing";
  #events: TurnEvent[] = [];
  #isDispatching = false;
  #hasBegun = false;
  #isEnding = false;
  #isEnded = false;
  #isMuted = false;
  #isPaused = false;
  /** Arrival of the input that is being processed. */
  #arrivedAtMs: number;
  #userTurns = 0;
  #agentTurns = 0;
  #usageDueMs: number;

  constructor(spec: SessionSpec, sink: SessionSink, deps: SessionDeps) {
    const { config } = spec;
    const { advanced } = config;
    this.#spec = spec;
    this.#sink = sink;
    this.#scheduler = deps.scheduler;
    this.#onFault = (cause) => deps.onFault?.(spec.callId, cause);
    this.#startedMs = deps.scheduler.nowMs();
    this.#arrivedAtMs = this.#startedMs;
    this.#usageDueMs = this.#startedMs + voiceLimits.usageIntervalS * 1000;
    this.#log = new CallLog(sink);
    this.#codecs = openCodecPair(spec.inputFormat, spec.outputFormat);
    try {
      this.#stages = stagesFor(config, deps.stages);
    } catch (cause) {
      this.#codecs.close();
      throw cause;
    }
    this.#turns = initialTurnState(
      {
        eosSilenceMs: advanced.eos_silence_ms,
        allowInterruptions: advanced.allow_interruptions,
        idleTimeoutMs: advanced.idle_timeout_s * 1000,
        maxDurationMs: advanced.max_call_duration_s * 1000,
      },
      this.#startedMs,
    );
    this.#caller = new CallerAudio(
      { format: spec.inputFormat, vad: deps.vad, turnSensitivity: advanced.turn_sensitivity },
      this.#codecs.decoder,
      { voice: (voice) => this.#dispatch({ type: "voice", ...voice }), speech: (pcm) => this.#callerTurns.hears(pcm) },
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
        onFault: (cause) => this.#fault(cause),
      },
      sink,
      this.#log,
    );
    this.#callerTurns = new CallerTurns(
      this.#stages.stt,
      this.#scheduler,
      {
        callMs: (nowMs) => nowMs - this.#startedMs,
        nextItemId: () => this.#speech.nextItemId(),
        send: (message) => this.#send(message),
        failed: (stage, cause) => this.#fail(stage, cause),
        dispatch: (event) => this.#dispatch(event),
      },
      this.#log,
    );
    for (const { role, text } of spec.initialMessages) this.#log.remember({ role, text });
    this.#stopBeat = deps.scheduler.onBeat((nowMs) => this.#guarded(() => this.#beat(nowMs)));
  }

  /** A fault ends this call alone. */
  #guarded(run: () => void): void {
    if (this.#isEnding) return;
    try {
      run();
    } catch (cause) {
      this.#fault(cause);
    }
  }

  #fault(cause: unknown): void {
    this.#onFault(cause);
    this.end("error", "internal_error");
  }

  begin(): void {
    this.#guarded(() => this.#greet());
  }

  /** First words: what is not available, and the welcome. */
  #greet(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#send({ type: "state", state: "initializing" });
    for (const field of this.#spec.config.not_available) {
      this.#warn("not_available", `${field} is configured but not available yet: the call goes on without it`, field);
    }
    const { welcome_message } = this.#spec.config;
    if (welcome_message.trim()) this.#dispatch({ type: "welcome", text: welcome_message });
    else this.#showState();
  }

  audio(bytes: Uint8Array, arrivedAtMs: number): void {
    this.#guarded(() => this.#hear(bytes, arrivedAtMs));
  }

  #hear(bytes: Uint8Array, arrivedAtMs: number): void {
    this.#greet();
    this.#arrivedAtMs = arrivedAtMs;
    const durationMs = this.#caller.hear(bytes, this.#isMuted, this.#scheduler.nowMs());
    this.#log.count((usage) => {
      usage.input_audio_ms += durationMs;
    });
  }

  command(command: SessionCommand): void {
    this.#guarded(() => this.#obey(command));
  }

  #obey(command: SessionCommand): void {
    // A client that is text-only from the start gets its welcome as text.
    if (command.type !== "start") this.#greet();
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
    if (text_only && this.#speech.isHeard) this.#dispatch({ type: "interrupt" });
    if (echo_cancellation !== undefined) this.#dispatch({ type: "echo_cancellation", present: echo_cancellation });
  }

  reportUnsent(unsentMs: number): void {
    this.#speech.reportUnsent(unsentMs);
  }

  pause(): void {
    this.#guarded(() => {
      if (this.#isPaused) return;
      this.#isPaused = true;
      this.#speech.pause();
      this.#dispatch({ type: "paused" });
    });
  }

  resume(): void {
    this.#guarded(() => {
      if (!this.#isPaused) return;
      this.#isPaused = false;
      const nowMs = this.#scheduler.nowMs();
      this.#caller.linkIsBack(nowMs);
      this.#dispatch({ type: "resumed" });
      this.#speech.resume(nowMs);
    });
  }

  end(reason: EndReason, errorCode?: string): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#stopBeat();
    const nowMs = this.#scheduler.nowMs();
    this.#speech.hangUp(nowMs);
    this.#isEnded = true;
    this.#speech.close();
    this.#caller.close();
    this.#codecs.close();
    this.#callerTurns.close();
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
        this.#userSpeechBegins(effect);
        return;
      case "barge_in":
        this.#speech.stop("user_speech", true, () => this.#userSpeechBegins(effect), nowMs);
        return;
      case "user_speech_stopped":
        this.#send({
          type: "user_speech_stopped",
          turn_id: turnId(effect.turn),
          audio_ms: tenths(effect.audioMs),
        });
        return;
      case "recognize":
        this.#recognize(effect);
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

  #userSpeechBegins({ turn, audioMs }: { turn: number; audioMs: number }): void {
    this.#callerTurns.speechBegins(turn, audioMs);
    this.#caller.confirmSpeech();
  }

  #recognize({ turn, startMs, endMs, waitedMs }: Extract<Effect, { do: "recognize" }>): void {
    const audio = this.#caller.takeUtterance(endMs);
    const endedAtMs = this.#arrivedAtMs;
    const spoken = { turn, audio, speechMs: endMs - startMs, waitedMs, endedAtMs };
    this.#callerTurns.recognize(spoken).catch((cause) => this.#fault(cause));
  }

  #beginReply({ turn, input }: Extract<Job, { is: "reply" }>): void {
    const isSpoken = input.kind === "speech";
    const timing = isSpoken ? this.#callerTurns.takeSpoken(turn) : this.#callerTurns.takeTyped(turn, input.text);
    const turnIndex = this.#userTurns;
    this.#userTurns += 1;
    this.#speech.begin({ turnId: turnId(turn), source: "model", timing }, this.#hooks(timing), (hooks, signal) =>
      answer(
        {
          instructions: this.#spec.config.instructions,
          history: this.#log.historyForRequest(),
          turnIndex,
          inputKind: input.kind,
          unrecognized: isSpoken && !this.#callerTurns.recognizes,
          tools: toolsFor(this.#spec.config),
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
      failed: (stage, cause) => this.#fail(stage, cause),
      runTool: (call) => {
        this.#log.count((usage) => {
          usage.tool_calls += 1;
        });
        if (timing) timing.toolMs ??= 0;
        return runTool(call, this.#spec.config, (message) => this.#send(message));
      },
    };
  }

  /** The client is told what our own providers say; the reason of anything else is for the log alone. */
  #fail(stage: FailedStage, cause: unknown): void {
    if (this.#isEnded) return;
    const isOurs = cause instanceof ProviderError || cause instanceof StageTimeoutError;
    if (!isOurs) this.#onFault(cause);
    const message = isOurs ? cause.message : `The ${stage} provider failed; the call goes on`;
    this.#send({ type: "error", code: `${stage}_failed`, message, fatal: false });
  }

  #warn(code: string, message: string, ref?: string): void {
    this.#send({ type: "warning", code, message, fatal: false, ...(ref && { ref }) });
  }

  #showState(): void {
    if (!this.#hasBegun) return;
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
