import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { createApp } from "#api/app.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import { silentLogger } from "#http/logger.ts";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { type Bootstrapped, bootstrap } from "./bootstrap.ts";

describe("bootstrap", () => {
  let database: TestDatabase;
  let dataDir: string;
  before(async () => {
    database = await createTestDatabase();
  });
  after(() => database.drop());
  beforeEach(async () => {
    const { sql } = database;
    await sql`truncate bootstrap, voice_agent, project, organization, app_user cascade`;
    dataDir = await mkdtemp(join(tmpdir(), "frontdesk-bootstrap-"));
  });
  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  const start = (gatewayUrl = "http://127.0.0.1:8080") =>
    bootstrap({ sql: database.productSql, gatewayUrl, apiUrl: "http://127.0.0.1:8081", dataDir });

  /** Reads both agents with the file's token, through the api. */
  async function assertWorks({ file }: Bootstrapped): Promise<void> {
    const bus = createMemoryBus();
    const config = {
      publicUrl: file.gateway_url,
      internalSecret: "internal-secret",
      encryptionKey: "encryption-key",
      jwtSecret: "jwt-secret-of-tests",
      requireEmailVerification: false,
      appDomain: "apps.localhost",
      allowPrivateAddresses: false,
    };
    const app = await createApp({ sql: database.sql, bus, logger: silentLogger, config, now: () => new Date() });
    for (const id of [file.voice_agent_id, file.echo_agent_id]) {
      const request = new Request(`http://api.test/v1/agents/voice/agents/${id}`, {
        headers: { authorization: `Bearer ${file.pat}` },
      });
      const response = await app.fetch(request);
      assert.equal(response.status, 200);
      const { data } = (await response.json()) as { data: { project_id: string } };
      assert.equal(data.project_id, file.project_id);
    }
    const host = file.app_host ?? assert.fail("there is no demo app");
    const started = await app.fetch(
      new Request(`http://${host}/v1/runs`, {
        method: "POST",
        headers: { host, authorization: `Bearer ${file.access_key}`, "content-type": "application/json" },
        body: JSON.stringify({ input: { question: "When is breakfast?" }, background: true }),
      }),
    );
    assert.equal(started.status, 202);
    const run = (await started.json()) as { data: { app_id: string } };
    assert.equal(run.data.app_id, file.app_id);
    await app.close();
    await bus.close();
  }

  const counts = async () => {
    const [row] = await database.sql`
      select (select count(*)::integer from organization) as organizations,
             (select count(*)::integer from app_user) as users,
             (select count(*)::integer from voice_agent) as agents,
             (select count(*)::integer from workflow) as workflows,
             (select count(*)::integer from app) as apps`;
    return { ...row };
  };

  it("makes everything and writes a private file", async () => {
    const first = await start();
    assert.deepEqual(Object.keys(first.file), [
      "gateway_url",
      "api_url",
      "email",
      "password",
      "pat",
      "access_key",
      "project_id",
      "voice_agent_id",
      "echo_agent_id",
      "app_id",
      "app_host",
      "app_url",
      "collector_url",
      "admin_email",
      "admin_password",
    ]);
    assert.equal((await stat(first.path)).mode & 0o777, 0o600);
    assert.deepEqual(JSON.parse(await readFile(first.path, "utf8")), first.file);
    assert.deepEqual(await readdir(dataDir), ["bootstrap.json"]);
    await assertWorks(first);
  });

  it("keeps its secrets over restarts and follows the addresses", async () => {
    const first = await start();
    const again = await start("http://127.0.0.1:9999");
    const app_host = first.file.app_host?.replace(":8080", ":9999");
    const app_url = first.file.app_url?.replace(":8080", ":9999");
    const moved = { gateway_url: "http://127.0.0.1:9999", app_host, app_url };
    assert.deepEqual(again.file, { ...first.file, ...moved, collector_url: "http://127.0.0.1:9999/-/collector" });
    assert.equal(app_url, `http://127.0.0.1:9999/-/apps/${app_host?.split(".")[0]}`);
    assert.match(again.file.app_host ?? "", /^front-desk-[a-z0-9]{6}\.apps\.localhost:9999$/);
    assert.match((await start("https://desk.example")).file.app_host ?? "", /\.apps\.localhost$/);
    assert.deepEqual(await counts(), { organizations: 1, users: 2, agents: 2, workflows: 1, apps: 1 });
  });

  it("mints new secrets for the same agents when the file is lost or cut short", async () => {
    const first = await start();
    for (const damage of [() => rm(first.path), () => writeFile(first.path, '{"pat": "svc_')]) {
      await damage();
      const again = await start();
      assert.equal(again.file.voice_agent_id, first.file.voice_agent_id);
      assert.notEqual(again.file.pat, first.file.pat);
      await assertWorks(again);
    }
    assert.deepEqual(await counts(), { organizations: 1, users: 2, agents: 2, workflows: 1, apps: 1 });
  });

  it("mints new secrets when the file belongs to another database", async () => {
    const first = await start();
    await database.sql`truncate bootstrap, voice_agent, project, organization, app_user cascade`;
    const again = await start();
    assert.notEqual(again.file.voice_agent_id, first.file.voice_agent_id);
    await assertWorks(again);
  });

  it("gives the app to a database of before there were apps, once, and makes a deleted one anew", async () => {
    const first = await start();
    await database.sql`delete from app`;
    const starts = await Promise.all([start(), start(), start()]);
    assert.equal(new Set(starts.map(({ file }) => file.app_id)).size, 1);
    const [again] = starts;
    assert.notEqual(again.file.app_id, first.file.app_id);
    const noApp = { app_id: null, app_host: null, app_url: null };
    assert.deepEqual({ ...again.file, ...noApp }, { ...first.file, ...noApp });
    assert.equal((await counts()).apps, 1);
    await assertWorks(again);
  });

  it("starts without the app when its project was deleted", async () => {
    await start();
    await database.sql`delete from app`;
    await database.sql`update project set deleted_at = now()`;
    const { file } = await start();
    assert.deepEqual([file.app_id, file.app_host, file.app_url], [null, null, null]);
  });

  it("leaves nothing behind when it fails half-way, and succeeds the next time", async () => {
    const { sql } = database;
    await sql`alter table bootstrap add constraint broken check (created_at < '2000-01-01')`;
    await assert.rejects(start());
    assert.deepEqual(await counts(), { organizations: 0, users: 0, agents: 0, workflows: 0, apps: 0 });
    assert.deepEqual(await readdir(dataDir), []);
    await sql`alter table bootstrap drop constraint broken`;
    await assertWorks(await start());
  });

  it("happens once when several starts race, and the file that stays works", async () => {
    const starts = await Promise.all([start(), start(), start(), start()]);
    assert.deepEqual(await counts(), { organizations: 1, users: 2, agents: 2, workflows: 1, apps: 1 });
    assert.equal(new Set(starts.map(({ file }) => JSON.stringify(file))).size, 1);
    await assertWorks(starts[0]);
  });
});
