/** A PgBouncer of a test's own before a database, sharing connections by the transaction. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "#standalone/ports.ts";

const program = ["/usr/sbin/pgbouncer", "pgbouncer"].find((path) => spawnSync(path, ["--version"]).status === 0);

/** Why tests that need it are skipped, or false. */
export const pgBouncerMissing = program === undefined ? "no pgbouncer on this machine" : false;

export interface PgBouncer {
  /** Of the same database, through it. */
  url: string;
  stop(): Promise<void>;
}

/** @param serverConnections how many it opens to Postgres at most, for all of its clients */
export async function startPgBouncer(databaseUrl: string, serverConnections: number): Promise<PgBouncer> {
  const { hostname, port: serverPort, username, password, pathname } = new URL(databaseUrl);
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), "frontdesk-pgbouncer-"));
  const settings = join(folder, "pgbouncer.ini");
  const server = `host=${hostname} port=${serverPort} user=${username} password=${decodeURIComponent(password)}`;
  const lines = [
    "[databases]",
    `* = ${server} pool_size=${serverConnections}`,
    "[pgbouncer]",
    `listen_port = ${port}`,
    "listen_addr = 127.0.0.1",
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    "max_client_conn = 500",
  ];
  await writeFile(settings, `${lines.join("\n")}\n`);
  // It does not run as root, and whoever it runs as has to read its settings.
  await chmod(folder, 0o755);
  const isRoot = process.getuid?.() === 0;
  const child: ChildProcess = spawn(program ?? "", [...(isRoot ? ["-u", "nobody"] : []), settings], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  await new Promise<void>((resolve, reject) => {
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("process up")) resolve();
    });
    child.once("exit", () => reject(new Error(`pgbouncer ended: ${said}`)));
  });
  return {
    url: `postgres://${username}@127.0.0.1:${port}${pathname}`,
    async stop() {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
