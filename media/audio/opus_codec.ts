/**
 * Opus (RFC 6716) on the libopus that `opusscript` compiled: mono, 20 ms frames out, any packet in.
 *
 * The package's own JavaScript is passed by: it lays its buffers at twice the address that it
 * allocated, over whatever lives there, and each instance that it deletes leaves 23 KB behind. So
 * there is one module a rate and thread with one set of buffers, and an instance that a call gives
 * back is reset for the next call, never destroyed.
 */
import createModule, { type OpusHandler, type OpusModule } from "opusscript/build/opusscript_native_wasm.js";
import { MediaFullError } from "../media_host.ts";

/** Live instances a thread; more than this thread's share of a core could serve. */
export const opusInstancesMax = 64;

export interface OpusOptions {
  /** 0 … 10; 5 costs about half of 10 and is hard to tell from it in speech. */
  complexity?: number;
  /** In-band forward error correction for an expected loss of 5 %; default off: TCP loses nothing. */
  fec?: boolean;
  /** Packets of one or two bytes while the agent is silent; default off: between utterances nothing is sent. */
  dtx?: boolean;
  /** Bits a second; libopus chooses by rate otherwise. */
  bitrate?: number;
}

export interface OpusCodec {
  readonly sampleRateHz: number;
  /** One packet of a frame of 20 ms; the bytes are the caller's to keep. */
  encode(frame: Int16Array): Uint8Array;
  /** The samples of one packet, 2.5 to 120 ms: a view that the thread's next decode overwrites. A bad packet is concealed. */
  decode(packet: Uint8Array): Int16Array;
  /** Packets that could not be decoded. */
  readonly badPackets: number;
  /** Gives the instance back. Idempotent; nothing may be coded afterwards. */
  close(): void;
}

const applicationVoip = 2048;
/** Requests of `opus_defines.h`. */
const ctl = {
  setBitrate: 4002,
  setComplexity: 4010,
  setInbandFec: 4012,
  setPacketLossPercent: 4014,
  setDtx: 4016,
  resetState: 4028,
} as const;
/** OPUS_AUTO: libopus chooses. */
const auto = -1000;

const frameMs = 20;
/** 120 ms at 48 kHz: the longest packet there is; libopus never writes more. */
const decodedSamplesMax = 5760;
/** No packet is longer: 6 frames of 1275 bytes and their lengths (RFC 6716, 3.2). */
const packetBytesMax = 7680;

interface Workshop {
  module: OpusModule;
  framePointer: number;
  packetPointer: number;
  decodedPointer: number;
  idle: OpusHandler[];
}

const workshops = new Map<number, Workshop>();
let live = 0;
/** Every codec of the thread decodes into this. */
const decoded = new Int16Array(decodedSamplesMax);

/** Whether `count` more instances fit into this thread. */
export function canOpenOpus(count = 1): boolean {
  return live + count <= opusInstancesMax;
}

/**
 * Takes an instance for one rate: it encodes and decodes, independently.
 * @throws MediaFullError when 64 are open in this thread; RangeError when the rate is none of Opus
 */
export function openOpusCodec(sampleRateHz: number, options: OpusOptions = {}): OpusCodec {
  if (![8000, 16_000, 24_000, 48_000].includes(sampleRateHz)) {
    throw new RangeError(`Cannot open Opus at ${sampleRateHz} Hz: expected 8000, 16000, 24000 or 48000`);
  }
  if (!canOpenOpus()) throw new MediaFullError(`Cannot open another Opus instance: ${opusInstancesMax} are open`);
  const workshop = workshopFor(sampleRateHz);
  const handler = workshop.idle.pop() ?? new workshop.module.OpusScriptHandler(sampleRateHz, 1, applicationVoip);
  try {
    prepare(handler, options);
  } catch (cause) {
    workshop.idle.push(handler);
    throw cause;
  }
  live++;
  return new Codec(sampleRateHz, workshop, handler);
}

function workshopFor(sampleRateHz: number): Workshop {
  const known = workshops.get(sampleRateHz);
  if (known) return known;
  const module = createModule();
  const workshop: Workshop = {
    module,
    framePointer: module._malloc(decodedSamplesMax * 2),
    packetPointer: module._malloc(packetBytesMax),
    decodedPointer: module._malloc(decodedSamplesMax * 4),
    idle: [],
  };
  workshops.set(sampleRateHz, workshop);
  return workshop;
}

