/**
 * One call: joins the caller's audio and words, the floor, the answers and the agent's speech, and
 * takes what comes from outside: audio, messages, the state of the link, the beat.
 */
import type { CallFailure } from "#contracts/call_record.ts";
import type { CallConfig, McpServer, ModelSettings } from "#contracts/voice_agent.ts";
import type { EndReason } from "#contracts/voice_protocol.ts";
import { voiceLimits } from "#contracts/voice_protocol.ts";
import { asksAhead, defaultProviders } from "#providers/catalogue.ts";
import type { LanguageModel, Pcm, SpeechToText, TextToSpeech } from "#providers/provider.ts";
import type { CallStages, StageDeps, UnreachableStage } from "#providers/stages.ts";
import { Answers } from "../answering/answers.ts";
import { Fillers } from "../answering/fillers.ts";
import { stageLimitsFor } from "../answering/stage_limits.ts";
import { type CodecPair, openCodecPair } from "../audio/codec_pair.ts";
import { CallerAudio } from "../hearing/caller_audio.ts";
import { ClientRecognizer, type ClientWords } from "../hearing/client_recognizer.ts";
import type { VadEngine } from "../hearing/vad/create_vad.ts";
import type { MediaSession, SessionCommand, SessionMessage, SessionSink, SessionSpec } from "../media_host.ts";
import { AgentSpeech } from "../speaking/agent_speech.ts";
import type { Scheduler } from "../threads/scheduler.ts";
import { CallTools } from "../tools/call_tools.ts";
import { ClientTools } from "../tools/client_tools.ts";
import { configuredTools, fillersOf } from "../tools/config_tools.ts";
import { findMcpTools, toolsMax, underServer } from "../tools/mcp_tools.ts";
import { noRemoteTools, type RemoteTools } from "../tools/remote_tools.ts";
import type { Tool } from "../tools/tool.ts";
import { ToolReports } from "../tools/tool_reports.ts";
import { Transfers } from "../tools/transfers.ts";
import { agrees } from "../words/consent.ts";
import { wordsFor } from "../words/words_for.ts";
import { Backchannels } from "./backchannel.ts";
import { CallLog } from "./call_log.ts";
import { CallerTurns } from "./caller_turns.ts";
import { carryOutCommand } from "./client_commands.ts";
import { Floor } from "./floor.ts";
import { Notices } from "./notices.ts";
import { initialTurnState, type TurnEvent, type TurnState } from "./turns.ts";

/** Stages by settings: the loaded ones of `#providers/stages.ts`, or a test's own. */
export interface StageFactories {
  stt(settings: ModelSettings, deps: StageDeps): SpeechToText;
  llm(settings: ModelSettings, deps: StageDeps): LanguageModel;
  tts(settings: ModelSettings, deps: StageDeps): TextToSpeech;
  unreachable: CallStages["unreachable"];
}

interface Stages {
  stt: SpeechToText | undefined;
  llm: LanguageModel;
  tts: TextToSpeech;
}

