/** The api is killed while exporters send: what it answered 200 is there, and what it did not answer is whole or not there. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { createAccessKey } from "#identity/access_keys.ts";
import { createTestDatabase } from "#test/kit/database.ts";
import { patienceMs } from "#test/kit/patience.ts";
import { sharedSecrets, startRole } from "#test/kit/role_process.ts";
import { hexId, otlpExport, otlpSpan } from "#test/kit/traces/otlp_bodies.ts";

const redisUrl = process.env.TEST_REDIS_URL;
const skip = redisUrl ? false : "no TEST_REDIS_URL (no redis-server on this machine)";
const exporters = 8;
const spansOfTrace = 5;
const killedAfter = 60;

it("kill -9 of the api loses no span of a request that was answered", { skip, timeout: patienceMs }, async () => {
  const database = await createTestDatabase();
  const { sql } = database;
  const dataDir = mkdtempSync(join(tmpdir(), "frontdesk-crash-"));
  const environment = { DATABASE_URL: database.url, REDIS_URL: redisUrl ?? "", DATA_DIR: dataDir, API_PORT: "0" };
  const api = startRole("api/process/main.ts", { ...sharedSecrets, ...environment });
  try {
    const [line = ""] = await api.until(/^.*"msg":"api listens".*$/m);
    const { url } = JSON.parse(line) as { url: string };
    const secret = await keyOfNewProject();
    const answered: string[] = [];
    let sent = 0;

    /** Sends one trace after the other until the api is gone. */
    async function exportUntilGone(): Promise<void> {
      for (;;) {
        const traceId = hexId(16);
        const spans = Array.from({ length: spansOfTrace }, () => otlpSpan(new Date(), { traceId }));
        sent += 1;
        const response = await fetch(`${url}/-/collector/v1/traces`, {
          method: "POST",
          headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
          body: JSON.stringify(otlpExport(spans)),
        });
        assert.equal(response.status, 200, await response.text());
        answered.push(traceId);
        if (answered.length === killedAfter) void api.stop("SIGKILL");
      }
    }
    const ends = await Promise.allSettled(Array.from({ length: exporters }, exportUntilGone));
    for (const end of ends)
      assert.ok(end.status === "rejected" && !(end.reason instanceof assert.AssertionError), String(end));

    const counts = async () => {
      const rows = await sql<{ id: string; span_count: number; spans: number }[]>`
        select replace(id::text, '-', '') as id, span_count,
               (select count(*)::integer from span where span.trace_id = trace.id) as spans from trace`;
      return new Map(rows.map(({ id, ...count }) => [id, count]));
    };
    const kept = await counts();
    assert.ok(answered.length >= killedAfter && sent > answered.length);
    for (const id of answered) assert.deepEqual(kept.get(id), { span_count: spansOfTrace, spans: spansOfTrace }, id);
    for (const count of kept.values()) assert.deepEqual(count, { span_count: spansOfTrace, spans: spansOfTrace });
  } finally {
    await api.stop("SIGKILL");
    await database.drop();
    rmSync(dataDir, { recursive: true, force: true });
  }

  async function keyOfNewProject(): Promise<string> {
    const [made] = await sql<{ organization_id: string; user_id: string; project_id: string }[]>`
      with organization as (insert into organization (name) values ('Crash') returning id),
           person as (insert into app_user (email) values ('crash@example.com') returning id),
           project as (
             insert into project (organization_id, name, created_at, updated_at)
             select id, 'Crash', now(), now() from organization returning id, organization_id)
      select project.organization_id, person.id as user_id, project.id as project_id from project, person`;
    assert(made);
    const of = { organizationId: made.organization_id, userId: made.user_id, projectId: made.project_id };
    return (await createAccessKey(sql, { ...of, name: "crash", now: new Date() })).secret;
  }
});
