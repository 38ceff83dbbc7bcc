/**
 * G.711 mu-law and A-law (ITU-T G.711, 11/88) by table. A codeword's value and the decision levels
 * are those of the ITU's software tool library (G.191): 16-bit samples, of which mu-law uses the
 * upper 14 bits and A-law the upper 13.
 */

const mulawBias = 33;
const mulawClip = 0x1fff;

function mulawByteFor(sample: number): number {
  const magnitude = Math.min(((sample < 0 ? ~sample : sample) >> 2) + mulawBias, mulawClip);
  const segment = 26 - Math.clz32(magnitude); // 0 (33…63) … 7 (4096…8191)
  const step = (magnitude >> (segment + 1)) & 0x0f;
  const code = (segment << 4) | step;
  return ~(sample < 0 ? code | 0x80 : code) & 0xff;
}

function mulawSampleFor(byte: number): number {
  const code = ~byte;
  const segment = (code >> 4) & 7;
  const magnitude = ((((code & 0x0f) << 1) + mulawBias) << segment) - mulawBias;
  return (byte & 0x80 ? magnitude : -magnitude) * 4;
}

/** Every second bit of an A-law codeword is sent inverted. */
const alawMask = 0x55;

function alawByteFor(sample: number): number {
  const magnitude = (sample < 0 ? ~sample : sample) >> 4;
  const segment = Math.max(0, 28 - Math.clz32(magnitude)); // 0 (0…15), 1 (16…31) … 7 (1024…2047)
  const code = segment === 0 ? magnitude : (segment << 4) | ((magnitude >> (segment - 1)) & 0x0f);
  return (sample < 0 ? code : code | 0x80) ^ alawMask;
}

function alawSampleFor(byte: number): number {
  const code = byte ^ alawMask;
  const segment = (code >> 4) & 7;
  const step = ((code & 0x0f) << 4) + 8;
  const magnitude = segment === 0 ? step : (step + 0x100) << (segment - 1);
  return code & 0x80 ? magnitude : -magnitude;
}

/** Indexed by the sample's lower 16 bits. */
const mulawBytes = Uint8Array.from({ length: 65_536 }, (_, index) => mulawByteFor((index << 16) >> 16));
const alawBytes = Uint8Array.from({ length: 65_536 }, (_, index) => alawByteFor((index << 16) >> 16));
const mulawSamples = Int16Array.from({ length: 256 }, (_, byte) => mulawSampleFor(byte));
const alawSamples = Int16Array.from({ length: 256 }, (_, byte) => alawSampleFor(byte));

/** One byte a sample into `into`, which is at least as long; answers `into`. */
export function encodeMulaw(samples: Int16Array, into: Uint8Array): Uint8Array {
  return encodeBy(mulawBytes, samples, into);
}

/** One byte a sample into `into`, which is at least as long; answers `into`. */
export function encodeAlaw(samples: Int16Array, into: Uint8Array): Uint8Array {
  return encodeBy(alawBytes, samples, into);
}

/** One sample a byte into `into`, which is at least as long; answers `into`. */
export function decodeMulaw(bytes: Uint8Array, into: Int16Array): Int16Array {
  return decodeBy(mulawSamples, bytes, into);
}

/** One sample a byte into `into`, which is at least as long; answers `into`. */
export function decodeAlaw(bytes: Uint8Array, into: Int16Array): Int16Array {
  return decodeBy(alawSamples, bytes, into);
}

function encodeBy(table: Uint8Array, samples: Int16Array, into: Uint8Array): Uint8Array {
  for (let i = 0; i < samples.length; i++) into[i] = table[samples[i]! & 0xffff]!;
  return into;
}

function decodeBy(table: Int16Array, bytes: Uint8Array, into: Int16Array): Int16Array {
  for (let i = 0; i < bytes.length; i++) into[i] = table[bytes[i]!]!;
  return into;
}
