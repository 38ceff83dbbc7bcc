/**
 * Whether a backup can be lived on: it is restored into a database of its own, migrated, an api is started on
 * it, and what is there is compared with what was.
 *
 *     dump (one snapshot, tables counted in it) → restore → migrate → api ready → counts, invoices, secrets
 *
 * No worker is started on it: nothing is sent to anybody.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApi } from "#api/process/server.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import { silentLogger } from "#http/logger.ts";
import { createEncryption } from "#store/encryption.ts";
import { migrate } from "#store/migrations.ts";
import { openSql, type Sql, type SqlPool } from "#store/sql.ts";
import { runTool } from "./postgres_tools.ts";

export interface DrillOptions {
  /** Where the source is, and on whose server the restored one stands meanwhile: its role may create databases. */
  databaseUrl: string;
  /** A backup by `pg_dump --format=custom`, tried instead of a new one. */
  dumpFile?: string | undefined;
  /** Where `pg_dump` and `pg_restore` are looked for. */
  searchPath: string | undefined;
  /** What sealed secrets are opened with. Undefined: they are not tried. */
  encryptionKey?: string | undefined;
  report(line: string): void;
}

/** A dump of a large database takes what it takes. */
const unhurried = { statementMsMax: 0, lockMsMax: 0 };

/** @returns what is not as it should be; nothing when the backup is good. @throws Error when it cannot be restored */
export async function drillRestore(options: DrillOptions): Promise<string[]> {
  const { databaseUrl, dumpFile, searchPath, encryptionKey, report } = options;
  const folder = await mkdtemp(join(tmpdir(), "frontdesk-drill-"));
  const admin = openSql({ databaseUrl, connectionsMax: 2, applicationName: "frontdesk drill", ...unhurried });
  const name = `frontdesk_drill_${randomBytes(6).toString("hex")}`;
  const restoredUrl = new URL(databaseUrl);
  restoredUrl.pathname = `/${name}`;
  const timed = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    const beganMs = performance.now();
    const result = await work();
    report(`${what}: ${((performance.now() - beganMs) / 1000).toFixed(1)} s`);
    return result;
  };
  try {
    const own = join(folder, "dump");
    const expected = dumpFile ? undefined : await timed("dump", () => dump(admin, own, { databaseUrl, searchPath }));
    const { size } = await stat(dumpFile ?? own);
    report(`${(size / 1e6).toFixed(1)} MB`);
    await admin`create database ${admin(name)} template template0`;
    const flags = ["--no-owner", "--no-privileges", "--exit-on-error", `--dbname=${name}`];
    await timed("restore", () =>
      runTool("pg_restore", [...flags, dumpFile ?? own], { databaseUrl: restoredUrl.href, searchPath }),
    );
    const sql = openSql({ databaseUrl: restoredUrl.href, connectionsMax: 4, ...unhurried });
    try {
      // Before the api touches it.
      const counted = await countTables(sql);
      const applied = await timed("migrate and start", () => start(sql, encryptionKey));
      report(applied.length > 0 ? `migrations applied: ${applied.join(", ")}` : "no migration was missing");
      return [
        ...differences(expected, counted, report),
        ...(await invoiceFaults(sql, report)),
        ...(await secretFaults(sql, encryptionKey, report)),
      ];
    } finally {
      await sql.end({ timeout: 5 });
    }
  } finally {
    await admin`drop database if exists ${admin(name)} with (force)`;
    await admin.end({ timeout: 5 });
    await rm(folder, { recursive: true, force: true });
  }
}

type Counts = ReadonlyMap<string, number>;

/** Writes the dump and counts the tables, both in one snapshot: the source goes on meanwhile. */
async function dump(sql: SqlPool, file: string, tool: Parameters<typeof runTool>[2]): Promise<Counts> {
  const connection = await sql.reserve();
  try {
    await connection`begin isolation level repeatable read, read only`;
    await connection`select set_config('idle_in_transaction_session_timeout', '0', true)`;
    const [row] = await connection<{ snapshot: string }[]>`select pg_export_snapshot() as snapshot`;
    if (!row) throw new Error("Cannot dump: Postgres gave no snapshot");
    const counts = await countTables(connection);
    await runTool("pg_dump", ["--format=custom", `--snapshot=${row.snapshot}`, `--file=${file}`], tool);
    return counts;
  } finally {
    await connection`rollback`;
    connection.release();
  }
}

