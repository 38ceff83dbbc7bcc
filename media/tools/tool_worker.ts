/** The tools' thread: one for each process. Media threads ask it over ports of their own. */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { FromTools, ToTools } from "./remote_tools.ts";
import { type AbortReason, ToolError } from "./tool.ts";
import { createToolRunner, type ToolWorld } from "./tool_runner.ts";

if (!parentPort) throw new Error("Cannot run tool_worker.ts by itself: it is started by tool_thread.ts");
const runner = createToolRunner(workerData as ToolWorld);

/** Answers one media thread until its port is closed. */
function serve(port: MessagePort): void {
  const running = new Map<number, AbortController>();
  const post = (message: FromTools) => port.postMessage(message);

  async function run(id: number, request: Extract<ToTools, { request: unknown }>["request"]): Promise<void> {
    const abort = new AbortController();
    running.set(id, abort);
    try {
      const result = await runner.run(request, abort.signal, (progress) => post({ id, progress }));
      post({ id, result });
    } catch (cause) {
      if (!abort.signal.aborted) post({ id, error: cause instanceof ToolError ? cause.message : "The tool failed" });
    } finally {
      running.delete(id);
    }
  }

  port.on("message", (message: ToTools) => {
    if ("abort" in message) running.get(message.id)?.abort(message.abort);
    else void run(message.id, message.request);
  });
  port.on("close", () => {
    for (const abort of running.values()) abort.abort("call_ended" satisfies AbortReason);
  });
}

parentPort.on("message", ({ port }: { port: MessagePort }) => serve(port));
