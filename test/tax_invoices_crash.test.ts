/**
 * The api is killed while it issues and credits invoices: a trigger of the test's own holds the
 * statement between taking a number and using it. Numbers go on without a gap, and nothing is half done.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { type RoleProcess, sharedSecrets, startRole } from "./role_process.ts";

const redisUrl = process.env.TEST_REDIS_URL;
const skip = redisUrl ? false : "no TEST_REDIS_URL (no redis-server on this machine)";

/** Any constant: the lock that the trigger waits for. */
const holdKey = 7_305_013;
const stay = { jurisdiction_code: "IT-RM-ROM", stay_date: "2026-12-01", nights: 2, nightly_rate: 90, currency: "EUR" };

/** `kept`: what is cut off here was done; from the commit on it is the database's. */
const steps = [
  { what: "between the number and the invoice", trigger: "before insert on invoices", kept: false },
  { what: "as it is committed", trigger: "after insert on invoices", deferred: true, kept: true },
  { what: "before the answer", trigger: "before insert on request_log", kept: true },
];

describe("kill -9 of the api that issues invoices", { skip }, () => {
  let database: TestDatabase;
  let dataDir: string;
  let token: string;
  let api: RoleProcess;
  let url: string;

  before(async () => {
    database = await createTestDatabase();
    dataDir = mkdtempSync(join(tmpdir(), "frontdesk-invoices-"));
    await database.sql.unsafe(`
      create function hold() returns trigger language plpgsql as $$
      begin
        perform pg_advisory_xact_lock_shared(${holdKey});
        return new;
      end $$`);
    await startApi();
    const signedUp = await request("/v1/auth/signup", { email: "inn@example.com", password: "correct horse battery" });
    assert.equal(signedUp.status, 201);
    token = signedUp.body.access_token;
  });
  after(async () => {
    await api?.stop();
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function startApi(): Promise<void> {
    const environment = { DATABASE_URL: database.url, REDIS_URL: redisUrl ?? "", DATA_DIR: dataDir, API_PORT: "0" };
    api = startRole("api/main.ts", { ...sharedSecrets, ...environment });
    const [line = ""] = await api.until(/^.*"msg":"api listens".*$/m);
    ({ url } = JSON.parse(line));
  }

  async function request(path: string, body: object) {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
    });
    // biome-ignore lint/suspicious/noExplicitAny: a test reads bodies as a client in JavaScript does
    return { status: response.status, body: (await response.json()) as any };
  }
  const book = async () => (await request("/v1/bookings", { calculation: stay })).body.id as string;
  const issue = (booking: string) => request(`/v1/bookings/${booking}/invoice`, {});
  const credit = (booking: string) => request(`/v1/bookings/${booking}/invoice/credit`, {});

  /** Runs `work` with all that comes by the step held there; lets go of it when `work` is done. */
  async function holding({ trigger, deferred }: (typeof steps)[number], work: () => Promise<void>): Promise<void> {
    const timing = deferred
      ? `constraint trigger hold_here ${trigger} deferrable initially deferred`
      : `trigger hold_here ${trigger}`;
    await database.sql.unsafe(`create ${timing} for each row execute function hold()`);
    const holder = await database.sql.reserve();
    try {
      await holder`select pg_advisory_lock(${holdKey})`;
      await work();
      await holder`select pg_advisory_unlock(${holdKey})`;
    } finally {
      holder.release();
    }
    // Waits for the statements that were held, and so for the end of what the killed process began.
    await database.sql.unsafe(`drop trigger hold_here on ${trigger.split(" ").at(-1) ?? ""}`);
  }

  async function untilHeld(count: number): Promise<void> {
    for (;;) {
      const rows = await database.sql`
        select 1 from pg_locks where locktype = 'advisory' and objid = ${holdKey} and not granted`;
      if (rows.length >= count) return;
      await delay(5);
    }
  }

  /** Numbers of a type, which must be 1, 2, 3 …, as the series says as well. */
  async function sequencesOf(type: string): Promise<number> {
    const rows = await database.sql<{ sequence: number }[]>`
      select sequence from invoices where type = ${type} order by sequence`;
    assert.deepEqual(
      rows.map(({ sequence }) => sequence),
      rows.map((_, index) => index + 1),
    );
    const [series] = await database.sql<{ last_sequence: number }[]>`
      select last_sequence from invoice_series where type = ${type}`;
    assert.equal(series?.last_sequence ?? 0, rows.length);
    return rows.length;
  }

  for (const step of steps) {
    it(`${step.what} leaves no gap and no half of one`, { timeout: 120_000 }, async () => {
      const [fresh, live] = [await book(), await book()];
      assert.equal((await issue(live)).status, 201);
      const issuedBefore = await sequencesOf("invoice");
      const creditedBefore = await sequencesOf("credit_note");
      await holding(step, async () => {
        const cutOff = [issue(fresh), credit(live)].map((answer) => assert.rejects(answer));
        // The request log writes one entry at a time.
        await untilHeld(step.trigger.endsWith("request_log") ? 1 : 2);
        await api.stop("SIGKILL");
        await Promise.all(cutOff);
      });
      await startApi();
      const issued = (await sequencesOf("invoice")) - issuedBefore;
      const credited = (await sequencesOf("credit_note")) - creditedBefore;
      if (step.kept) assert.ok(issued + credited > 0);
      else assert.deepEqual([issued, credited], [0, 0]);

      // Sent again, each is done once and takes the next number.
      assert.equal((await issue(fresh)).status, issued === 1 ? 409 : 201);
      assert.equal((await credit(live)).status, credited === 1 ? 409 : 201);
      assert.equal(await sequencesOf("invoice"), issuedBefore + 1);
      assert.equal(await sequencesOf("credit_note"), creditedBefore + 1);
    });
  }
});
