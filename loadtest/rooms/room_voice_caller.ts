/**
 * One caller in a LiveKit room, with the load and the figures of `voice_caller.ts`. Sound crosses
 * WebRTC here, both ways, and has no offsets: what is measured from outside is measured from the
 * caller's own mouth to the caller's own ear.
 */
import {
  AudioFrame,
  AudioSource,
  AudioStream,
  LocalAudioTrack,
  type RemoteTrack,
  Room,
  RoomEvent,
  TrackKind,
  TrackPublishOptions,
  TrackSource,
} from "@livekit/rtc-node";
import { type SentMessage, voiceProtocol } from "#contracts/voice_protocol.ts";
import type { Caller } from "../calls/run.ts";
import type { CallersShared } from "../calls/voice_caller.ts";
import { callerFrameMs } from "../kit/caller_speech.ts";

const rateHz = 16_000;
const connectMsMax = 30_000;
/** RMS of 16-bit samples: above it somebody speaks. */
const audibleAbove = 200;
const framesUnderWayMax = 5;
/** What the jitter buffer may hold of speech that was cleared. */
const tailMs = 300;

export class RoomVoiceCaller implements Caller {
  readonly #open: () => Promise<{ token: string; url: string } | { code: string }>;
  readonly #firstFrame: number;
  readonly #shared: CallersShared;
  readonly #room = new Room();
  readonly #source = new AudioSource(rateHz, 1, 1000);
  #state: "dialling" | "talking" | "hanging up" | "closed" = "dialling";
  #framesSent = 0;
  #framesUnderWay = 0;
  #lastSeq = 0;
  #endReason = "";
  #wasLoud = false;
  /** When the caller's newest sentence began, and when its newest loud frame was sent. */
  #spokeFromMs = 0;
  #spokeUntilMs = 0;
  #awaitsAnswer = false;
  #clearedAtMs: number | undefined;
  #heardAtMs: number | undefined;
  #wake: () => void = () => {};

  /** @param open asks for the room; @param firstFrame the frame of the loop to begin with */
  constructor(
    open: () => Promise<{ token: string; url: string } | { code: string }>,
    firstFrame: number,
    shared: CallersShared,
  ) {
    this.#open = open;
    this.#firstFrame = firstFrame;
    this.#shared = shared;
  }

  get isTalking(): boolean {
    return this.#state === "talking";
  }

