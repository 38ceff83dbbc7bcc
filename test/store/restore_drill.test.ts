/** `npm run drill:restore`, on a Postgres of Debian's, which brings the tools. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type DrillOptions, drillRestore } from "#standalone/drill/restore_drill.ts";
import { prepareJobs } from "#store/jobs.ts";
import { migrate, readMigrations } from "#store/migrations.ts";
import { type ApiHarness, appConfig, openApiHarness } from "#test/kit/api_harness.ts";
import { createEmptyDatabase } from "#test/kit/database.ts";
import { type DebianPostgres, debianPostgresMissing, startDebianPostgres } from "#test/kit/debian_postgres.ts";
import { roleArguments } from "#test/kit/role_process.ts";
import { root } from "../house/rooms.ts";

const { encryptionKey } = appConfig;
const stay = { jurisdiction_code: "IT-RM-ROM", stay_date: "2026-12-01", nights: 2, nightly_rate: 90, currency: "EUR" };

describe("a drill of a restore", { skip: debianPostgresMissing }, () => {
  const folder = mkdtempSync(join(tmpdir(), "frontdesk-drill-test-"));
  const { TEST_DATABASE_URL: testDatabaseUrl } = process.env;
  let postgres: DebianPostgres;
  let api: ApiHarness;
  before(async () => {
    postgres = await startDebianPostgres();
    process.env.TEST_DATABASE_URL = postgres.url;
    api = await openApiHarness();
    const secret = { project_id: api.projectId, name: "A vendor", provider: "bearer", secret: "room-key" };
    await expecting(201, "/v1/connections", secret, api.owner.token);
    const signUp = { email: "desk@inn.example", password: "correct horse battery" };
    const { access_token: token, organization } = await expecting(201, "/v1/auth/signup", signUp);
    await api.sql`update organization set api_access_enabled = true where id = ${organization.id}`;
    for (let number = 1; number <= 3; number += 1) {
      const { id } = await expecting(201, "/v1/bookings", { calculation: stay }, token);
      await expecting(201, `/v1/bookings/${id}/invoice`, {}, token);
    }
  });
  after(async () => {
    await api?.close();
    await postgres?.stop();
    process.env.TEST_DATABASE_URL = testDatabaseUrl;
    rmSync(folder, { recursive: true, force: true });
  });

  async function expecting(status: number, path: string, body: object, token?: string) {
    const answer = await api.call("POST", path, { body, ...(token !== undefined && { token }) });
    assert.equal(answer.status, status, `${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  const drill = async (options: Partial<DrillOptions> = {}) => {
    const said: string[] = [];
    const report = (line: string) => void said.push(line);
    const { databaseUrl } = api;
    const faults = await drillRestore({ databaseUrl, searchPath: postgres.bin, encryptionKey, report, ...options });
    return { faults, said: said.join("\n") };
  };
  /** Databases of drills that are still there. */
  const left = async () =>
    (await api.sql<{ datname: string }[]>`select datname from pg_database where datname like 'frontdesk_drill_%'`)
      .length;
  const dumpOf = (databaseUrl: string): string => {
    const file = join(folder, "dump");
    execFileSync(join(postgres.bin, "pg_dump"), ["--format=custom", `--dbname=${databaseUrl}`, `--file=${file}`]);
    return file;
  };

  it("finds a sound backup sound, says how long each step took, and leaves nothing behind", async () => {
    const { faults, said } = await drill();
    assert.deepEqual(faults, []);
    assert.match(said, /^dump: .+ s\n.+ MB\nrestore: .+ s\nmigrate and start: .+ s\nno migration was missing/);
    assert.match(said, /1 series of invoices, 3 numbers\n1 of 1 sealed secrets open/);
    assert.equal(await left(), 0);
  });

  it("is a command that ends with 0", () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, roleArguments("standalone/drill/main.ts"), {
      cwd: root,
      encoding: "utf8",
      env: {
        PATH: `${postgres.bin}:${process.env.PATH}`,
        DATABASE_URL: api.databaseUrl,
        ENCRYPTION_KEY: encryptionKey,
      },
    });
    assert.equal(status, 0, stderr);
    assert.match(stdout, /the backup can be lived on/);
  });

  it("finds rows that the backup has not", async () => {
    const tools = mkdtempSync(join(folder, "tools-"));
    const careless = `#!/bin/sh\nexec "${postgres.bin}/pg_dump" --exclude-table-data=request_log "$@"\n`;
    writeFileSync(join(tools, "pg_dump"), careless, { mode: 0o755 });
    symlinkSync(join(postgres.bin, "pg_restore"), join(tools, "pg_restore"));
    assert.deepEqual((await drill({ searchPath: tools })).faults, ["public.request_log: 6 rows before, 0 restored"]);
  });

  it("finds that the key is another one, and says when it has none", async () => {
    assert.match((await drill({ encryptionKey: "another-key-than-that" })).faults.join(), /does not open/);
    assert.match((await drill({ encryptionKey: undefined })).said, /not tried: no ENCRYPTION_KEY/);
  });

  it("tries a backup that is there, and finds an invoice that is missing", async () => {
    await api.sql.begin(async (transaction) => {
      await transaction`set local session_replication_role = replica`;
      await transaction`delete from invoices where sequence = 2`;
    });
    const { faults } = await drill({ dumpFile: dumpOf(api.databaseUrl) });
    assert.equal(faults.length, 1, faults.join());
    assert.match(faults[0] ?? "", /live invoice .*: 3 numbers given, 2 invoices/);
  });

  it("brings a backup of an older release up to date", async () => {
    const older = await createEmptyDatabase();
    const migrations = await readMigrations();
    const newest = migrations.pop();
    await migrate(older.sql, migrations);
    await prepareJobs(older.url);
    const { faults, said } = await drill({ dumpFile: dumpOf(older.url) });
    await older.drop();
    assert.deepEqual(faults, []);
    assert.match(said, new RegExp(`migrations applied: ${newest?.name}$`, "m"));
  });

  it("fails aloud on what is no backup, and leaves nothing behind", async () => {
    const file = join(folder, "half");
    writeFileSync(file, "PGDMP and no more");
    await assert.rejects(drill({ dumpFile: file }), /pg_restore failed/);
    await assert.rejects(drill({ dumpFile: join(folder, "none") }), /ENOENT/);
    assert.equal(await left(), 0);
  });
});
