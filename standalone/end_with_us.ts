/**
 * A server that we start as a process in a session of its own ends when we do, however we end: also
 * by kill -9, when nothing of ours runs any more.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";

/**
 * Sees to it that `child`, which has been spawned, gets `signal` when this process is gone. A shell
 * beside us waits for the end of a pipe whose other end we alone hold, and the kernel closes it for us.
 */
export function endWithUs(child: ChildProcess, signal: "SIGINT" | "SIGKILL"): void {
  const end = () => child.kill(signal);
  process.once("exit", end);
  const guard = guardOf(child, signal);
  child.once("exit", () => {
    process.removeListener("exit", end);
    guard?.kill("SIGKILL");
  });
}

function guardOf(child: ChildProcess, signal: string): ChildProcess | undefined {
  // Without a shell, or without the child, the ordinary exit alone is seen to.
  if (process.platform === "win32" || child.pid === undefined) return undefined;
  const script = 'read -r _ || kill -s "$1" "$2"';
  const guard = spawn("/bin/sh", ["-c", script, "sh", signal.slice(3), String(child.pid)], {
    // What is killed with our group leaves the guard alone.
    detached: true,
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  guard.on("error", () => undefined);
  guard.stdin?.on("error", () => undefined);
  guard.unref();
  (guard.stdin as Socket | null)?.unref();
  return guard;
}
