/** WAV files of 16-bit mono PCM, just what a call needs. */
import { readFile, writeFile } from "node:fs/promises";

export interface Wav {
  sampleRateHz: number;
  /** Samples as they go over the wire: 16-bit signed, little-endian, mono. */
  pcm: Buffer;
}

/** Reads a WAV file. Throws unless it holds 16-bit mono PCM. */
export async function readWav(path: string | URL): Promise<Wav> {
  const file = await readFile(path);
  if (file.toString("latin1", 0, 4) !== "RIFF" || file.toString("latin1", 8, 12) !== "WAVE") {
    throw new Error(`Cannot read ${path}: expected a WAV file`);
  }
  let sampleRateHz = 0;
  for (let at = 12; at + 8 <= file.length; ) {
    const name = file.toString("latin1", at, at + 4);
    const content = file.subarray(at + 8, at + 8 + file.readUInt32LE(at + 4));
    if (name === "fmt ") {
      const [codec, channels, bits] = [content.readUInt16LE(0), content.readUInt16LE(2), content.readUInt16LE(14)];
      if (codec !== 1 || channels !== 1 || bits !== 16) {
        throw new Error(`Cannot use ${path}: expected 16-bit mono PCM`);
      }
      sampleRateHz = content.readUInt32LE(4);
    }
    if (name === "data" && sampleRateHz > 0) return { sampleRateHz, pcm: content };
    at += 8 + content.length + (content.length % 2);
  }
  throw new Error(`Cannot read ${path}: it has no audio`);
}

/** Writes a WAV file of 16-bit mono PCM. */
export async function writeWav(path: string, { sampleRateHz, pcm }: Wav): Promise<void> {
  const header = Buffer.alloc(44);
  header.write("RIFF", 0, "latin1");
  header.writeUInt32LE(36 + pcm.length, 4);
  header.write("WAVEfmt ", 8, "latin1");
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(sampleRateHz, 24);
  header.writeUInt32LE(sampleRateHz * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36, "latin1");
  header.writeUInt32LE(pcm.length, 40);
  await writeFile(path, Buffer.concat([header, pcm]));
}
