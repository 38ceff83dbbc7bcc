/**
 * The api is killed between any two steps of a booking and a refund: a trigger of the test's own holds
 * the statement at a step until the process is gone. Whoever sends the requests again finds both done
 * once, whatever had become of them.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Rational, sumOf } from "#tax/calculator/rational.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { type RoleProcess, sharedSecrets, startRole } from "./role_process.ts";

const redisUrl = process.env.TEST_REDIS_URL;
const skip = redisUrl ? false : "no TEST_REDIS_URL (no redis-server on this machine)";

/** Any constant: the lock that the trigger waits for. */
const holdKey = 7_305_011;
const stay = { jurisdiction_code: "IT-RM-ROM", stay_date: "2026-12-01", nights: 5, nightly_rate: 90, currency: "EUR" };

/** Where both requests come by, in the order in which they do. */
const steps = [
  { what: "before the booking is written", trigger: "before insert or update on bookings" },
  { what: "before the ledger is", trigger: "before insert on tax_entries" },
  { what: "as it is committed", trigger: "after insert on tax_entries", deferred: true },
  { what: "before the answer", trigger: "before insert on request_log" },
];

describe("kill -9 of the api", { skip }, () => {
  let database: TestDatabase;
  let dataDir: string;
  let token: string;
  let api: RoleProcess;
  let url: string;

  before(async () => {
    database = await createTestDatabase();
    dataDir = mkdtempSync(join(tmpdir(), "frontdesk-bookings-"));
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

  async function request(path: string, body?: object) {
    const response = await fetch(`${url}${path}`, {
      method: body ? "POST" : "GET",
      headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: a test reads bodies as a client in JavaScript does
    return { status: response.status, body: (await response.json()) as any };
  }

  /** Runs `work` with all that comes by the step held there; lets go of it when `work` is done. */
  async function holding({ trigger, deferred }: (typeof steps)[number], work: () => Promise<void>): Promise<void> {
    const table = trigger.split(" ").at(-1) ?? "";
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
    await database.sql.unsafe(`drop trigger hold_here on ${table}`);
  }

  async function untilHeld(count: number): Promise<void> {
    for (;;) {
      const rows = await database.sql`
        select 1 from pg_locks where locktype = 'advisory' and objid = ${holdKey} and not granted`;
      if (rows.length >= count) return;
      await delay(5);
    }
  }

  for (const step of steps) {
    it(`${step.what} leaves a booking and a refund whole or not there`, { timeout: 60_000 }, async () => {
      const refundable = (await request("/v1/bookings", { calculation: stay })).body;
      const booking = { idempotency_key: step.what, external_reference: step.what, calculation: stay };
      const refund = { refund_idempotency_key: step.what, nights: 2 };
      const refundPath = `/v1/bookings/${refundable.id}/refund`;
      await holding(step, async () => {
        const cutOff = [request("/v1/bookings", booking), request(refundPath, refund)].map((answer) =>
          assert.rejects(answer),
        );
        // The request log writes one entry at a time.
        await untilHeld(step.trigger.endsWith("request_log") ? 1 : 2);
        await api.stop("SIGKILL");
        await Promise.all(cutOff);
      });
      await startApi();

      const made = await keyed();
      assert.ok(made.length <= 1);
      const again = await request("/v1/bookings", booking);
      assert.equal(again.status, made.length === 1 ? 200 : 201, JSON.stringify(again.body));
      assert.deepEqual(await keyed(), [{ id: again.body.id, changes: 1 }]);
      await assertWhole(again.body.id);

      const before = (await request(`/v1/bookings/${refundable.id}`)).body;
      const refunded = await request(refundPath, refund);
      assert.equal(refunded.status, 200, JSON.stringify(refunded.body));
      const [, kept, ...more] = (await request(`/v1/bookings/${refundable.id}`)).body.changes;
      assert.deepEqual([kept.idempotency_key, more], [step.what, []]);
      assert.deepEqual(refunded.body.tax_delta, kept.tax_delta);
      assert.equal(refunded.body.calculation.nights, 3);
      assert.equal(before.calculation.nights === 3, before.changes.length === 2);
      await assertWhole(refundable.id);
    });

    const keyed = () =>
      database.sql<{ id: string; changes: number }[]>`
      select id, (select count(*)::integer from booking_changes where booking_id = bookings.id) as changes
      from bookings where idempotency_key = ${step.what}`.then((rows) => [...rows]);
  }

  async function assertWhole(id: string): Promise<void> {
    const booking = (await request(`/v1/bookings/${id}`)).body;
    const ledger = await database.sql<{ tax_amount: string }[]>`
      select tax_amount from tax_entries where booking_id = ${id}`;
    assert.equal(sumOf(ledger.map((entry) => Rational.parse(entry.tax_amount))).toFixed(2), booking.total_tax);
    const deltas = booking.changes.map((change: { tax_delta: { total_tax: string } }) => change.tax_delta.total_tax);
    assert.equal(sumOf(deltas.map((delta: string) => Rational.parse(delta))).toFixed(2), booking.total_tax);
  }
});
