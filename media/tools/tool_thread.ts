/** Starts the tools' thread when the first call needs it, and starts it anew when it was lost. */
import { MessageChannel, type MessagePort, type Worker } from "node:worker_threads";
import type { CallConfig } from "#contracts/voice_agent.ts";
import { startTypescriptWorker } from "#providers/typescript_worker.ts";
import type { ToolWorld } from "./tool_runner.ts";

/** Whether a call on this configuration asks anything of the tools' thread. */
export function asksToolThread({ tools, mcp_servers, builtin_tools, app_tools }: CallConfig): boolean {
  return tools.length + mcp_servers.length + builtin_tools.length + app_tools.length > 0;
}

export class ToolThread {
  readonly #world: ToolWorld;
  readonly #onLost: (cause: unknown) => void;
  #worker: Worker | undefined;
  #connected = new WeakSet<object>();

  /** `onLost` hears why it ended by itself. */
  constructor(world: ToolWorld, onLost: (cause: unknown) => void) {
    this.#world = world;
    this.#onLost = onLost;
  }

  /** A port to the thread for `asker`; undefined where it has one that works. */
  portFor(asker: object): MessagePort | undefined {
    this.#worker ??= this.#start();
    if (this.#connected.has(asker)) return undefined;
    this.#connected.add(asker);
    const { port1, port2 } = new MessageChannel();
    this.#worker.postMessage({ port: port1 }, [port1]);
    return port2;
  }

  #start(): Worker {
    const worker = startTypescriptWorker(new URL("./tool_worker.ts", import.meta.url), { workerData: this.#world });
    let failure: unknown;
    worker.on("error", (cause) => {
      failure = cause;
    });
    worker.on("exit", () => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#connected = new WeakSet();
      this.#onLost(failure);
    });
    return worker;
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }
}