  async connect(): Promise<string> {
    const { figures } = this.#shared;
    const refused = (code: string) => {
      this.#state = "closed";
      figures.refused.add(code);
      return code;
    };
    const ticket = await this.#open().catch(() => ({ code: "no_answer" }));
    if ("code" in ticket) return refused(ticket.code);
    const dialledAtMs = performance.now();
    const started = new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), connectMsMax);
      this.#wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
    this.#listen();
    const joined = this.#join(ticket).then(
      () => "joined",
      () => "no_room",
    );
    if (!(await started))
      return refused((await Promise.race([joined, "no_room"])) === "joined" ? "no_call" : "no_room");
    await joined;
    figures.admitted += 1;
    figures.connectMs.record(performance.now() - dialledAtMs);
    this.#state = "talking";
    return "admitted";
  }

  async #join({ url, token }: { url: string; token: string }): Promise<void> {
    await this.#room.connect(url, token, { autoSubscribe: true, dynacast: false });
    const options = new TrackPublishOptions();
    options.source = TrackSource.SOURCE_MICROPHONE;
    const track = LocalAudioTrack.createAudioTrack("microphone", this.#source);
    await this.#room.localParticipant?.publishTrack(track, options);
  }

  sendFrame(nowMs: number): void {
    if (this.#state !== "talking") return;
    const { frames } = this.#shared.speech;
    const bytes = frames[(this.#firstFrame + this.#framesSent) % frames.length];
    this.#framesSent += 1;
    this.#shared.figures.framesSent += 1;
    if (!bytes) return;
    const samples = new Int16Array(bytes.slice().buffer);
    if (rmsOf(samples) > audibleAbove) {
      // Pauses within a sentence are shorter than the end-of-speech wait.
      if (nowMs - this.#spokeUntilMs > this.#shared.eosSilenceMs) this.#spokeFromMs = nowMs;
      this.#spokeUntilMs = nowMs;
    }
    // Every frame under way is asked about every event of the process: too many, and all stand still.
    if (this.#framesUnderWay >= framesUnderWayMax) {
      this.#shared.figures.warnings.add("frame_dropped_by_load_tool");
      return;
    }
    this.#framesUnderWay += 1;
    void this.#source
      .captureFrame(new AudioFrame(samples, rateHz, 1, samples.length))
      .catch(() => undefined)
      .then(() => {
        this.#framesUnderWay -= 1;
      });
  }

  async hangUp(withinMs: number): Promise<void> {
    if (this.#state === "talking") {
      await this.#countConcealed();
      this.#state = "hanging up";
      const over = new Promise<void>((resolve) => {
        this.#wake = resolve;
        setTimeout(resolve, withinMs).unref();
      });
      const hangUp = new TextEncoder().encode('{"type":"hang_up"}');
      await this.#room.localParticipant?.publishData(hangUp, { reliable: true, topic: voiceProtocol });
      await over;
      if (this.#endReason === "") this.#shared.figures.dropped.add("no call_ended");
    }
    this.#state = "closed";
    const left = this.#room.disconnect().then(() => this.#source.close());
    await Promise.race([left, new Promise((resolve) => setTimeout(resolve, withinMs).unref())]);
  }

  #listen(): void {
    this.#room.on(RoomEvent.DataReceived, (payload, _participant, _kind, topic) => {
      if (topic === voiceProtocol) this.#take(JSON.parse(new TextDecoder().decode(payload)) as SentMessage);
    });
    this.#room.on(RoomEvent.TrackSubscribed, (track) => {
      if (track.kind === TrackKind.KIND_AUDIO) void this.#hear(track);
    });
    this.#room.on(RoomEvent.Disconnected, (reason) => {
      if (this.#state === "talking") this.#shared.figures.dropped.add(`${reason} ${this.#endReason || "lost"}`);
      if (this.#state !== "hanging up") this.#state = "closed";
    });
  }

  #take(message: SentMessage): void {
    const { figures, minInterruptMs } = this.#shared;
    const nowMs = performance.now();
    if (message.seq !== this.#lastSeq + 1) figures.sequenceGaps += 1;
    this.#lastSeq = message.seq;
    switch (message.type) {
      case "call_started":
        this.#wake();
        return;
      case "user_speech_stopped":
        this.#awaitsAnswer = true;
        return;
      case "agent_speech_started":
        this.#clearedAtMs = undefined;
        return;
      case "clear":
        this.#clearedAtMs = nowMs;
        if (message.reason === "user_speech") figures.bargeInMs.record(nowMs - this.#spokeFromMs - minInterruptMs);
        return;
      case "turn_metrics":
        figures.recordTurn(message);
        return;
      case "warning":
      case "error":
        figures.warnings.add(message.code);
        return;
      case "call_ended":
        this.#endReason = message.reason;
        this.#wake();
        return;
    }
  }

  async #hear(track: RemoteTrack): Promise<void> {
    const reader = new AudioStream(track, {
      sampleRate: rateHz,
      numChannels: 1,
      frameSizeMs: callerFrameMs,
    }).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || !value) return;
      if (this.#state === "talking") this.#heard(value.data, performance.now());
    }
  }

  /** 20 ms of the agent's track, which is silence while the agent does not speak. */
  #heard(samples: Int16Array, nowMs: number): void {
    const { figures, eosSilenceMs, providerDelayMs } = this.#shared;
    const isLoud = rmsOf(samples) > audibleAbove;
    figures.framesReceived += 1;
    if (this.#heardAtMs !== undefined) figures.jitterMs.record(Math.abs(nowMs - this.#heardAtMs - callerFrameMs));
    this.#heardAtMs = nowMs;
    if (isLoud) {
      figures.outputAudioMs += callerFrameMs;
      if (this.#clearedAtMs !== undefined && nowMs - this.#clearedAtMs > tailMs) figures.framesAfterClear += 1;
      if (this.#awaitsAnswer && !this.#wasLoud) {
        this.#awaitsAnswer = false;
        figures.answerMs.record(nowMs - this.#spokeUntilMs - eosSilenceMs - providerDelayMs);
      }
    }
    this.#wasLoud = isLoud;
  }

  /** Sound that WebRTC had to make up because it came too late or not at all counts as underruns. */
  async #countConcealed(): Promise<void> {
    const { subscriberStats = [] } = (await this.#room.getRtcStats().catch(() => undefined)) ?? {};
    for (const { stats } of subscriberStats) {
      if (stats.case !== "inboundRtp") continue;
      const { concealedSamples = 0n, silentConcealedSamples = 0n } = stats.value.inbound ?? {};
      this.#shared.figures.underruns += Math.ceil(Number(concealedSamples - silentConcealedSamples) / 960);
    }
  }
}

function rmsOf(samples: Int16Array): number {
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
}
