/**
 * The agent's side of the floor: runs one answer or `say` at a time, gives its sound to the
 * playout, knows which text was heard, holds what a barge-in cut off and goes on with it.
 * One job may span several utterances: after `clear` no byte of an utterance follows, so what is
 * gone on with is a new one.
 */
import type { AudioFormat } from "#contracts/audio_format.ts";
import { frameMsFor } from "#contracts/audio_format.ts";
import type { ServerMessageOf } from "#contracts/voice_protocol.ts";
import type { Pcm } from "#providers/provider.ts";
import type { AnswerHooks } from "../answering/answer.ts";
import type { Encoder } from "../audio/encoder.ts";
import type { SessionMessage, SessionSink } from "../media_host.ts";
import type { CallLog } from "../session/call_log.ts";
import { type TurnTiming, tenths } from "../session/turn_timing.ts";
import type { ClearReason } from "../session/turns.ts";
import { OutputRate } from "./output_rate.ts";
import { type Cut, Playout } from "./playout.ts";
import { SpokenItem } from "./spoken_item.ts";

type Source = ServerMessageOf<"agent_speech_started">["source"];

/** What `AgentSpeech` needs of its session. */
export interface AgentSpeechHost {
  nowMs(): number;
  /** Milliseconds since the call began. */
  callMs(nowMs: number): number;
  send(message: SessionMessage): void;
  /** The first audio of the job is about to leave. */
  onSpeaking(): void;
  /** The job is over: heard to its end or without a sound. */
  onDone(leaves: boolean): void;
  onFault(cause: unknown): void;
}

export interface AgentSpeechOptions {
  format: AudioFormat;
  leadMs: number;
}

/** A job of the agent: an answer, or something to say. */
interface RunningJob {
  turnId: string;
  source: Source;
  timing: TurnTiming | undefined;
  abort: AbortController;
  /** The pipeline has nothing more to give. */
  isGenerated: boolean;
  leaves: boolean;
  held: boolean;
  /** What a barge-in left unsaid, as long as it may be taken back. */
  rest: Int16Array[] | undefined;
  item: SpokenItem;
}

export class AgentSpeech {
  readonly #host: AgentSpeechHost;
  readonly #sink: SessionSink;
  readonly #log: CallLog;
  readonly #format: AudioFormat;
  readonly #playout: Playout;
  readonly #encoder: Encoder;
  readonly #rate: OutputRate;
  #job: RunningJob | undefined;
  #waiting: (() => void)[] = [];
  #utterances = 0;
  #items = 0;
  #isPaused = false;
  #sendsMarks = true;
  isTextOnly = false;

  /** `encoder` stays its owner's to close. */
  constructor(options: AgentSpeechOptions, encoder: Encoder, host: AgentSpeechHost, sink: SessionSink, log: CallLog) {
    this.#host = host;
    this.#sink = sink;
    this.#log = log;
    this.#format = options.format;
    this.#encoder = encoder;
    this.#rate = new OutputRate(options.format.sample_rate);
    this.#playout = new Playout(
      { sampleRateHz: options.format.sample_rate, frameMs: frameMsFor(options.format), leadMs: options.leadMs },
      { frame: (samples) => this.#sendFrame(samples), mark: (name) => this.#sendMark(name) },
    );
  }

  /** The number of the next transcript item, the caller's included. */
  nextItemId(): string {
    this.#items += 1;
    return `item_${this.#items}`;
  }

  /** The newest utterance, if there was any. */
  get lastUtteranceId(): string | undefined {
    return this.#utterances > 0 ? `utt_${this.#utterances}` : undefined;
  }