export interface SessionDeps {
  scheduler: Scheduler;
  stages: StageFactories;
  vad: VadEngine;
  /** For tools that call out; without it they are not available. */
  remoteTools?: RemoteTools;
  /** A test's own, beside those of the configuration. */
  tools?: readonly Tool[];
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

function stagesFor(config: CallConfig, deps: StageDeps, factories: StageFactories): Stages {
  return {
    stt: config.stt && factories.stt(config.stt, deps),
    llm: factories.llm(config.llm, deps),
    tts: factories.tts(config.tts, deps),
  };
}

/** Where the recognizer ends turns itself, our own detection waits longer: it only guards. */
const guardSilenceMs = (eosSilenceMs: number) => Math.max(3 * eosSilenceMs, 2500);

function turnsFor(
  { advanced, llm, tts, destinations }: CallConfig,
  stt: SpeechToText | undefined,
  startedMs: number,
): TurnState {
  const settings = {
    eosSilenceMs: stt?.endsTurns ? guardSilenceMs(advanced.eos_silence_ms) : advanced.eos_silence_ms,
    asksAhead: advanced.preemptive_tts && asksAhead({ llm }),
    heedsEndings: !stt?.endsTurns && advanced.heeds_endings,
    allowInterruptions: advanced.allow_interruptions,
    idleTimeoutMs: advanced.idle_timeout_s * 1000,
    maxDurationMs: advanced.max_call_duration_s * 1000,
    words: wordsFor(tts.language),
    canHandOver: destinations.length > 0,
  };
  return initialTurnState(settings, startedMs);
}

/** The same call as an apology: nothing is heard or thought, and where the voice is missing too, the built-in one speaks. */
function apologyFor(config: CallConfig, unreachable: readonly UnreachableStage[]): CallConfig {
  const { stt: _, ...rest } = config;
  const builtIn = (stage: "llm" | "tts") => ({ provider: defaultProviders[stage], language: "en", options: {} });
  return {
    ...rest,
    llm: builtIn("llm"),
    tts: unreachable.some(({ stage }) => stage === "tts") ? builtIn("tts") : config.tts,
    welcome_message: "I'm sorry, I can't take your call right now. Please try again later.",
  };
}

class Session implements MediaSession {
  readonly #config: CallConfig;
  /** Stages whose vendor has no connection: the call is an apology, and over. */
  readonly #unreachable: readonly UnreachableStage[];
  readonly #unreachableFallbacks: readonly UnreachableStage[];
  readonly #sink: SessionSink;
  readonly #scheduler: Scheduler;
  readonly #onFault: (cause: unknown) => void;
  readonly #stages: Stages;
  readonly #codecs: CodecPair;
  readonly #caller: CallerAudio;
  readonly #callerTurns: CallerTurns;
  readonly #speech: AgentSpeech;
  readonly #tools: CallTools;
  readonly #toolsEnd = new AbortController();
  readonly #clientTools: ClientTools;
  readonly #transfers: Transfers;
  readonly #floor: Floor;
  readonly #notices: Notices;
  readonly #log: CallLog;
  readonly #startedMs: number;
  readonly #stopBeat: () => void;
  #hasBegun = false;
  #isEnding = false;
  #isPaused = false;
  #clientWords: ClientRecognizer | undefined;
  #hasIgnoredWords = false;
  #usageDueMs: number;

