/** A Postgres that goes away, stands still or comes back, as those see it who ask the api meanwhile. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createApp } from "#api/app.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import { silentLogger } from "#http/logger.ts";
import { openSql, reconnectDelayS, type SqlPool } from "#store/sql.ts";
import { appConfig } from "#test/kit/api_harness.ts";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { CutLink } from "#test/kit/sockets/cut_link.ts";

describe("a Postgres that is away", () => {
  let database: TestDatabase;
  let link: CutLink;
  let sql: SqlPool;
  const bus = createMemoryBus();
  before(async () => {
    database = await createTestDatabase();
    const url = new URL(database.url);
    link = await CutLink.open(Number(url.port));
    url.port = new URL(link.url).port;
    sql = openSql({ databaseUrl: url.href });
  });
  after(async () => {
    link.flow();
    await sql.end({ timeout: 1 });
    await link.close();
    await bus.close();
    await database.drop();
  });

  const withToken = { authorization: `Bearer svc_pat_${"x".repeat(43)}` };

  it("is tried again within a second, however often it has failed", () => {
    const delays = Array.from({ length: 60 }, (_, failures) => reconnectDelayS(failures, 1));
    assert.ok(delays.every((delay) => delay > 0 && delay <= 1));
    assert.deepEqual(delays.slice(0, 3), [0.05, 0.1, 0.2]);
    assert.equal(reconnectDelayS(60, 0), 0.5);
  });

  it("is well again soon after it is back: nobody waits for the failures of others", async () => {
    await sql`select 1`;
    link.refuse();
    // Each of the pool's ten connections fails, and fails again.
    for (let round = 0; round < 3; round += 1) {
      const answers = await Promise.allSettled(Array.from({ length: 10 }, () => sql`select 1`));
      assert.ok(answers.some(({ status }) => status === "rejected"));
    }
    link.accept();
    const backAtMs = performance.now();
    for (let well = 0; well < 10; ) {
      const answers = await Promise.allSettled(Array.from({ length: 10 }, () => sql`select 1`));
      well = answers.filter(({ status }) => status === "fulfilled").length;
    }
    const tookMs = performance.now() - backAtMs;
    assert.ok(tookMs < 6000, `${tookMs} ms; with the client's own back-off it was over 15 s`);
  });

  it("leaves nobody without an answer for over 10 s when it neither answers nor fails", async ({ mock }) => {
    const app = await createApp({ sql, bus, logger: silentLogger, config: appConfig, now: () => new Date() });
    await sql`select 1`;
    link.stall();
    mock.timers.enable({ apis: ["setTimeout"] });
    const ask = async (path: string) => {
      const answer = await app.fetch(new Request(`http://api.test${path}`, { headers: withToken }));
      await answer.body?.cancel();
      return [answer.status, answer.headers.get("retry-after") !== null];
    };
    const asked = ["/v1/projects", "/v1/organizations/me", "/readyz"].map(ask);
    for (let waitedMs = 0; waitedMs < 10_000; waitedMs += 1000) {
      await new Promise((resolve) => setImmediate(resolve));
      mock.timers.tick(1000);
    }
    const answers = await Promise.all(asked);
    assert.deepEqual(
      answers,
      answers.map(() => [503, true]),
    );
    mock.timers.reset();
    link.flow();
    assert.deepEqual(await ask("/v1/projects"), [401, false]);
    await app.close();
  });
});
