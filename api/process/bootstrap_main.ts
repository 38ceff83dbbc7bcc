/**
 * `npm run bootstrap`: makes the first platform administrator on a migrated database, and ends.
 * `npm start` needs none: it makes people, agents and an app of its own.
 */
import { ensureFirstAdministrator } from "#accounts/first_administrator.ts";
import { openSql } from "#store/sql.ts";
import { readBootstrapConfig } from "../config.ts";
import { runCommand } from "./run_process.ts";

await runCommand("bootstrap", readBootstrapConfig, async ({ databaseUrl, email, password }, logger) => {
  const sql = openSql({ databaseUrl, connectionsMax: 1, applicationName: "frontdesk bootstrap" });
  try {
    const made = await ensureFirstAdministrator(sql, { email, password, now: new Date() });
    logger.info({ made }, "the first administrator is there");
  } finally {
    await sql.end({ timeout: 5 });
  }
});
