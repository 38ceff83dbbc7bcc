/** WAV with 16-bit PCM: what recognizers take as a file, and what speech servers put before their samples. */
import type { Pcm } from "./language_model.ts";

const headerBytes = 44;

/** A whole file of one utterance. */
export function wavOf({ samples, sampleRateHz }: Pcm): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(headerBytes + samples.byteLength);
  const view = new DataView(bytes.buffer);
  const put = (at: number, text: string) => bytes.set(new TextEncoder().encode(text), at);
  put(0, "RIFF");
  view.setUint32(4, bytes.length - 8, true);
  put(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, sampleRateHz, true);
  view.setUint32(28, sampleRateHz * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  put(36, "data");
  view.setUint32(40, samples.byteLength, true);
  bytes.set(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength), headerBytes);
  return bytes;
}

/** Sound that is not what a stage can play. */
export class WavError extends Error {}

/**
 * Samples of a stream of bytes: of a WAV file, believed in what its header says of its rate, or of bare
 * 16-bit samples at `bareRateHz`. Sizes in the header are ignored, because who streams does not know them.
 * @throws WavError for a file that is not mono with 16 bits a sample, or that is no sound
 */
export async function* samplesOf(chunks: AsyncIterable<Uint8Array>, bareRateHz: number): AsyncGenerator<Pcm> {
  let kept: Uint8Array = new Uint8Array();
  let sampleRateHz: number | undefined;
  for await (const chunk of chunks) {
    let bytes = kept.length > 0 ? Buffer.concat([kept, chunk]) : chunk;
    if (sampleRateHz === undefined) {
      const head = headOf(bytes, bareRateHz);
      if (!head) {
        kept = bytes;
        if (kept.length > headBytesMax) throw new WavError("the WAV header has no end");
        continue;
      }
      sampleRateHz = head.sampleRateHz;
      bytes = bytes.subarray(head.length);
    }
    const whole = bytes.length - (bytes.length % 2);
    kept = bytes.subarray(whole);
    // A copy: a chunk may be a part of a buffer that others read and write, and begin at an odd place in it.
    if (whole > 0) yield { samples: new Int16Array(new Uint8Array(bytes.subarray(0, whole)).buffer), sampleRateHz };
  }
  if (sampleRateHz === undefined && kept.length > 0) throw new WavError("the sound ends within its header");
}

const headBytesMax = 64 * 1024;

/** Undefined while more bytes are needed to tell. */
function headOf(bytes: Uint8Array, bareRateHz: number): { length: number; sampleRateHz: number } | undefined {
  const text = (from: number) => String.fromCharCode(...bytes.subarray(from, from + 4));
  if (bytes.length < 4) return undefined;
  if (text(0) !== "RIFF") return { length: 0, sampleRateHz: bareRateHz };
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let sampleRateHz: number | undefined;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const size = view.getUint32(at + 4, true);
    if (text(at) === "data") {
      if (sampleRateHz === undefined) throw new WavError("the WAV file names no format");
      return { length: at + 8, sampleRateHz };
    }
    if (text(at) === "fmt ") {
      if (at + 24 > bytes.length) return undefined;
      const [channels, bits] = [view.getUint16(at + 10, true), view.getUint16(at + 22, true)];
      if (channels !== 1 || bits !== 16) throw new WavError(`expected mono with 16 bits, got ${channels} × ${bits}`);
      sampleRateHz = view.getUint32(at + 12, true);
    }
    at += 8 + size + (size % 2);
  }
  return undefined;
}
