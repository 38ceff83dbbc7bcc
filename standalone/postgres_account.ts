/**
 * Under which account the embedded Postgres runs, and where its files may live.
 *
 * Postgres refuses to run as root. A root start therefore hands it to the `postgres` account, and
 * that account must reach the binaries and the data: a clone under a home with mode 0700 is closed
 * to it. What it cannot reach is placed under `/var/lib/frontdesk` instead.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { userInfo } from "node:os";

/** What `spawn` needs to run a child under the account; empty: as ourselves. */
export interface PostgresAccount {
  uid?: number;
  gid?: number;
}

/** The folder that a root start uses for what the `postgres` account cannot reach in place. */
export const sharedFolder = "/var/lib/frontdesk";

const accountName = "postgres";

/**
 * The account that Postgres runs under: ourselves; when we are root, the owner of the `home` that an
 * earlier start made, or else `postgres`. The account is made when the machine has none; where that
 * is impossible `nobody` serves.
 *
 * @throws Error when we are root and the machine has no unprivileged account at all
 */
export function postgresAccount(home: string): PostgresAccount {
  if (process.platform === "win32" || userInfo().uid !== 0) return {};
  const owner = statSync(home, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const account = lookUpAccount(accountName) ?? createAccount() ?? lookUpAccount("nobody");
  if (!account) throw new Error("Cannot run Postgres as root: expected an account named postgres or nobody.");
  return account;
}

/** Whether the account may enter `folder`, and so every folder above it. */
export function canReach(account: PostgresAccount, folder: string): boolean {
  if (account.uid === undefined) return true;
  const probe = spawnSync("/bin/sh", ["-c", 'cd "$1"', "sh", folder], { ...account, cwd: "/", stdio: "ignore" });
  return probe.status === 0;
}

/** Makes a folder that belongs to the account and is closed to others. */
export function makePrivateFolder(account: PostgresAccount, folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  giveTo(account, folder);
}

/** Hands a file or folder to the account. */
export function giveTo(account: PostgresAccount, path: string): void {
  if (account.uid !== undefined && account.gid !== undefined) chownSync(path, account.uid, account.gid);
}

function lookUpAccount(name: string): PostgresAccount | undefined {
  const line = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .find((entry) => entry.startsWith(`${name}:`));
  if (!line) return undefined;
  const [, , uid, gid] = line.split(":");
  return { uid: Number(uid), gid: Number(gid) };
}

function createAccount(): PostgresAccount | undefined {
  try {
    execFileSync("useradd", ["--system", "--user-group", "--no-create-home", "--shell", "/bin/false", accountName], {
      stdio: "ignore",
    });
  } catch {
    return undefined; // No useradd here, or a read-only /etc: the caller falls back.
  }
  return lookUpAccount(accountName);
}