  constructor(spec: SessionSpec, sink: SessionSink, deps: SessionDeps) {
    const unreachable = deps.stages.unreachable(spec.config, spec.credentials);
    this.#unreachable = unreachable.filter(({ isFallback }) => !isFallback);
    this.#unreachableFallbacks = unreachable.filter(({ isFallback }) => isFallback);
    const config = this.#unreachable.length > 0 ? apologyFor(spec.config, this.#unreachable) : spec.config;
    const { advanced } = config;
    this.#config = config;
    this.#sink = sink;
    this.#scheduler = deps.scheduler;
    this.#onFault = (cause) => deps.onFault?.(spec.callId, cause);
    this.#startedMs = deps.scheduler.nowMs();
    this.#usageDueMs = this.#startedMs + voiceLimits.usageIntervalS * 1000;
    this.#log = new CallLog(sink, this.#startedMs, spec.prices);
    this.#notices = new Notices(sink, this.#onFault);
    this.#codecs = openCodecPair(spec.inputFormat, spec.outputFormat);
    try {
      this.#stages = stagesFor(config, this.#stageDeps(spec), deps.stages);
    } catch (cause) {
      this.#codecs.close();
      throw cause;
    }
    const out = { sink, notices: this.#notices, log: this.#log };
    const nowMs = () => this.#scheduler.nowMs();
    const callMs = (atMs: number) => atMs - this.#startedMs;
    const onFault = (cause: unknown) => this.#fault(cause);
    this.#caller = new CallerAudio(
      { format: spec.inputFormat, vad: deps.vad, turnSensitivity: advanced.turn_sensitivity },
      this.#codecs.decoder,
      {
        voice: (voice) => this.#floor.dispatch({ type: "voice", ...voice }),
        ...(this.#stages.stt?.isContinuous
          ? { speech: () => {}, everything: (pcm: Pcm) => this.#callerTurns.hears(pcm) }
          : { speech: (pcm: Pcm) => this.#callerTurns.hears(pcm) }),
        undecodable: () =>
          this.#notices.warn(
            "undecodable_audio",
            `Much of the audio is no ${spec.inputFormat.encoding} that can be decoded: silence or a guess stands in for it`,
          ),
      },
      this.#startedMs,
    );
    this.#speech = new AgentSpeech(
      { format: spec.outputFormat, leadMs: spec.clientBufferMs },
      this.#codecs.encoder,
      {
        nowMs,
        callMs,
        onSpeaking: () => this.#floor.dispatch({ type: "agent_speaking" }),
        onToolWait: (waiting) => this.#floor.dispatch({ type: "tool_wait", waiting }),
        onDone: (leaves, failed) => {
          this.#tools.answerHeard();
          if (this.#unreachable.length > 0) this.end("error", "connection_missing");
          else this.#floor.dispatch({ type: "agent_done", leaves, failed });
        },
        onFault,
      },
      out,
    );
    const limits = stageLimitsFor(config);
    const callerWords = wordsFor(config.stt?.language ?? config.tts.language);
    this.#callerTurns = new CallerTurns(
      this.#stages.stt,
      this.#scheduler,
      {
        sttLimitMs: limits.sttMs,
        endings: callerWords,
        backchannels: new Backchannels(callerWords, {
          own: advanced.backchannels,
          minInterruptWords: advanced.min_interrupt_words,
        }),
        callMs,
        nextItemId: () => this.#speech.nextItemId(),
        // What a vendor's socket brings comes at any time.
        dispatch: (event) => this.#guarded(() => this.#floor.dispatch(event)),
        turnEnded: () => this.#guarded(() => this.#endTurn()),
      },
      out,
    );
    const { llm, tts } = this.#stages;
    const dispatch = (event: TurnEvent) => this.#floor.dispatch(event);
    const fillers = new Fillers(config.tts.language, fillersOf(config));
    const told = { notices: this.#notices, log: this.#log, fillers, dispatch };
    const reports = new ToolReports({ ...told, nowMs, callMs, onFault: this.#onFault });
    const words = wordsFor(config.stt?.language ?? config.tts.language);
    this.#tools = new CallTools(deps.scheduler, reports, () => agrees(this.#log.lastTurn ?? "", words));
    this.#clientTools = new ClientTools(this.#notices);
    this.#transfers = new Transfers(this.#notices, () => this.end("transferred"));
    const toolsHost = {
      callId: spec.callId,
      credentials: spec.credentials ?? {},
      remote: deps.remoteTools ?? noRemoteTools,
      send: (message: SessionMessage) => this.#notices.send(message),
      transfers: this.#transfers,
      tasks: this.#tools,
      clientTools: this.#clientTools,
    };
    this.#tools.add([...configuredTools(config, toolsHost), ...(deps.tools ?? [])]);
    this.#findMcpTools(spec, deps.remoteTools ?? noRemoteTools);
    const answerDeps = { llm, tts, tools: this.#tools, fillers, limits, scheduler: deps.scheduler };
    this.#floor = new Floor(turnsFor(config, this.#stages.stt, this.#startedMs), {
      caller: this.#caller,
      callerTurns: this.#callerTurns,
      speech: this.#speech,
      answers: new Answers(config, answerDeps, this.#callerTurns, this.#log),
      notices: this.#notices,
      nowMs,
      handOver: (onFailed) => {
        const [first] = config.destinations;
        if (first) this.#transfers.handOver(first, onFailed);
      },
      end: (reason, errorCode) => this.end(reason, errorCode),
      onFault,
    });
    for (const { role, text } of spec.initialMessages) this.#log.remember({ role, text });
    this.#stopBeat = deps.scheduler.onBeat((nowMs) => this.#guarded(() => this.#beat(nowMs)));
  }

  /** In the background: what is not known when the model is first asked, is offered at the next request. */
  #findMcpTools({ config, callId, credentials = {} }: SessionSpec, remote: RemoteTools): void {
    const host = { callId, credentials, remote, notices: this.#notices };
    const found = (server: McpServer, tools: Tool[]) => {
      const named = tools.map((tool) => (this.#tools.has(tool.spec.name) ? underServer(server, tool) : tool));
      const offered = named.slice(0, Math.max(0, toolsMax - this.#tools.size));
      this.#tools.add(offered);
      if (offered.length === named.length) return;
      const message = `Of the tools of ${server.name}, ${offered.length} are offered: a model is offered ${toolsMax}`;
      this.#notices.warn("tools_cut", message, server.name);
    };
    findMcpTools(config.mcp_servers, host, this.#toolsEnd.signal, found).catch(this.#onFault);
  }

  #stageDeps({ credentials = {} }: SessionSpec): StageDeps {
    return {
      credentials,
      nowMs: () => this.#scheduler.nowMs(),
      used: (use) => this.#log.used(use),
      tell: (news) => this.#notices.send({ type: "warning", fatal: false, ...news }),
    };
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
    this.#floor.open();
    for (const { path, message } of this.#unreachable) {
      this.#notices.send({ type: "error", code: "connection_missing", message, fatal: true, ref: path });
    }
    for (const { path, message } of this.#unreachableFallbacks) this.#notices.warn("not_available", message, path);
    for (const field of this.#config.not_available) {
      this.#notices.warn(
        "not_available",
        `${field} is configured but not available yet: the call goes on without it`,
        field,
      );
    }
    const [first, ...more] = this.#config.ignored_settings ?? [];
    if (first) {
      this.#notices.warn(
        "setting_ignored",
        `Without effect on this agent's providers: ${[first, ...more].join(", ")}`,
        first,
      );
    }
    const { welcome_message } = this.#config;
    if (welcome_message.trim()) this.#floor.dispatch({ type: "welcome", text: welcome_message });
    else this.#floor.showState();
  }

  audio(bytes: Uint8Array, arrivedAtMs: number): void {
    this.#guarded(() => this.#hear(bytes, arrivedAtMs));
  }

  #hear(bytes: Uint8Array, arrivedAtMs: number): void {
    this.#greet();
    this.#floor.arrivedAtMs = arrivedAtMs;
    const durationMs = this.#caller.hear(bytes, this.#scheduler.nowMs());
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
    this.#floor.arrivedAtMs = nowMs;
    const parts = {
      floor: this.#floor,
      caller: this.#caller,
      speech: this.#speech,
      log: this.#log,
      notices: this.#notices,
      ignoresContext: this.#config.ignores_context ?? false,
      clientTools: this.#clientTools,
      transfers: this.#transfers,
      listenToClient: () => this.#listenToClient(),
      takeClientWords: (words: ClientWords) => this.#takeClientWords(words),
    };
    carryOutCommand(command, parts, nowMs);
  }

  /** Where the agent has a recognizer of its own, that is the one that counts. */
  #listenToClient(): void {
    if (this.#callerTurns.recognizes || this.#unreachable.length > 0) return;
    const late = (text: string) => this.#floor.dispatch({ type: "typed", text, urgency: "soon" });
    this.#clientWords = new ClientRecognizer(this.#scheduler, late);
    this.#callerTurns.listenWith(this.#clientWords);
  }

  #takeClientWords(words: ClientWords): void {
    if (this.#clientWords) this.#clientWords.take(words);
    else if (!this.#hasIgnoredWords) {
      this.#hasIgnoredWords = true;
      const message =
        "The agent does not listen to its client's recognition: it has a recognizer, or nobody asked it to";
      this.#notices.warn("ignored_transcript", message, "client_transcript");
    }
  }

  /** The recognizer holds the caller's turn to be over. */
  #endTurn(): void {
    const voice = this.#caller.newestVoice;
    if (!voice) return;
    this.#floor.arrivedAtMs = this.#scheduler.nowMs();
    this.#floor.dispatch({ type: "turn_end", endMs: voice.endMs, silenceMs: voice.silenceMs });
  }

  reportUnsent(unsentMs: number): void {
    this.#speech.reportUnsent(unsentMs);
  }

  reportDelivered(audioMs: number): void {
    this.#speech.reportDelivered(audioMs);
  }

  pause(): void {
    this.#guarded(() => {
      if (this.#isPaused) return;
      this.#isPaused = true;
      this.#speech.pause();
      this.#floor.dispatch({ type: "paused" });
    });
  }

  resume(): void {
    this.#guarded(() => {
      if (!this.#isPaused) return;
      this.#isPaused = false;
      const nowMs = this.#scheduler.nowMs();
      this.#caller.linkIsBack(nowMs);
      this.#floor.dispatch({ type: "resumed" });
      this.#speech.resume(nowMs);
    });
  }

  end(reason: EndReason, errorCode?: CallFailure): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#stopBeat();
    const nowMs = this.#scheduler.nowMs();
    this.#speech.hangUp(nowMs);
    this.#floor.close();
    this.#toolsEnd.abort();
    this.#tools.close();
    this.#notices.close();
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
    if (this.#isEnding) return;
    if (!this.#isPaused) {
      const wasSilentFor = this.#caller.fillGap(nowMs);
      if (wasSilentFor && !this.#caller.isMuted && !this.#speech.isTextOnly) {
        this.#notices.warn("no_input_audio", "No audio is coming in: send silence while the caller is silent");
      }
    }
    this.#floor.dispatch({ type: "tick" });
    if (nowMs < this.#usageDueMs || this.#isEnding) return;
    this.#usageDueMs += voiceLimits.usageIntervalS * 1000;
    this.#notices.send({ type: "usage", ...this.#log.usage() });
    this.#log.flush(true);
  }
}
