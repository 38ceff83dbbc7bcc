/**
 * The part of WebAssembly's JavaScript interface that media uses. TypeScript has it in its browser
 * library only, which would bring `window` and `document` into every file.
 * @see https://www.w3.org/TR/wasm-js-api-2/
 */
declare namespace WebAssembly {
  type ImportValue = ((...args: never[]) => unknown) | Memory | number;
  type Imports = Record<string, Record<string, ImportValue>>;
  class Module {
    constructor(bytes: ArrayBuffer | ArrayBufferView);
  }
  class Instance {
    constructor(module: Module, imports?: Imports);
    readonly exports: Record<string, unknown>;
  }
  class Memory {
    constructor(descriptor: { initial: number; maximum?: number });
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
  class Global {
    readonly value: number;
  }
  class RuntimeError extends Error {}
  function compile(bytes: ArrayBuffer | ArrayBufferView): Promise<Module>;
  function instantiate(module: Module, imports?: Imports): Promise<Instance>;
}
