/** A Postgres of Debian's, with its tools: the embedded one brings neither `pg_dump` nor `pg_restore`. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "#standalone/ports.ts";
import { giveTo, postgresAccount } from "#standalone/postgres_account.ts";
import { startPostmaster } from "#standalone/postgres_process.ts";

const packages = "/usr/lib/postgresql";
const newest = existsSync(packages)
  ? readdirSync(packages)
      .map(Number)
      .filter((version) => version >= 15 && existsSync(join(packages, String(version), "bin", "postgres")))
      .sort((a, b) => b - a)[0]
  : undefined;

/** Why tests that need it are skipped, or false. */
export const debianPostgresMissing = newest === undefined ? "no postgresql of Debian's on this machine" : false;

export interface DebianPostgres {
  url: string;
  /** Where its programs are. */
  bin: string;
  stop(): Promise<void>;
}

export async function startDebianPostgres(): Promise<DebianPostgres> {
  const bin = join(packages, String(newest), "bin");
  const folder = mkdtempSync(join(tmpdir(), "frontdesk-debian-postgres-"));
  const account = postgresAccount(folder);
  giveTo(account, folder);
  const flags = ["-D", folder, "-U", "frontdesk", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"];
  execFileSync(join(bin, "initdb"), flags, { ...account, cwd: folder, stdio: "ignore" });
  const port = await freePort();
  const postmaster = await startPostmaster({
    binary: join(bin, "postgres"),
    account,
    dataFolder: folder,
    port,
    settings: { listen_addresses: "127.0.0.1", unix_socket_directories: "", fsync: "off", max_connections: "100" },
    onLog: () => undefined,
  });
  return {
    url: `postgres://frontdesk@127.0.0.1:${port}/postgres`,
    bin,
    async stop() {
      await postmaster.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
