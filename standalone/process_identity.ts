/**
 * Which process a pid stands for. A pid alone is recycled; together with the moment at which the
 * process began it is not.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** When process `pid` began, in the system's own terms; undefined when there is none. */
export function processStartedAt(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command, in parentheses, may contain spaces and parentheses itself. The fields after it
    // begin with the third (state); the 22nd is the start in clock ticks since the machine booted.
    const afterCommand = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return afterCommand[0] === "Z" ? undefined : afterCommand[22 - 3];
  } catch {
    return fromPs("lstart=", pid);
  }
}

/** The command line of a process, empty when there is none. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return fromPs("command=", pid) ?? "";
  }
}

/** For systems without `/proc`. */
function fromPs(field: string, pid: number): string | undefined {
  const listed = spawnSync("ps", ["-o", field, "-p", String(pid)], { encoding: "utf8" });
  return listed.stdout?.trim() || undefined;
}
