/**
 * Just enough of WASI preview 1, in memory, for a command that takes arguments and writes one file:
 * no host file, no clock, no environment. Error numbers are WASI's.
 */

const success = 0;
const errnoBadf = 8;
const errnoSpipe = 70;
const fdStderr = 2;
/** The one folder that the command sees. */
const fdRoot = 3;
/** The one file that it opens, for writing. */
const fdFile = 4;
const filetypeCharacterDevice = 2;
const filetypeDirectory = 3;
const filetypeRegularFile = 4;

/** The command called `proc_exit`, which leaves its memory in no state to go on with. */
export class WasiExit extends Error {
  readonly code: number;
  constructor(code: number) {
    super(`The command exited with code ${code}`);
    this.name = "WasiExit";
    this.code = code;
  }
}

/** A command module that can be run again and again: its memory is put back as it was before each run. */
export interface WasiCommand {
  /**
   * Runs the command to its end and returns what it wrote to its file.
   * @throws WasiExit or WebAssembly.RuntimeError; the command is of no use after either
   */
  run(args: readonly string[]): Uint8Array;
  /** Bytes of memory that the command holds: it grows with the largest run and never shrinks. */
  memoryBytes(): number;
}

/** Instantiates `module`, which exports `memory` and `_start`. */
export function createWasiCommand(module: WebAssembly.Module): WasiCommand {
  let args: Uint8Array[] = [];
  let written: Uint8Array[] = [];
  let memory: WebAssembly.Memory;
  const view = () => new DataView(memory.buffer);
  const bytes = () => new Uint8Array(memory.buffer);

  const calls = {
    args_sizes_get(count: number, size: number): number {
      view().setUint32(count, args.length, true);
      view().setUint32(size, sumOfLengths(args), true);
      return success;
    },
    args_get(pointers: number, buffer: number): number {
      let at = buffer;
      for (const [i, arg] of args.entries()) {
        view().setUint32(pointers + 4 * i, at, true);
        bytes().set(arg, at);
        at += arg.length;
      }
      return success;
    },
    clock_time_get(_clock: number, _precision: bigint, time: number): number {
      view().setBigUint64(time, 0n, true);
      return success;
    },
    fd_close: () => success,
    fd_fdstat_get(fd: number, stat: number): number {
      bytes().fill(0, stat, stat + 24);
      view().setUint8(
        stat,
        fd <= fdStderr ? filetypeCharacterDevice : fd === fdRoot ? filetypeDirectory : filetypeRegularFile,
      );
      view().setBigUint64(stat + 8, 0xffff_ffffn, true); // rights: all
      view().setBigUint64(stat + 16, 0xffff_ffffn, true);
      return success;
    },
    fd_fdstat_set_flags: () => success,
    fd_prestat_get(fd: number, prestat: number): number {
      if (fd !== fdRoot) return errnoBadf;
      view().setUint32(prestat, 0, true); // a folder
      view().setUint32(prestat + 4, 1, true); // the length of its name
      return success;
    },
    fd_prestat_dir_name(_fd: number, path: number, _length: number): number {
      view().setUint8(path, "/".charCodeAt(0));
      return success;
    },
    fd_read(_fd: number, _vectors: number, _count: number, size: number): number {
      view().setUint32(size, 0, true); // the end of the input
      return success;
    },
    fd_seek: () => errnoSpipe,
    fd_write(fd: number, vectors: number, count: number, size: number): number {
      let total = 0;
      for (let i = 0; i < count; i += 1) {
        const from = view().getUint32(vectors + 8 * i, true);
        const length = view().getUint32(vectors + 8 * i + 4, true);
        if (fd === fdFile) written.push(bytes().slice(from, from + length));
        total += length;
      }
      view().setUint32(size, total, true);
      return success;
    },
    path_open(...parameters: (number | bigint)[]): number {
      view().setUint32(Number(parameters[8]), fdFile, true);
      return success;
    },
    proc_exit(code: number): never {
      throw new WasiExit(code);
    },
  };

  const { exports } = new WebAssembly.Instance(module, { wasi_snapshot_preview1: calls });
  memory = exports.memory as WebAssembly.Memory;
  const start = exports._start as () => void;
  const pristine = bytes().slice();

  return {
    run(texts) {
      args = texts.map((text) => new TextEncoder().encode(`${text}\0`));
      written = [];
      bytes().set(pristine);
      bytes().fill(0, pristine.length);
      start();
      return join(written);
    },
    memoryBytes: () => memory.buffer.byteLength,
  };
}

function sumOfLengths(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(sumOfLengths(parts));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
