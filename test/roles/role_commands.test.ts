import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { awaitSchema } from "#store/awaited_schema.ts";
import { MigrationError, readMigrations } from "#store/migrations.ts";
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { roleArguments } from "#test/kit/role_process.ts";

/** Runs a role's command as `npm run` does, with nothing but these variables. */
async function command(script: string, env: Record<string, string>) {
  const child = spawn(process.execPath, roleArguments(script), {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
    env: { PATH: process.env.PATH, TMPDIR: tmpdir(), ...env },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const [code] = await once(child, "close");
  return { code: code as number, output };
}

describe("npm run migrate", () => {
  let database: TestDatabase;
  before(async () => {
    database = await createEmptyDatabase();
  });
  after(() => database.drop());
  const migrate = () => command("api/process/migrate_main.ts", { DATABASE_URL: database.url });

  it("brings an empty database up to date, several at once and again, and ends with 0", async () => {
    const [one, two] = await Promise.all([migrate(), migrate()]);
    assert.deepEqual([one.code, two.code], [0, 0], one.output + two.output);
    const rows = await database.sql`select 1 from schema_migration`;
    assert.equal(rows.length, (await readMigrations()).length);
    assert.match((await migrate()).output, /"applied":\[\]/);
    await awaitSchema(database.sql, { patienceMs: 0 });
  });

  it("ends with 1 and the reason when Postgres is not there, and when DATABASE_URL is missing", async () => {
    const away = await command("api/process/migrate_main.ts", { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" });
    assert.deepEqual([away.code, /ECONNREFUSED/.test(away.output)], [1, true], away.output);
    const unset = await command("api/process/migrate_main.ts", {});
    assert.deepEqual([unset.code, /DATABASE_URL: Required/.test(unset.output)], [1, true], unset.output);
  });
});

describe("a start that leaves migrating to others", () => {
  it("waits for the last migration and the queue's tables, and names what is missing when patience ends", async () => {
    const database = await createEmptyDatabase();
    try {
      const { sql } = database;
      await assert.rejects(awaitSchema(sql, { patienceMs: 0 }), /the database has no 0001_/);
      const waiting = awaitSchema(sql, { patienceMs: 60_000 });
      assert.equal((await command("api/process/migrate_main.ts", { DATABASE_URL: database.url })).code, 0);
      await waiting;
      const newest = { version: 9999, name: "9999_new.sql", text: "" };
      const migrations = [...(await readMigrations()), newest];
      await assert.rejects(awaitSchema(sql, { patienceMs: 0, migrations }), (error: Error) => {
        return error instanceof MigrationError && error.message.includes("9999_new.sql");
      });
    } finally {
      await database.drop();
    }
  });
});

describe("npm run bootstrap", () => {
  let database: TestDatabase;
  before(async () => {
    database = await createTestDatabase();
  });
  after(() => database.drop());
  const bootstrap = (email: string, password?: string) =>
    command("api/process/bootstrap_main.ts", {
      DATABASE_URL: database.url,
      BOOTSTRAP_EMAIL: email,
      ...(password && { BOOTSTRAP_PASSWORD: password }),
    });
  const counts = async () => {
    const [row] = await database.sql`
      select (select count(*)::integer from app_user where is_platform_admin) as administrators,
             (select count(*)::integer from organization_member where role = 'owner') as owners,
             (select count(*)::integer from project) as projects,
             (select count(*)::integer from graphile_worker.jobs where task_identifier = 'send_mail') as mails`;
    return { ...row };
  };

  it("makes one administrator with an organization and a project, however often and by however many", async () => {
    const password = "a password that nobody guesses";
    const racing = await Promise.all([
      bootstrap("desk@inn.example", password),
      bootstrap("Desk@inn.example", password),
    ]);
    for (const { code, output } of racing) {
      assert.equal(code, 0, output);
      assert.doesNotMatch(output, /nobody guesses|argon2/);
    }
    assert.deepEqual(await counts(), { administrators: 1, owners: 1, projects: 1, mails: 0 });
    const [before] = await database.sql`select password_hash from app_user`;
    assert.equal((await bootstrap("desk@inn.example", "quite another password")).code, 0);
    const [kept] = await database.sql`select password_hash from app_user`;
    assert.deepEqual({ ...kept }, { ...before });
    assert.deepEqual(await counts(), { administrators: 1, owners: 1, projects: 1, mails: 0 });
  });

  it("asks by mail for a password where none is given", async () => {
    assert.equal((await bootstrap("night@inn.example")).code, 0);
    const jobs = await database.sql<{ payload: unknown }[]>`
      select payload from graphile_worker._private_jobs`;
    assert.deepEqual(
      jobs.map(({ payload }) => payload),
      [{ kind: "reset_password", email: "night@inn.example" }],
    );
  });

  it("refuses an address that somebody signed up with and did not prove", async () => {
    await database.sql`insert into app_user (email) values ('early@inn.example')`;
    const { code, output } = await bootstrap("early@inn.example", "a password that nobody guesses");
    assert.deepEqual([code, /expected its account to have a confirmed address/.test(output)], [1, true], output);
    const [user] = await database.sql`select is_platform_admin from app_user where email = 'early@inn.example'`;
    assert.equal(user?.is_platform_admin, false);
  });

  it("refuses what is no address, a short password and one that is guessed first", async () => {
    for (const [email, password] of [
      ["no address", "long enough to be one"],
      ["a@inn.example", "short"],
      ["a@inn.example", "password1"],
    ] as const) {
      const { code, output } = await bootstrap(email, password);
      assert.equal(code, 1, output);
      assert.doesNotMatch(output, /long enough|short|password1/);
    }
  });
});
