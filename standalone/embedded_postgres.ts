/**
 * The embedded Postgres: one cluster under a data folder, made on the first start, started on the
 * loopback interface, stopped with us.
 *
 * Layout: `DATA_DIR/postgres/data` is the cluster; `DATA_DIR/postgres` is a link to a folder elsewhere
 * where the account that runs Postgres cannot enter `DATA_DIR`; `DATA_DIR/postgres_password` is the password of its one role.
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { makeDataDir } from "./data_dir.ts";
import { freePort } from "./ports.ts";
import {
  canReach,
  giveTo,
  makePrivateFolder,
  type PostgresAccount,
  postgresAccount,
  sharedFolder,
} from "./postgres_account.ts";
import { type PostgresBinaries, postgresBinaries } from "./postgres_binaries.ts";
import { noteOwner } from "./postgres_leftovers.ts";
import { PortTakenError, type Postmaster, startPostmaster, stopOrphan } from "./postgres_process.ts";

export interface EmbeddedPostgresOptions {
  /** Where the cluster lives. Held by one process at a time: see `data_dir_lock.ts`. */
  dataDir: string;
  /** A free one when unset. */
  port?: number | undefined;
  logger?: { debug(fields: object, message: string): void; info(fields: object, message: string): void };
  /** False gives up durability for speed: for tests, whose data nobody needs after a power cut. */
  durable?: boolean;
}

export interface EmbeddedPostgres {
  /** `postgres://…` of the role that owns everything. Contains the password: never to be logged. */
  url: string;
  /** Resolves when Postgres is gone, for whatever reason. */
  exited: Promise<void>;
  stop(): Promise<void>;
}

const roleName = "frontdesk";
const databaseName = "postgres";
const portAttemptsMax = 5;

/**
 * Makes the cluster if there is none, stops what a killed start left behind, and starts Postgres.
 *
 * @throws Error when the platform has no binaries, the folder cannot be used or the given port is taken
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { logger } = options;
  const dataDir = makeDataDir(options.dataDir);
  const account = postgresAccount(join(dataDir, "postgres"));
  const binaries = postgresBinaries(account);
  const password = readPassword(dataDir);
  const cluster = ensureCluster(account, binaries, postgresHome(account, dataDir), password);
  if (await stopOrphan(cluster)) logger?.info({}, "stopped a Postgres that an earlier start left running");

  const start = (port: number) =>
    startPostmaster({
      binary: binaries.postgres,
      account,
      dataFolder: cluster,
      port,
      settings: settingsFor(options.durable ?? true),
      onLog: (line) => logger?.debug({ line }, "postgres"),
    });
  const { postmaster, port } = await startOnPort(start, options.port);
  return {
    url: `postgres://${roleName}:${password}@127.0.0.1:${port}/${databaseName}`,
    exited: postmaster.exited,
    stop: () => postmaster.stop(),
  };
}

/** A free port can be lost between finding and taking it, so another one is tried; a given one is not replaced. */
async function startOnPort(
  start: (port: number) => Promise<Postmaster>,
  givenPort: number | undefined,
): Promise<{ postmaster: Postmaster; port: number }> {
  for (let attempt = 1; ; attempt++) {
    const port = givenPort ?? (await freePort());
    try {
      return { postmaster: await start(port), port };
    } catch (error) {
      if (!(error instanceof PortTakenError)) throw error;
      if (givenPort !== undefined) {
        throw new Error(`Cannot start Postgres: port ${port} is already in use. Set DATABASE_PORT to another one.`);
      }
      if (attempt === portAttemptsMax) throw error;
    }
  }
}

function settingsFor(durable: boolean): Record<string, string> {
  return {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    timezone: "UTC",
    log_timezone: "UTC",
    lc_messages: "C",
    max_connections: "200",
    ...(durable ? {} : { fsync: "off", synchronous_commit: "off", full_page_writes: "off" }),
  };
}

/** The real path of `DATA_DIR/postgres`: a folder that the account owns and can reach. */
function postgresHome(account: PostgresAccount, dataDir: string): string {
  const place = join(dataDir, "postgres");
  if (lstatSync(place, { throwIfNoEntry: false })) {
    if (!existsSync(place))
      throw new Error(
        `Cannot use ${place}: it links to a folder that is gone. Remove the link to begin with an empty database.`,
      );
    const home = realpathSync(place);
    if (lstatSync(place).isSymbolicLink()) noteOwner(home, dataDir);
    return home;
  }
  makePrivateFolder(account, place);
  if (canReach(account, place)) return realpathSync(place);
  rmdirSync(place);
  mkdirSync(sharedFolder, { recursive: true, mode: 0o755 });
  // A random name: a new data folder never meets the cluster of one that was deleted.
  const elsewhere = join(sharedFolder, `cluster-${randomBytes(8).toString("hex")}`);
  makePrivateFolder(account, elsewhere);
  noteOwner(elsewhere, dataDir);
  symlinkSync(elsewhere, place);
  return elsewhere;
}

/** The role's password, made once. The server listens on the loopback interface, where others may knock. */
function readPassword(dataDir: string): string {
  const file = join(dataDir, "postgres_password");
  if (!existsSync(file)) {
    const partial = `${file}.${process.pid}`;
    writeFileSync(partial, randomBytes(24).toString("base64url"), { mode: 0o600 });
    renameSync(partial, file);
  }
  return readFileSync(file, "utf8").trim();
}

/**
 * The cluster inside `home`, made by initdb if there is none. initdb works under another name first,
 * so that a start that was killed in the middle is simply done again.
 */
function ensureCluster(account: PostgresAccount, binaries: PostgresBinaries, home: string, password: string): string {
  const cluster = join(home, "data");
  if (existsSync(cluster)) return cluster;
  const partial = join(home, "data.partial");
  const passwordFile = join(home, "password.partial");
  rmSync(partial, { recursive: true, force: true });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  giveTo(account, passwordFile);
  const result = spawnSync(
    binaries.initdb,
    [
      `--pgdata=${partial}`,
      `--username=${roleName}`,
      `--pwfile=${passwordFile}`,
      "--auth=scram-sha-256",
      "--encoding=UTF8",
      "--locale=C",
      // Postgres's own collation: Unicode-aware, and the same on every machine.
      "--locale-provider=builtin",
      "--builtin-locale=C.UTF-8",
    ],
    { ...account, cwd: home, encoding: "utf8" },
  );
  rmSync(passwordFile, { force: true });
  if (result.status !== 0) {
    throw new Error(`Cannot make the database in ${home}: initdb failed.\n${result.error ?? result.stderr}`, {
      cause: result.error,
    });
  }
  renameSync(partial, cluster);
  return cluster;
}
