/** The kept databases beside this file: what was read of each when it was made, and how one is restored. */
import { readdir, readFile } from "node:fs/promises";
import { type Migration, migrate } from "#store/migrations.ts";
import type { Sql } from "#store/sql.ts";

export interface SnapshotRead {
  path: string;
  /** A credential or a sign-in of the snapshot. */
  as?: string;
  /** An app's hostname. */
  host?: string;
  headers?: Record<string, string>;
  /** What it answered; text where that was no JSON. */
  body: unknown;
}

export interface Snapshot {
  made_at: string;
  public_url: string;
  secrets: { INTERNAL_SECRET: string; ENCRYPTION_KEY: string; JWT_SECRET: string };
  credentials: Record<string, string>;
  /** People whose sessions have ended since: they sign in again. */
  sign_ins: Record<string, { email: string; password: string }>;
  reads: SnapshotRead[];
}

export interface KeptDatabase {
  /** `schema_0010`: the newest migration that it had. */
  name: string;
  version: number;
  snapshot: Snapshot;
  rows: string;
}

/** All snapshots, oldest first. */
export async function readSnapshots(): Promise<KeptDatabase[]> {
  const folder = new URL("./", import.meta.url);
  const names = (await readdir(folder)).filter((name) => /^schema_\d{4}\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (file) => {
      const name = file.replace(".sql", "");
      const text = (ending: string) => readFile(new URL(`${name}.${ending}`, folder), "utf8");
      return {
        name,
        version: Number(name.slice(-4)),
        snapshot: JSON.parse(await text("json")),
        rows: await text("sql"),
      };
    }),
  );
}

/**
 * Fills an empty database: the schema of then, by the migrations of then, and every row. The rows of
 * `schema_migration` come back too, so that a migration that was changed since is refused by the next one.
 */
export async function restoreSnapshot(sql: Sql, kept: KeptDatabase, migrations: readonly Migration[]): Promise<void> {
  await migrate(
    sql,
    migrations.filter(({ version }) => version <= kept.version),
  );
  const connection = await sql.reserve();
  try {
    await connection.unsafe("delete from schema_migration").simple();
    // Rows come in the tables' alphabetical order: references hold again when all are there.
    await connection.unsafe(`set session_replication_role = replica; ${kept.rows}`).simple();
    await connection.unsafe("reset session_replication_role").simple();
  } finally {
    connection.release();
  }
}
