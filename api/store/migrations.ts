/**
 * Forward-only migrations: `migrations/0001_name.sql`, applied in order, each in a transaction of
 * its own whose first statement is the version row. A session-level advisory lock makes any number
 * of starting processes take turns; a file that changed after it was applied is refused.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import type { Sql } from "./sql.ts";

/** Any constant will do: it names our lock in `pg_locks`. */
const lockKey = 7_305_001;

export interface Migration {
  version: number;
  name: string;
  text: string;
}

/** Applied and known migrations differ: somebody edited history, or the database is newer than the code. */
export class MigrationError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MigrationError";
  }
}

/** Reads a folder of migrations. @throws MigrationError unless they count 1, 2, 3 … */
export async function readMigrations(folder = new URL("./migrations/", import.meta.url)): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql")).sort();
  return Promise.all(
    names.map(async (name, index) => {
      const version = Number(/^(\d{4})_[a-z0-9_]+\.sql$/.exec(name)?.[1]);
      if (version !== index + 1)
        throw new MigrationError(`Cannot order migration ${name}: expected version ${index + 1}`);
      return { version, name, text: await readFile(new URL(name, folder), "utf8") };
    }),
  );
}

/**
 * Brings the database up to date. Safe to run from several processes at once and after a crash.
 * @returns the names that were applied now
 * @throws MigrationError for a changed file and for a database that is ahead of this code
 */
export async function migrate(sql: Sql, migrations?: readonly Migration[]): Promise<string[]> {
  const known = migrations ?? (await readMigrations());
  const connection = await sql.reserve();
  try {
    // Others that start, and a large table, take as long as they take.
    await connection`select set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false)`;
    await connection`select pg_advisory_lock(${lockKey})`;
    try {
      return await applyMissing(connection, known);
    } finally {
      await connection`select pg_advisory_unlock(${lockKey})`;
      await connection`reset statement_timeout`;
      await connection`reset lock_timeout`;
    }
  } finally {
    connection.release();
  }
}

async function applyMissing(connection: Sql, known: readonly Migration[]): Promise<string[]> {
  await connection`
    create table if not exists schema_migration (
      version integer primary key,
      name text not null,
      checksum text not null,
      applied_at timestamptz not null default now()
    )`;
  const applied = await connection<{ version: number; name: string; checksum: string }[]>`
    select version, name, checksum from schema_migration order by version`;
  for (const row of applied) {
    const migration = known.find(({ version }) => version === row.version);
    if (!migration)
      throw new MigrationError(`Cannot migrate: the database has ${row.name}, which this version does not know`);
    if (checksumOf(migration) !== row.checksum) {
      throw new MigrationError(
        `Cannot migrate: ${migration.name} was changed after it was applied, expected a new file`,
      );
    }
  }
  const missing = known.filter(({ version }) => !applied.some((row) => row.version === version));
  for (const migration of missing) await apply(connection, migration);
  return missing.map(({ name }) => name);
}

async function apply(connection: Sql, migration: Migration): Promise<void> {
  await connection`begin`;
  try {
    await connection`
      insert into schema_migration (version, name, checksum)
      values (${migration.version}, ${migration.name}, ${checksumOf(migration)})`;
    await connection.unsafe(migration.text).simple();
    await connection`commit`;
  } catch (cause) {
    await connection`rollback`;
    throw new Error(`Cannot apply migration ${migration.name}`, { cause });
  }
}

function checksumOf({ text }: Migration): string {
  return createHash("sha256").update(text).digest("hex");
}
