/**
 * The data folder (`DATA_DIR`): made with the right mode, and held by one start at a time.
 */
import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { processStartedAt } from "./process_identity.ts";

/**
 * Makes the folder and returns its absolute path. Every file in it that holds a secret is 0600;
 * the folder of a root start can be passed through, because the account that runs Postgres must
 * reach its own folder inside.
 */
export function makeDataDir(dataDir: string): string {
  const folder = resolve(dataDir);
  mkdirSync(folder, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
  return folder;
}

/** Another start holds the data folder. */
export class DataDirHeldError extends Error {}

/**
 * Takes the data folder for this process and returns how to give it back. What a killed start left
 * is taken over: the lock names the process and when that began, so a recycled pid fools nobody.
 *
 * @throws DataDirHeldError when a living process holds it
 */
export function holdDataDir(dataDir: string): () => void {
  const lock = join(dataDir, "lock.json");
  const mine = JSON.stringify({ pid: process.pid, started: processStartedAt(process.pid) });
  const candidate = join(dataDir, `.lock.${process.pid}.${randomBytes(4).toString("hex")}`);
  writeFileSync(candidate, mine, { mode: 0o600 });
  try {
    while (!linked(candidate, lock)) {
      const found = readLock(lock);
      if (found === undefined) continue; // Given back in this very moment.
      const holder = livingHolder(found);
      if (holder !== undefined) {
        throw new DataDirHeldError(
          `Cannot start: ${dataDir} is in use by process ${holder}. Stop that one, or set DATA_DIR to another folder.`,
        );
      }
      removeStale(lock, found);
    }
  } finally {
    rmSync(candidate, { force: true });
  }
  return () => {
    if (readLock(lock) === mine) rmSync(lock, { force: true });
  };
}

/** A hard link appears as a whole or not at all, and never over an existing file. */
function linked(candidate: string, lock: string): boolean {
  try {
    linkSync(candidate, lock);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function readLock(lock: string): string | undefined {
  try {
    return readFileSync(lock, "utf8");
  } catch {
    return undefined;
  }
}

function livingHolder(found: string): number | undefined {
  try {
    const { pid, started } = JSON.parse(found) as { pid: number; started: string };
    return processStartedAt(pid) === started ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Two starts may both find the same stale lock: what is moved aside must be what was judged. */
function removeStale(lock: string, judged: string): void {
  const aside = `${lock}.${process.pid}.${randomBytes(4).toString("hex")}`;
  try {
    renameSync(lock, aside);
  } catch {
    return; // The other one moved it first.
  }
  if (readLock(aside) !== judged) linked(aside, lock);
  rmSync(aside, { force: true });
}
