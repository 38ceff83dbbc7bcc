/**
 * The api is killed between any two steps of a booking and a refund: a trigger of the test's own holds
 * the statement at a step until the process is gone. Whoever sends the requests again finds both done
 * once, whatever had become of them.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Rational, sumOf } from "#tax/calculator/numbers/rational.ts";
import { type CrashingApi, openCrashingApi } from "#test/kit/crashing_api.ts";
import { patienceMs } from "../kit/patience.ts";

const redisUrl = process.env.TEST_REDIS_URL;
const skip = redisUrl ? false : "no TEST_REDIS_URL (no redis-server on this machine)";

const stay = { jurisdiction_code: "IT-RM-ROM", stay_date: "2026-12-01", nights: 5, nightly_rate: 90, currency: "EUR" };

/** Where both requests come by, in the order in which they do. */
const steps = [
  { what: "before the booking is written", trigger: "before insert or update on bookings" },
  { what: "before the ledger is", trigger: "before insert on tax_entries" },
  { what: "as it is committed", trigger: "after insert on tax_entries", deferred: true },
  { what: "before the answer", trigger: "before insert on request_log" },
];

describe("kill -9 of the api", { skip }, () => {
  let api: CrashingApi;
  before(async () => {
    api = await openCrashingApi(redisUrl ?? "");
  });
  after(() => api?.close());
  const request: CrashingApi["request"] = (path, body) => api.request(path, body);

  for (const step of steps) {
    it(`${step.what} leaves a booking and a refund whole or not there`, { timeout: patienceMs }, async () => {
      const refundable = (await request("/v1/bookings", { calculation: stay })).body;
      const booking = { idempotency_key: step.what, external_reference: step.what, calculation: stay };
      const refund = { refund_idempotency_key: step.what, nights: 2 };
      const refundPath = `/v1/bookings/${refundable.id}/refund`;
      await api.killAt(step, () => [request("/v1/bookings", booking), request(refundPath, refund)]);

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
      api.sql<{ id: string; changes: number }[]>`
      select id, (select count(*)::integer from booking_changes where booking_id = bookings.id) as changes
      from bookings where idempotency_key = ${step.what}`.then((rows) => [...rows]);
  }

  async function assertWhole(id: string): Promise<void> {
    const booking = (await request(`/v1/bookings/${id}`)).body;
    const ledger = await api.sql<{ tax_amount: string }[]>`
      select tax_amount from tax_entries where booking_id = ${id}`;
    assert.equal(sumOf(ledger.map((entry) => Rational.parse(entry.tax_amount))).toFixed(2), booking.total_tax);
    const deltas = booking.changes.map((change: { tax_delta: { total_tax: string } }) => change.tax_delta.total_tax);
    assert.equal(sumOf(deltas.map((delta: string) => Rational.parse(delta))).toFixed(2), booking.total_tax);
  }
});
