/** `npm run migrate`: brings the database up to date and ends. Any number may run at once. */
import { prepareJobs } from "#store/jobs.ts";
import { migrate } from "#store/migrations.ts";
import { requireDirect } from "#store/pooler.ts";
import { openSql } from "#store/sql.ts";
import { readMigrateConfig } from "../config.ts";
import { runCommand } from "./run_process.ts";

await runCommand("migrate", readMigrateConfig, async ({ databaseUrl }, logger) => {
  const sql = openSql({ databaseUrl, connectionsMax: 2, applicationName: "frontdesk migrate" });
  try {
    await requireDirect(sql, { databaseUrl, who: "npm run migrate" });
    const applied = await migrate(sql);
    await prepareJobs(databaseUrl);
    logger.info({ applied }, "the database is up to date");
  } finally {
    await sql.end({ timeout: 5 });
  }
});
