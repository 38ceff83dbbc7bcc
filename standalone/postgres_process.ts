/**
 * One running postmaster: starting it, telling that it is ready, stopping it, and stopping the one
 * that a killed start left behind.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";

import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { endWithUs } from "./end_with_us.ts";
import type { PostgresAccount } from "./postgres_account.ts";
import { commandOf } from "./process_identity.ts";

/** How long a fast shutdown may take before the postmaster is told to quit without a checkpoint. */
const fastShutdownMsMax = 15_000;
const startMsMax = 60_000;

export interface PostmasterOptions {
  binary: string;
  account: PostgresAccount;
  dataFolder: string;
  port: number;
  settings: Readonly<Record<string, string>>;
  onLog(line: string): void;
}

export interface Postmaster {
  /** Resolves when it is gone, for whatever reason. */
  exited: Promise<void>;
  /** Fast shutdown: open transactions are rolled back, a checkpoint is written. */
  stop(): Promise<void>;
}

/** The port is in use by somebody else. */
export class PortTakenError extends Error {}

/**
 * Starts a postmaster and resolves once it accepts connections.
 *
 * @throws PortTakenError, or Error with Postgres's own last words
 */
export async function startPostmaster(options: PostmasterOptions): Promise<Postmaster> {
  const settings = Object.entries(options.settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const child = spawn(options.binary, ["-D", options.dataFolder, "-p", String(options.port), ...settings], {
    ...options.account,
    // The account may not be allowed into our own working directory.
    cwd: options.dataFolder,
    // A session of its own: a Ctrl-C in the terminal reaches us alone, and we stop it last.
    detached: true,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  endWithUs(child, "SIGINT");
  await ready(child, exited, options);
  return { exited, stop: () => stopChild(child, exited) };
}

/** Resolves when the log says so; rejects with the last words when the process ends before. */
async function ready(child: ChildProcess, exited: Promise<void>, options: PostmasterOptions): Promise<void> {
  const lastLines: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      createInterface({ input: child.stderr as Readable }).on("line", (line) => {
        options.onLog(line);
        if (lastLines.push(line) > 20) lastLines.shift();
        if (line.includes("database system is ready to accept connections")) resolve();
      });
      void exited.then(() => reject(endedEarly(options, lastLines.join("\n"))));
      timer = setTimeout(() => reject(new Error(`Postgres was not ready after ${startMsMax} ms.`)), startMsMax);
    });
  } catch (error) {
    await stopChild(child, exited);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function endedEarly(options: PostmasterOptions, lastWords: string): Error {
  if (lastWords.includes("Address already in use"))
    return new PortTakenError(`Port ${options.port} is already in use.`);
  return new Error(`Cannot start Postgres in ${options.dataFolder}: it ended before it was ready.\n${lastWords}`);
}

async function stopChild(child: ChildProcess, exited: Promise<void>): Promise<void> {
  if (child.pid === undefined) return;
  child.kill("SIGINT");
  const timer = setTimeout(() => child.kill("SIGQUIT"), fastShutdownMsMax);
  await exited;
  clearTimeout(timer);
}

/**
 * Stops the postmaster that a killed start left running on `dataFolder`, if there is one. A pid
 * file whose process is gone, or is no Postgres of this folder, is left to Postgres, which knows
 * how to take it over.
 */
export async function stopOrphan(dataFolder: string): Promise<boolean> {
  const pid = orphanPid(dataFolder);
  if (pid === undefined) return false;
  signal(pid, "SIGINT");
  const quitAtMs = Date.now() + fastShutdownMsMax;
  let told = false;
  // Not our child, so nothing reports its end: it has to be looked for.
  while (orphanPid(dataFolder) === pid) {
    if (!told && Date.now() > quitAtMs) {
      signal(pid, "SIGQUIT");
      told = true;
    }
    await delay(50);
  }
  return true;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It may end by itself in this very moment.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function orphanPid(dataFolder: string): number | undefined {
  let lines: string[];
  try {
    lines = readFileSync(join(dataFolder, "postmaster.pid"), "utf8").split("\n");
  } catch {
    return undefined;
  }
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 1 || !commandOf(pid).includes(dataFolder)) return undefined;
  return pid;
}
