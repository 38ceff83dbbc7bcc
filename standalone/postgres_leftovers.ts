/**
 * Clusters that live outside of their data folder, because the account that runs Postgres could not
 * enter it, stay when that folder is deleted. Each has a note of whose it is, by which a later start
 * finds those that nobody will come back for.
 */
import { readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sharedFolder } from "./postgres_account.ts";
import { stopOrphan } from "./postgres_process.ts";
import { processStartedAt } from "./process_identity.ts";

interface Owner {
  data_dir: string;
  pid: number;
  started: string | undefined;
}

const ownerFile = "owner.json";

/** Notes in the cluster's folder that this process uses it for `dataDir`. */
export function noteOwner(home: string, dataDir: string): void {
  const owner: Owner = { data_dir: dataDir, pid: process.pid, started: processStartedAt(process.pid) };
  writeFileSync(join(home, ownerFile), JSON.stringify(owner), { mode: 0o600 });
}

/**
 * Ends the Postgres of every cluster whose data folder is gone, if it still runs. The files stay:
 * they are somebody's data, and a folder may be gone because its disk is.
 *
 * @returns a sentence for each such cluster, with how to remove it, and one for all that name no folder
 */
export async function endLeftoverClusters(shared: string = sharedFolder): Promise<string[]> {
  const notes: string[] = [];
  const unnamed: string[] = [];
  for (const home of clusterFolders(shared)) {
    const owner = ownerOf(home);
    if (owner === "closed" || (owner && (isLinkedFrom(owner.data_dir, home) || isAlive(owner)))) continue;
    if (owner === undefined) {
      unnamed.push(home);
      continue;
    }
    await stopOrphan(join(home, "data"));
    notes.push(`${home} holds the database of ${owner.data_dir}, which is gone. If nobody needs it: rm -r ${home}`);
  }
  if (unnamed.length > 0) {
    notes.push(`Databases in ${shared} that have no note of whose they are: ${unnamed.join(", ")}`);
  }
  return notes;
}

function clusterFolders(shared: string): string[] {
  try {
    const names = readdirSync(shared).filter((name) => name.startsWith("cluster-"));
    return names.map((name) => join(shared, name));
  } catch {
    return []; // There is no such folder: no start ever needed it.
  }
}

/** Undefined: one of before there were notes. "closed": another user's, and not ours to judge. */
function ownerOf(home: string): Owner | "closed" | undefined {
  try {
    return JSON.parse(readFileSync(join(home, ownerFile), "utf8"));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES" ? "closed" : undefined;
  }
}

function isLinkedFrom(dataDir: string, home: string): boolean {
  try {
    return realpathSync(join(dataDir, "postgres")) === realpathSync(home);
  } catch {
    return false;
  }
}

/** A start whose folder was deleted under it still uses its cluster. */
function isAlive({ pid, started }: Owner): boolean {
  return started !== undefined && processStartedAt(pid) === started;
}
