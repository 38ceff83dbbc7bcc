/**
 * The agent's voice in a room: frames go to LiveKit's audio source, whose queue paces them; a mark is
 * answered when what was said before it has been played; `clear` drops what was not.
 */
import { AudioFrame, AudioSource } from "@livekit/rtc-node";
import { roomAudio, roomLimits } from "#contracts/room_call.ts";

type Item = { kind: "audio"; bytes: Uint8Array } | { kind: "mark"; name: string };

export interface RoomVoiceEvents {
  /** `bytes` in all were taken by the source, or cleared. */
  taken(bytes: number): void;
  played(mark: string, cleared: boolean): void;
}

export class RoomVoice {
  readonly source = new AudioSource(roomAudio.output.sample_rate, 1, roomLimits.clientBufferMs);
  readonly #events: RoomVoiceEvents;
  #queue: Item[] = [];
  #takenBytes = 0;
  #isPumping = false;
  #isClosed = false;
  /** Marks whose sound is in the source's queue. */
  readonly #playing = new Map<string, NodeJS.Timeout>();

  constructor(events: RoomVoiceEvents) {
    this.#events = events;
  }

  say(bytes: Uint8Array): void {
    this.#queue.push({ kind: "audio", bytes });
    void this.#pump();
  }

  mark(name: string): void {
    this.#queue.push({ kind: "mark", name });
    void this.#pump();
  }

  /** Nothing of what was said before is heard from now on. */
  clear(): void {
    const dropped = this.#queue;
    this.#queue = [];
    this.source.clearQueue();
    for (const [name, timer] of this.#playing) {
      clearTimeout(timer);
      this.#events.played(name, true);
    }
    this.#playing.clear();
    for (const item of dropped) {
      if (item.kind === "mark") this.#events.played(item.name, true);
      else this.#takenBytes += item.bytes.byteLength;
    }
    this.#events.taken(this.#takenBytes);
  }

  /** Milliseconds of sound that are still to be heard. */
  get unplayedMs(): number {
    const queuedBytes = this.#queue.reduce((sum, item) => sum + (item.kind === "audio" ? item.bytes.byteLength : 0), 0);
    return queuedBytes / ((roomAudio.output.sample_rate * 2) / 1000) + this.source.queuedDuration;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#queue = [];
    for (const timer of this.#playing.values()) clearTimeout(timer);
    await this.source.close();
  }

  async #pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      for (let item = this.#queue.shift(); item && !this.#isClosed; item = this.#queue.shift()) {
        if (item.kind === "mark") this.#awaitPlayed(item.name);
        else await this.#capture(item.bytes);
      }
    } finally {
      this.#isPumping = false;
    }
  }

  async #capture(bytes: Uint8Array): Promise<void> {
    const samples = bytes.byteLength >> 1;
    // The source wants a buffer of its own, aligned, of whole samples.
    const data = new Int16Array(bytes.slice(0, samples * 2).buffer);
    try {
      await this.source.captureFrame(new AudioFrame(data, roomAudio.output.sample_rate, 1, samples));
    } catch {
      // The room is going away; its end is told by the room itself.
    }
    this.#takenBytes += bytes.byteLength;
    if (!this.#isClosed) this.#events.taken(this.#takenBytes);
  }

  #awaitPlayed(name: string): void {
    const timer = setTimeout(() => {
      this.#playing.delete(name);
      this.#events.played(name, false);
    }, this.source.queuedDuration);
    this.#playing.set(name, timer);
  }
}
