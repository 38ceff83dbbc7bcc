/** For starts that leave migrating to somebody else: waits until the database has what the code needs. */
import { setTimeout as wait } from "node:timers/promises";
import { type AppliedMigration, type Migration, MigrationError, readMigrations, requireKnown } from "./migrations.ts";
import type { Sql } from "./sql.ts";

const pauseMs = 1000;

/**
 * Resolves when every migration that this code knows is applied, and the job queue has its tables.
 * @param options.patienceMs how long to wait for it
 * @throws MigrationError that names the first one that is missing, after `patienceMs`; at once for one that
 * this code does not work with
 */
export async function awaitSchema(
  sql: Sql,
  options: { patienceMs: number; migrations?: readonly Migration[] },
): Promise<void> {
  const known = options.migrations ?? (await readMigrations());
  const endsAtMs = performance.now() + options.patienceMs;
  for (;;) {
    const missing = await firstMissing(sql, known);
    if (!missing) return;
    const leftMs = endsAtMs - performance.now();
    if (leftMs <= 0)
      throw new MigrationError(`Cannot start: the database has no ${missing}, expected "npm run migrate" to apply it`);
    await wait(Math.min(pauseMs, leftMs));
  }
}

async function firstMissing(sql: Sql, known: readonly Migration[]): Promise<string | undefined> {
  const [found] = await sql<{ versions: string | null; jobs: string | null }[]>`
    select to_regclass('schema_migration') as versions, to_regclass('graphile_worker.migrations') as jobs`;
  if (!found?.versions) return known[0]?.name;
  // By way of JSON, as a schema that nobody has migrated yet may be from before there was such a column.
  const applied = await sql<AppliedMigration[]>`
    select version, name, checksum, (to_jsonb(row) ->> 'compatible_with')::integer as compatible_with
    from schema_migration row`;
  requireKnown(applied, known);
  const missing = known.find(({ version }) => !applied.some((row) => row.version === version));
  return missing?.name ?? (found.jobs ? undefined : "tables of the job queue");
}