/** A handler as if new: nothing of the call before is left in it. */
function prepare(handler: OpusHandler, options: OpusOptions): void {
  const settings: readonly [number, number][] = [
    [ctl.resetState, 0],
    [ctl.setComplexity, options.complexity ?? 5],
    [ctl.setInbandFec, options.fec ? 1 : 0],
    [ctl.setPacketLossPercent, options.fec ? 5 : 0],
    [ctl.setDtx, options.dtx ? 1 : 0],
    [ctl.setBitrate, options.bitrate ?? auto],
  ];
  for (const [request, value] of settings) {
    const failed = handler._encoder_ctl(request, value);
    if (failed < 0) throw new RangeError(`Cannot set up Opus: request ${request} with ${value} answers ${failed}`);
  }
  handler._decoder_ctl(ctl.resetState, 0);
}

class Codec implements OpusCodec {
  readonly sampleRateHz: number;
  readonly #workshop: Workshop;
  readonly #frameSamples: number;
  #handler: OpusHandler | undefined;
  #badPackets = 0;
  /** First byte of the newest good packet, its frame count cleared, and that packet's length. */
  #lastToc: number | undefined;
  #lastSamples: number;

  constructor(sampleRateHz: number, workshop: Workshop, handler: OpusHandler) {
    this.sampleRateHz = sampleRateHz;
    this.#workshop = workshop;
    this.#handler = handler;
    this.#frameSamples = (sampleRateHz * frameMs) / 1000;
    this.#lastSamples = this.#frameSamples;
  }

  get badPackets(): number {
    return this.#badPackets;
  }

  encode(frame: Int16Array): Uint8Array {
    if (frame.length !== this.#frameSamples) {
      throw new RangeError(`Cannot encode ${frame.length} samples: expected a full frame of ${this.#frameSamples}`);
    }
    const { module, framePointer, packetPointer } = this.#workshop;
    module.HEAP16.set(frame, framePointer >> 1);
    const length = this.#open()._encode(framePointer, 0, packetPointer, frame.length);
    if (length < 0) throw new Error(`Cannot encode a frame of ${frame.length} samples: libopus answers ${length}`);
    return module.HEAPU8.slice(packetPointer, packetPointer + length);
  }

  decode(packet: Uint8Array): Int16Array {
    const samples = packet.length > 0 && packet.length <= packetBytesMax ? this.#decode(packet) : -1;
    if (samples <= 0) {
      this.#badPackets++;
      return decoded.subarray(0, this.#conceal());
    }
    this.#lastToc = packet[0]! & 0xfc;
    this.#lastSamples = samples;
    return decoded.subarray(0, samples);
  }

  #open(): OpusHandler {
    if (!this.#handler) throw new Error("Cannot use this Opus codec: it is closed");
    return this.#handler;
  }

  /** Decodes into `decoded` from `offset` on; answers the number of samples, or a negative error. */
  #decode(packet: Uint8Array, offset = 0): number {
    const { module, packetPointer, decodedPointer } = this.#workshop;
    module.HEAPU8.set(packet, packetPointer);
    const samples = this.#open()._decode(packetPointer, packet.length, decodedPointer);
    const words = module.HEAP16;
    const from = decodedPointer >> 1;
    const room = decoded.length - offset;
    for (let i = 0; i < samples && i < room; i++) {
      decoded[offset + i] = words[from + 2 * i]! | (words[from + 2 * i + 1]! << 8);
    }
    return samples;
  }

  /**
   * Stands in for a lost packet as long as the one before it. A packet of nothing but its first
   * byte makes libopus conceal one frame (RFC 6716, 4.4: extrapolated, fading out).
   */
  #conceal(): number {
    const wanted = this.#lastSamples;
    let made = 0;
    while (this.#lastToc !== undefined && made < wanted) {
      const samples = this.#decode(Uint8Array.of(this.#lastToc), made);
      if (samples <= 0) break;
      made += samples;
    }
    decoded.fill(0, made, wanted);
    return wanted;
  }

  close(): void {
    if (!this.#handler) return;
    this.#workshop.idle.push(this.#handler);
    this.#handler = undefined;
    live--;
  }
}