async function countTables(sql: Sql): Promise<Counts> {
  const tables = await sql<{ schema: string; name: string }[]>`
    select schemaname as schema, tablename as name from pg_tables
    where schemaname not in ('pg_catalog', 'information_schema') order by 1, 2`;
  const counts = new Map<string, number>();
  for (const { schema, name } of tables) {
    const [row] = await sql<{ rows: number }[]>`select count(*)::float8 as rows from ${sql(schema)}.${sql(name)}`;
    counts.set(`${schema}.${name}`, row?.rows ?? 0);
  }
  return counts;
}

/** @returns the migrations that the backup had not */
async function start(sql: SqlPool, encryptionKey: string | undefined): Promise<string[]> {
  const applied = await migrate(sql);
  const bus = createMemoryBus();
  const secret = randomBytes(16).toString("hex");
  const config = {
    bindAddress: "127.0.0.1",
    apiPort: 0,
    publicUrl: "http://127.0.0.1",
    internalSecret: secret,
    encryptionKey: encryptionKey ?? secret,
    jwtSecret: secret,
    requireEmailVerification: false,
    appDomain: "apps.localhost",
    allowPrivateAddresses: false,
  };
  const api = await startApi({ config, sql, bus, logger: silentLogger });
  try {
    const { status } = await fetch(`${api.url}/readyz`);
    if (status !== 200) throw new Error(`Cannot live on the backup: the api's /readyz answered ${status}`);
  } finally {
    await api.close();
    await bus.close();
  }
  return applied;
}

function differences(expected: Counts | undefined, found: Counts, report: (line: string) => void): string[] {
  const rows = [...found.values()].reduce((sum, count) => sum + count, 0);
  report(`${found.size} tables, ${rows} rows`);
  if (!expected) return [];
  return [...new Set([...expected.keys(), ...found.keys()])]
    .filter((table) => expected.get(table) !== found.get(table))
    .map((table) => `${table}: ${expected.get(table) ?? "no"} rows before, ${found.get(table) ?? "no"} restored`);
}

/** Numbers that a series gave and that no invoice has. */
async function invoiceFaults(sql: Sql, report: (line: string) => void): Promise<string[]> {
  const series = await sql<{ name: string; last: number; found: number; highest: number }[]>`
    select concat_ws(' ', series.organization_id, series.issuer_id, series.environment, series.type, series.series,
                     series.fiscal_year) as name,
           last_sequence as last, count(invoices.id)::integer as found, coalesce(max(sequence), 0) as highest
    from invoice_series series
    left join invoices on invoices.organization_id = series.organization_id
      and invoices.issuer_id is not distinct from series.issuer_id and invoices.environment = series.environment
      and invoices.type = series.type and invoices.series = series.series
      and invoices.fiscal_year = series.fiscal_year
    group by series.organization_id, series.issuer_id, series.environment, series.type, series.series,
             series.fiscal_year, last_sequence`;
  const numbers = series.reduce((sum, { last }) => sum + last, 0);
  report(`${series.length} series of invoices, ${numbers} numbers`);
  return series
    .filter(({ last, found, highest }) => found !== last || highest !== last)
    .map(({ name, last, found }) => `invoices ${name}: ${last} numbers given, ${found} invoices`);
}

/** A backup whose secrets nobody can open is half a backup: the key is kept apart from it. */
async function secretFaults(sql: Sql, key: string | undefined, report: (line: string) => void): Promise<string[]> {
  const rows = await sql<{ place: string; id: string; secret: Uint8Array }[]>`
    select 'connection' as place, id, secret_encrypted as secret from connection
    union all select 'voice_agent', id, header_secrets from voice_agent where header_secrets is not null
    union all select 'call', id, header_secrets from call where header_secrets is not null`;
  if (key === undefined) {
    report(`${rows.length} sealed secrets, not tried: no ENCRYPTION_KEY`);
    return [];
  }
  const encryption = createEncryption(key);
  const shut = rows.filter(({ id, secret }) => {
    try {
      return encryption.open(secret, id) === undefined;
    } catch {
      return true;
    }
  });
  report(`${rows.length - shut.length} of ${rows.length} sealed secrets open with ENCRYPTION_KEY`);
  return shut.map(({ place, id }) => `${place} ${id}: its secret does not open with ENCRYPTION_KEY`);
}