  /** Begins a job; `run` drives the pipeline with these hooks until it has nothing more to give. */
  begin(
    job: { turnId: string; source: Source; timing: TurnTiming | undefined },
    extra: Pick<AnswerHooks, "used" | "runTool" | "tooManySteps" | "failed">,
    run: (hooks: AnswerHooks, signal: AbortSignal) => Promise<void>,
  ): void {
    const running: RunningJob = {
      ...job,
      abort: new AbortController(),
      isGenerated: false,
      leaves: false,
      held: false,
      rest: undefined,
      item: new SpokenItem(job.turnId, this.nextItemId()),
    };
    this.#job = running;
    run(this.#hooksFor(running, extra), running.abort.signal)
      .then(() => this.#generated(running))
      .catch((cause) => this.#host.onFault(cause));
  }

  /** The pipeline has given all that it has. */
  #generated(job: RunningJob): void {
    if (job.abort.signal.aborted) return;
    job.isGenerated = true;
    const tail = this.#rate.takeTail();
    if (job.held) {
      job.rest?.push(tail);
      return;
    }
    this.#playout.push(tail);
    this.#finishText(job);
    this.#playout.finish();
    this.pump(this.#host.nowMs());
  }

  #hooksFor(job: RunningJob, extra: Pick<AnswerHooks, "used" | "runTool" | "tooManySteps" | "failed">): AnswerHooks {
    const speech = this;
    const { signal } = job.abort;
    return {
      get spoken() {
        return !speech.isTextOnly;
      },
      async mayGoOn() {
        while (!signal.aborted && (job.held || speech.#isPaused)) await speech.#change();
        return !signal.aborted;
      },
      async mayPush() {
        while (!signal.aborted && (job.held || speech.#isPaused || !speech.#playout.hasRoom)) await speech.#change();
        return !signal.aborted;
      },
      note: (moment) => job.timing?.note(moment, speech.#host.nowMs()),
      textGrew: (delta) => speech.#growText(job, delta),
      clauseBegins: (text) => job.item.clauseBegins(text, speech.#playout.pushedMs),
      audio: (pcm) => speech.#push(job, pcm),
      clauseEnds: () => job.item.clauseEnds(speech.#playout.pushedMs),
      charactersSpoken: (count) =>
        speech.#log.count((usage) => {
          usage.tts_characters += count;
        }),
      used: extra.used,
      tooManySteps: extra.tooManySteps,
      failed: extra.failed,
      runTool: (call) => {
        const outcome = extra.runTool(call);
        if (outcome.leaves) job.leaves = true;
        return outcome;
      },
    };
  }

  /** Resolves at the next change of what a stage may wait for. */
  #change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  #growText(job: RunningJob, delta: string): void {
    job.item.grow(delta, this.#callMs());
    if (!job.held) this.#host.send(job.item.show(delta));
  }

  #finishText(job: RunningJob): void {
    const transcript = job.item.finish();
    if (transcript) this.#host.send(transcript);
  }

  #callMs(): number {
    return this.#host.callMs(this.#host.nowMs());
  }

  #push(job: RunningJob, pcm: Pcm): void {
    if (job.abort.signal.aborted || this.isTextOnly) return;
    if (!this.#playout.utteranceId) this.#beginUtterance();
    this.#playout.push(this.#rate.convert(pcm));
    this.pump(this.#host.nowMs());
  }

  #beginUtterance(): void {
    this.#utterances += 1;
    this.#playout.begin(`utt_${this.#utterances}`);
  }

  /** Sends what is due, and ends what was heard to its end. */
  pump(nowMs: number): void {
    const job = this.#job;
    if (!job || job.held) return;
    this.#playout.pump(nowMs);
    if (this.#waiting.length > 0 && this.#playout.hasRoom) this.#wake();
    // What was sent may have ended the job.
    if (this.#job !== job || !job.isGenerated || this.#isPaused) return;
    if (this.#playout.utteranceId && !this.#playout.isOver(nowMs)) return;
    this.#completeJob(job, nowMs);
  }

  #completeJob(job: RunningJob, nowMs: number): void {
    const ended = this.#playout.end();
    this.#job = undefined;
    if (ended && job.item.isAnnounced) {
      const { utteranceId, audioMs } = ended;
      this.#host.send({
        type: "agent_speech_done",
        ...this.#labels(job, utteranceId),
        audio_ms: tenths(audioMs),
        interrupted: false,
      });
    }
    const heard = this.isTextOnly ? job.item.text : job.item.heardToTheEnd(ended?.audioMs ?? 0);
    this.#logItem(job, heard, false, nowMs);
    this.#sendMetrics(job, false);
    this.#host.onDone(job.leaves);
  }

  #labels(job: RunningJob, utteranceId: string) {
    return { turn_id: job.turnId, utterance_id: utteranceId, source: job.source };
  }

  #sendFrame(samples: Int16Array): void {
    const job = this.#job;
    if (!job) return;
    if (!job.item.isAnnounced) this.#announce(job);
    const durationMs = (samples.length * 1000) / this.#format.sample_rate;
    this.#log.count((usage) => {
      usage.output_audio_ms += durationMs;
    });
    this.#sink.audio(this.#encoder.encode(this.#padded(samples)), durationMs);
  }

  /** An Opus packet is always a full frame; the other encodings end an utterance with the samples that there are. */
  #padded(samples: Int16Array): Int16Array {
    if (this.#format.encoding !== "opus" || samples.length === this.#encoder.frameSamples) return samples;
    const frame = new Int16Array(this.#encoder.frameSamples);
    frame.set(samples);
    return frame;
  }

  #announce(job: RunningJob): void {
    job.item.isAnnounced = true;
    job.timing?.note("audio_out", this.#host.nowMs());
    this.#host.onSpeaking();
    const utteranceId = this.#playout.utteranceId;
    if (utteranceId) this.#host.send({ type: "agent_speech_started", ...this.#labels(job, utteranceId) });
  }

  #sendMark(name: string): void {
    if (this.#sendsMarks) this.#host.send({ type: "mark", name });
  }

  /** Stops what is in the air. `hold` keeps what was not heard, to be gone on with. */
  stop(reason: ClearReason, hold: boolean, between: () => void, nowMs: number): void {
    const job = this.#job;
    if (!job) {
      between();
      return;
    }
    job.held = hold;
    if (!hold) this.#abandon(job);
    const cut = this.#playout.cut(nowMs);
    if (!hold) this.#rate.drop();
    const wasHeard = cut !== undefined && job.item.isAnnounced;
    if (wasHeard) this.#host.send({ type: "clear", utterance_id: cut.utteranceId, reason });
    between();
    if (wasHeard) this.#truncate(job, cut, hold, nowMs);
    else if (hold && cut) job.rest = cut.rest;
    else if (!hold) this.#forgetUnheard(job, nowMs);
  }

  #abandon(job: RunningJob): void {
    this.#job = undefined;
    job.abort.abort();
    this.#wake();
  }

  /** Tells what of a cut utterance was heard, and closes its item. */
  #truncate(job: RunningJob, cut: Cut, hold: boolean, nowMs: number): void {
    const { item } = job;
    const text = item.cut(cut.playedMs, cut.playedMs + this.#lengthMs(cut.rest));
    this.#host.send({
      type: "truncated",
      utterance_id: cut.utteranceId,
      played_ms: tenths(cut.playedMs),
      spoken_text: text.heard,
      full_text: item.text,
    });
    this.#finishText(job);
    this.#host.send({
      type: "agent_speech_done",
      ...this.#labels(job, cut.utteranceId),
      audio_ms: tenths(cut.playedMs),
      interrupted: true,
    });
    this.#logItem(job, text.heard, true, nowMs);
    this.#sendMetrics(job, true);
    if (!hold) return;
    job.rest = cut.rest;
    job.item = new SpokenItem(job.turnId, this.nextItemId(), text.rest, item.unsaid(text));
  }

  #lengthMs(chunks: readonly Int16Array[]): number {
    return (chunks.reduce((sum, chunk) => sum + chunk.length, 0) * 1000) / this.#format.sample_rate;
  }

  /** The held job turned out to be unwanted, or the job in the making is. */
  discard(nowMs: number): void {
    const job = this.#job;
    if (!job) return;
    this.#abandon(job);
    this.#playout.cut(nowMs);
    this.#rate.drop();
    this.#forgetUnheard(job, nowMs);
  }

  /** Text that nobody heard: closed for the client, kept in the record as not heard. */
  #forgetUnheard(job: RunningJob, nowMs: number): void {
    if (job.item.isShown) {
      this.#finishText(job);
      this.#logItem(job, "", true, nowMs);
    }
    this.#sendMetrics(job, true);
  }

  /** Goes on with the held job from the sample where it was cut. */
  goOn(nowMs: number): void {
    const job = this.#job;
    if (!job?.held) return;
    job.held = false;
    if (job.rest) {
      this.#beginUtterance();
      for (const chunk of job.rest) this.#playout.push(chunk);
      job.rest = undefined;
      const transcript = job.item.goesOn(this.#callMs(), job.isGenerated);
      if (transcript) this.#host.send(transcript);
      if (job.isGenerated) this.#playout.finish();
    }
    this.#wake();
    this.pump(nowMs);
  }

  #logItem(job: RunningJob, heard: string, interrupted: boolean, nowMs: number): void {
    this.#log.remember({ role: "agent", text: heard });
    const record = job.item.record(heard, interrupted, this.#host.callMs(nowMs));
    if (record) this.#log.item(record);
  }

  /** Once for each answered turn; the record grows by what was said and by the figures. */
  #sendMetrics(job: RunningJob, interrupted: boolean): void {
    if (job.timing) {
      const metrics = job.timing.metrics(interrupted);
      job.timing = undefined;
      this.#log.turn(metrics);
      this.#host.send({ type: "turn_metrics", ...metrics });
    }
    this.#log.flush();
  }

  heardMark(name: string, cleared: boolean, nowMs: number): void {
    if (!cleared && name === `start:${this.#playout.utteranceId}`) this.#job?.timing?.note("playout", nowMs);
    this.#playout.heardMark(name, cleared, nowMs);
    this.pump(nowMs);
  }

  setCapabilities(capabilities: { marks?: boolean | undefined; leadMs?: number | undefined }): void {
    if (capabilities.marks !== undefined) this.#sendsMarks = capabilities.marks;
    if (capabilities.leadMs !== undefined) this.#playout.limitLead(capabilities.leadMs);
  }

  reportUnsent(unsentMs: number): void {
    this.#playout.reportUnsent(unsentMs);
  }

  pause(): void {
    this.#isPaused = true;
    this.#playout.pause();
  }

  resume(nowMs: number): void {
    this.#isPaused = false;
    this.#playout.resume();
    this.#wake();
    this.pump(nowMs);
  }

  /** Whether the client hears the agent now. */
  get isHeard(): boolean {
    return this.#job?.item.isAnnounced === true && !this.#job.held;
  }

  /** The call ends: what was in the air is cut, for the record alone. */
  hangUp(nowMs: number): void {
    const job = this.#job;
    if (!job) return;
    this.#abandon(job);
    const cut = this.#playout.cut(nowMs);
    if (cut && job.item.isAnnounced) {
      const audioMs = cut.playedMs + this.#lengthMs(cut.rest);
      this.#logItem(job, job.item.cut(cut.playedMs, audioMs).heard, true, nowMs);
    } else if (job.item.isShown) this.#logItem(job, "", true, nowMs);
    this.#sendMetrics(job, true);
  }

  close(): void {
    this.#rate.drop();
  }
}
