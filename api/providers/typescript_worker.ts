/** Worker threads whose entry is a TypeScript file, however the process itself was started. */
import { Worker, type WorkerOptions } from "node:worker_threads";

// Not among the types of Node 20.
const readsTypescript = Boolean((process.features as { typescript?: unknown }).typescript);

/**
 * Starts `entry` as a worker thread; it is JavaScript where the process runs from a bundle. From Node 22.18 on Node reads TypeScript by itself. Before, neither
 * `--import tsx` in `execArgv` nor the parent's own loader reaches a worker, so that the worker registers it itself.
 */
export function startTypescriptWorker(entry: URL, options: Omit<WorkerOptions, "eval"> = {}): Worker {
  if (readsTypescript || !entry.pathname.endsWith(".ts")) return new Worker(entry, options);
  const loader = JSON.stringify(import.meta.resolve("tsx/esm/api"));
  const start = `import(${loader}).then(({ register }) => { register(); return import(${JSON.stringify(entry.href)}); });`;
  return new Worker(start, { ...options, eval: true });
}
