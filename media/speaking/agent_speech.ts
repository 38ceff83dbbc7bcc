/**
 * The agent's side of the floor: plays one answer at a time, knows which text was heard, holds what a
 * barge-in cut off and goes on with it. One answer may span several utterances.
 */
import type { AudioFormat } from "#contracts/audio_format.ts";
import type { Answer, AnswerEvent } from "../answering/answer.ts";
import type { Encoder } from "../audio/encoder.ts";
import type { SessionSink } from "../media_host.ts";
import type { CallLog } from "../session/call_log.ts";
import type { Notices } from "../session/notices.ts";
import type { ClearReason } from "../session/turns.ts";
import { AgentJob } from "./agent_job.ts";
import { AnswerPace } from "./answer_pace.ts";
import { reportEvent } from "./answer_report.ts";
import { SpeechOutput } from "./speech_output.ts";
import { SpokenItem } from "./spoken_item.ts";

/** What `AgentSpeech` needs of its session. */
export interface AgentSpeechHost {
  nowMs(): number;
  /** Milliseconds since the call began. */
  callMs(nowMs: number): number;
  /** The first audio of the job is about to leave. */
  onSpeaking(): void;
  /** The agent is silent because its tools run, or no longer. */
  onToolWait(isWaiting: boolean): void;
  /** The job is over: heard to its end or without a sound. `failed`: the model broke off, or no clause could be spoken. */
  onDone(leaves: boolean, failed: boolean): void;
  onFault(cause: unknown): void;
}

