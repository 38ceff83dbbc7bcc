/**
 * Forward-only migrations: `migrations/0001_name.sql`, applied in order, each in a transaction of
 * its own whose first statement is the version row. A session-level advisory lock makes any number
 * of starting processes take turns; a file that changed after it was applied is refused.
 *
 * In a rolling upgrade the version before runs beside a migrated database, and after a rollback it starts
 * on one. A file's head says what it takes for that, in comments of their own lines:
 *
 *     -- compatible with: 0010           code that knows migrations up to this one works with it
 *     -- outside of a transaction        `create index concurrently`, one statement to an end of line
 *
 * What runs outside of a transaction may be cut off between two statements and is run again: each has to
 * bear that. An index that was cut off is there and not valid: drop it `if exists` before it is created.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { isLockedOut, type Sql } from "./sql.ts";

/** Any constant will do: it names our lock in `pg_locks`. */
const lockKey = 7_305_001;

/** Between two looks whether it is our turn. */
const turnPauseMs = 100;

/**
 * A migration that waits for a table makes everybody behind it wait as well: it gives up soon, lets them
 * through, and tries again.
 */
const lockPolicy = { timeoutMs: 3000, pauseMs: 1000, triesMax: 60 };

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
 * @throws MigrationError for a changed file and for a newer database that this code does not work with
 */
export async function migrate(sql: Sql, migrations?: readonly Migration[]): Promise<string[]> {
  const known = migrations ?? (await readMigrations());
  const connection = await sql.reserve();
  try {
    // Others that start, and a large table, take as long as they take.
    await connection`select set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false)`;
    await takeTurn(connection);
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

/** Asks again and again: a statement that waits would keep `create index concurrently` of the other waiting for it. */
async function takeTurn(connection: Sql): Promise<void> {
  for (;;) {
    const rows = await connection<{ taken: boolean }[]>`select pg_try_advisory_lock(${lockKey}) as taken`;
    if (rows[0]?.taken) return;
    await wait(turnPauseMs);
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
  await connection`alter table schema_migration add column if not exists compatible_with integer`;
  const applied = await connection<AppliedMigration[]>`
    select version, name, checksum, compatible_with from schema_migration order by version`;
  requireKnown(applied, known);
  const missing = known.filter(({ version }) => !applied.some((row) => row.version === version));
  for (const migration of missing) await apply(connection, migration);
  return missing.map(({ name }) => name);
}

export interface AppliedMigration {
  version: number;
  name: string;
  checksum: string;
  /** Code that knows migrations up to this one works with it; null: it has to know this very one. */
  compatible_with: number | null;
}

/** @throws MigrationError for a changed file, and for a newer database that this code does not work with */
export function requireKnown(applied: readonly AppliedMigration[], known: readonly Migration[]): void {
  const newest = known.at(-1)?.version ?? 0;
  for (const row of applied) {
    const migration = known.find(({ version }) => version === row.version);
    if (!migration) {
      if (row.compatible_with !== null && row.compatible_with <= newest) continue;
      throw new MigrationError(
        `Cannot start: the database has ${row.name}, which this version does not know and does not work with`,
      );
    }
    if (checksumOf(migration) !== row.checksum) {
      throw new MigrationError(
        `Cannot migrate: ${migration.name} was changed after it was applied, expected a new file`,
      );
    }
  }
}

async function apply(connection: Sql, migration: Migration): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await (isOutsideOfTransaction(migration) ? applyBare : applyWhole)(connection, migration);
    } catch (cause) {
      if (!isLockedOut(cause) || tries >= lockPolicy.triesMax) {
        throw new Error(`Cannot apply migration ${migration.name}`, { cause });
      }
    }
    await wait(lockPolicy.pauseMs);
  }
}

async function applyWhole(connection: Sql, migration: Migration): Promise<void> {
  await connection`begin`;
  try {
    await connection`select set_config('lock_timeout', ${String(lockPolicy.timeoutMs)}, true)`;
    await insertVersion(connection, migration);
    await connection.unsafe(migration.text).simple();
    await connection`commit`;
  } catch (error) {
    await connection`rollback`;
    throw error;
  }
}

/** Waits for running transactions without holding anybody up, so that it needs no time-out. */
async function applyBare(connection: Sql, migration: Migration): Promise<void> {
  const statements = migration.text.split(/;[ \t]*(?:\n|$)/).filter((text) => text.replace(/--.*/g, "").trim() !== "");
  for (const statement of statements) await connection.unsafe(statement).simple();
  await insertVersion(connection, migration);
}

async function insertVersion(connection: Sql, migration: Migration): Promise<void> {
  const compatibleWith = /^-- compatible with: (\d{4})$/m.exec(migration.text)?.[1];
  await connection`
    insert into schema_migration (version, name, checksum, compatible_with)
    values (${migration.version}, ${migration.name}, ${checksumOf(migration)},
            ${compatibleWith === undefined ? null : Number(compatibleWith)})`;
}

const isOutsideOfTransaction = ({ text }: Migration) => /^-- outside of a transaction$/m.test(text);

function checksumOf({ text }: Migration): string {
  return createHash("sha256").update(text).digest("hex");
}
