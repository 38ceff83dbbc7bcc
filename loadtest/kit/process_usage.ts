/** CPU time and memory of another process, read from /proc (Linux; undefined elsewhere or when it is gone). */
import { readdir, readFile } from "node:fs/promises";

export interface ProcessUsage {
  /** User and system time of all its threads since it started. */
  cpuMs: number;
  rssBytes: number;
}

/** USER_HZ: the kernel gives times to programs in hundredths of a second on every architecture that Node runs on. */
const tickMs = 10;

/** Parses `/proc/PID/stat` (proc(5)): fields 14 and 15 are times, counted behind the name's last parenthesis. */
export function cpuMsOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * tickMs;
}

/** Parses `/proc/PID/status`: the line `VmRSS:  12345 kB`. */
export function rssBytesOf(status: string): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}

/** The process and those that it has started, as far as they live. */
export async function familyUsage(pid: number): Promise<ProcessUsage | undefined> {
  const own = await processUsage(pid);
  if (!own) return undefined;
  const children = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const usages = await Promise.all(
    children.map(async (name) => ((await parentOf(name)) === pid ? processUsage(Number(name)) : undefined)),
  );
  return usages.reduce<ProcessUsage>(
    (sum, usage) => ({ cpuMs: sum.cpuMs + (usage?.cpuMs ?? 0), rssBytes: sum.rssBytes + (usage?.rssBytes ?? 0) }),
    own,
  );
}

/** The fourth field of `/proc/PID/stat`. */
async function parentOf(pid: string): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  return stat === undefined ? undefined : Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
}

export async function processUsage(pid: number): Promise<ProcessUsage | undefined> {
  try {
    const [stat, status] = await Promise.all([
      readFile(`/proc/${pid}/stat`, "utf8"),
      readFile(`/proc/${pid}/status`, "utf8"),
    ]);
    return { cpuMs: cpuMsOf(stat), rssBytes: rssBytesOf(status) };
  } catch {
    return undefined;
  }
}