export class AgentSpeech {
  readonly #host: AgentSpeechHost;
  readonly #notices: Notices;
  readonly #sink: SessionSink;
  readonly #log: CallLog;
  readonly #output: SpeechOutput;
  #job: AgentJob | undefined;
  readonly #pace = new AnswerPace({
    hasRoom: () => this.#output.hasRoom,
    isQuiet: () => this.#output.isQuiet(this.#host.nowMs()),
  });
  #items = 0;

  /** `encoder` stays its owner's to close. */
  constructor(
    { format, leadMs }: { format: AudioFormat; leadMs: number },
    encoder: Encoder,
    host: AgentSpeechHost,
    out: { sink: SessionSink; notices: Notices; log: CallLog },
  ) {
    this.#host = host;
    this.#notices = out.notices;
    this.#sink = out.sink;
    this.#log = out.log;
    this.#output = new SpeechOutput(format, leadMs, encoder, {
      frame: (bytes, durationMs) => this.#sendFrame(bytes, durationMs),
      mark: (name) => this.#notices.send({ type: "mark", name }),
    });
  }

  /** The number of the next transcript item, the caller's included. */
  nextItemId(): string {
    this.#items += 1;
    return `item_${this.#items}`;
  }

  /** The newest utterance, if there was any. */
  get lastUtteranceId(): string | undefined {
    return this.#output.lastUtteranceId;
  }

  /** Whether the client wants no sound. */
  get isTextOnly(): boolean {
    return this.#pace.isTextOnly;
  }

  set isTextOnly(isTextOnly: boolean) {
    this.#pace.isTextOnly = isTextOnly;
  }

  /** Whether the client hears the agent now. */
  get isHeard(): boolean {
    return this.#job?.item.isAnnounced === true && !this.#job.held;
  }

  /** Whether the agent asks something at this moment, or has just asked it. */
  isAsking(nowMs: number): boolean {
    const job = this.#job;
    return job?.item.isAnnounced === true && job.item.asksAt(this.#output.heardMs(nowMs), this.#output.pushedMs);
  }

  /** Plays an answer to its end. `onDone` follows, unless it is stopped or discarded. */
  play(answer: Answer): void {
    const job = new AgentJob(answer, this.nextItemId(), this.#notices, this.#log);
    this.#job = job;
    const events = answer.events(this.#pace.gateOf(job));
    // A given text is shown before the state that follows from it.
    for (const event of events.ready()) this.#take(job, event);
    this.#follow(job, events).catch((cause) => this.#host.onFault(cause));
  }

  async #follow(job: AgentJob, events: AsyncIterable<AnswerEvent>): Promise<void> {
    for await (const event of events) this.#take(job, event);
    if (!job.answer.isStopped) this.#generated(job);
  }

  #take(job: AgentJob, event: AnswerEvent): void {
    switch (event.type) {
      case "text":
        job.growText(event.text, this.#callMs());
        if (event.isFiller) job.fillers.push(event.text);
        return;
      case "clause":
        job.item.clauseBegins(event.text, this.#output.pushedMs);
        this.#log.count((usage) => {
          usage.tts_characters += event.text.length;
        });
        return;
      case "audio":
        if (this.#pace.isTextOnly) return;
        this.#output.push(event.pcm);
        this.pump(this.#host.nowMs());
        return;
      case "clause_done":
        job.item.clauseEnds(this.#output.pushedMs, event.failed);
        return;
      case "tools":
        job.isUsingTools = event.running;
        this.#showTools(job);
        return;
      case "leaves":
        job.leaves = true;
        return;
      case "failed":
        job.failedStages.add(event.stage);
        this.#notices.fail(event.stage, event.cause);
        return;
      default:
        reportEvent(event, this.#notices, this.#log);
    }
  }

  /** The answer has given all that it has. */
  #generated(job: AgentJob): void {
    job.isGenerated = true;
    const tail = this.#output.takeTail();
    if (job.held) {
      job.rest?.push(tail);
      return;
    }
    job.finishText();
    this.#output.finish(tail);
    this.pump(this.#host.nowMs());
  }

  /** Its tools are what is waited for, as long as nothing of it is heard. */
  #showTools(job: AgentJob): void {
    const isWaiting = job.isUsingTools && !job.held && this.#output.isQuiet(this.#host.nowMs());
    if (job.isWaitingForTools === isWaiting) return;
    job.isWaitingForTools = isWaiting;
    this.#host.onToolWait(isWaiting);
  }

  #callMs(): number {
    return this.#host.callMs(this.#host.nowMs());
  }

  /** Sends what is due, and ends what was heard to its end. */
  pump(nowMs: number): void {
    const job = this.#job;
    if (!job || job.held) return;
    this.#output.pump(nowMs);
    this.#showTools(job);
    if (this.#pace.isWaitedFor && this.#output.hasRoom) this.#pace.wake();
    // What was sent may have ended the job.
    if (this.#job !== job || !job.isGenerated || this.#pace.isPaused) return;
    if (this.#output.isOver(nowMs)) this.#complete(job, nowMs);
  }

  #complete(job: AgentJob, nowMs: number): void {
    const ended = this.#output.end(nowMs);
    this.#job = undefined;
    if (ended && job.item.isAnnounced) job.ends(ended.utteranceId, ended.audioMs, false);
    const heard = this.#pace.isTextOnly
      ? job.item.text
      : job.item.heardToTheEnd(ended?.audioMs ?? 0, ended?.heardMs ?? 0);
    job.keep(heard, false, this.#host.callMs(nowMs), ended?.basis);
    job.sendMetrics(false);
    this.#host.onDone(job.leaves, job.hasFailed);
  }

  #sendFrame(bytes: Uint8Array, durationMs: number): void {
    const job = this.#job;
    if (!job) return;
    if (!job.item.isAnnounced) this.#announce(job);
    this.#log.count((usage) => {
      usage.output_audio_ms += durationMs;
    });
    this.#sink.audio(bytes, durationMs);
  }

  #announce(job: AgentJob): void {
    job.item.isAnnounced = true;
    job.timing?.note("audio_out", this.#host.nowMs());
    this.#host.onSpeaking();
    const { utteranceId } = this.#output;
    if (utteranceId) job.begins(utteranceId);
  }

  /**
   * Stops what is in the air. `hold` keeps what was not heard, to be gone on with.
   * `afterClear` runs when the client was told to drop what it has, before it is told what was heard.
   */
  stop(reason: ClearReason, hold: boolean, afterClear: () => void, nowMs: number): void {
    const job = this.#job;
    if (!job) {
      afterClear();
      return;
    }
    job.held = hold;
    if (!hold) this.#abandon(job);
    const cut = this.#output.cut(nowMs);
    if (!hold) this.#output.dropTail();
    const heard = job.item.isAnnounced ? cut : undefined;
    if (heard) this.#notices.send({ type: "clear", utterance_id: heard.utteranceId, reason });
    afterClear();
    if (heard) this.#truncate(job, heard, nowMs);
    else if (hold && cut) job.rest = cut.rest;
    else if (!hold) this.#forgetUnheard(job, nowMs);
  }

  #abandon(job: AgentJob): void {
    this.#job = undefined;
    job.answer.stop();
    this.#pace.wake();
  }

  /** Tells what of a cut utterance was heard, and closes its item. */
  #truncate(job: AgentJob, cut: NonNullable<ReturnType<SpeechOutput["cut"]>>, nowMs: number): void {
    const { item } = job;
    const text = item.cut(cut.playedMs, cut.audioMs);
    job.wasCut(cut.utteranceId, cut.playedMs, text.heard);
    job.keep(text.heard, true, this.#host.callMs(nowMs), cut.basis);
    job.sendMetrics(true);
    if (!job.held) return;
    job.rest = cut.rest;
    job.item = new SpokenItem(job.answer.plan.turnId, this.nextItemId(), text.rest, item.unsaid(text));
  }

  /** The held job turned out to be unwanted, or the job in the making is. */
  discard(nowMs: number): void {
    const job = this.#job;
    if (!job) return;
    this.#abandon(job);
    this.#output.cut(nowMs);
    this.#output.dropTail();
    this.#forgetUnheard(job, nowMs);
  }

  /** Text that nobody heard: closed for the client, kept in the record as not heard. */
  #forgetUnheard(job: AgentJob, nowMs: number): void {
    if (job.item.isShown) {
      job.finishText();
      job.keep("", true, this.#host.callMs(nowMs));
    }
    job.sendMetrics(true);
  }

  /** Goes on with the held job from the sample where it was cut. */
  goOn(nowMs: number): void {
    const job = this.#job;
    if (!job?.held) return;
    job.held = false;
    if (job.rest) {
      this.#output.goOn(job.rest, job.isGenerated);
      job.rest = undefined;
      const transcript = job.item.goesOn(this.#callMs(), job.isGenerated);
      if (transcript) this.#notices.send(transcript);
    }
    this.#pace.wake();
    this.pump(nowMs);
  }

  heardMark(name: string, cleared: boolean, nowMs: number): void {
    if (!cleared && name === `start:${this.#output.utteranceId}`) this.#job?.timing?.note("playout", nowMs);
    this.#output.heardMark(name, cleared, nowMs);
    this.pump(nowMs);
  }

  setCapabilities(capabilities: { marks?: boolean | undefined; leadMs?: number | undefined }): void {
    this.#output.setCapabilities(capabilities);
  }

  reportUnsent(unsentMs: number): void {
    this.#output.reportUnsent(unsentMs);
  }

  reportDelivered(audioMs: number): void {
    this.#output.reportDelivered(audioMs);
  }

  pause(): void {
    this.#pace.isPaused = true;
    const againMs = this.#output.pause();
    if (againMs === 0) return;
    this.#sink.dropUnsent();
    this.#log.count((usage) => {
      usage.output_audio_ms -= againMs;
    });
  }

  resume(nowMs: number): void {
    this.#pace.isPaused = false;
    this.#output.resume();
    this.#pace.wake();
    this.pump(nowMs);
  }

  /** The call ends: what was in the air is cut, for the record alone. */
  hangUp(nowMs: number): void {
    const job = this.#job;
    if (!job) return;
    this.#abandon(job);
    const cut = this.#output.cut(nowMs);
    const callMs = this.#host.callMs(nowMs);
    if (cut && job.item.isAnnounced) job.keep(job.item.cut(cut.playedMs, cut.audioMs).heard, true, callMs, cut.basis);
    else if (job.item.isShown) job.keep("", true, callMs);
    job.sendMetrics(true);
  }

  close(): void {
    this.#output.dropTail();
  }
}
