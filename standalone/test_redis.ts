/**
 * A Redis of the tests' own, where the machine has a `redis-server`: on a free port, in memory only.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { endWithUs } from "./end_with_us.ts";
import { freePort } from "./ports.ts";

/** Resolves to undefined when the machine has no `redis-server`. */
export async function startTestRedis(): Promise<{ url: string; stop(): Promise<void> } | undefined> {
  const port = await freePort();
  const settings = { port, bind: "127.0.0.1", save: "", appendonly: "no", dir: "/tmp", daemonize: "no" };
  const child = spawn(
    "redis-server",
    Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
    {
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  if (!(await isReady(child))) return undefined;
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  endWithUs(child, "SIGKILL");
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: async () => {
      child.kill();
      await exited;
    },
  };
}

function isReady(child: ChildProcess): Promise<boolean> {
  return new Promise((resolve, reject) => {
    child.once("error", (error: NodeJS.ErrnoException) => (error.code === "ENOENT" ? resolve(false) : reject(error)));
    child.once("exit", (code) => reject(new Error(`redis-server ended with code ${code} before it was ready.`)));
    createInterface({ input: child.stdout as Readable }).on("line", (line) => {
      if (/ready to accept connections/i.test(line)) resolve(true);
    });
  });
}
