/**
 * The api is killed while it issues and credits invoices: a trigger of the test's own holds the
 * statement between taking a number and using it. Numbers go on without a gap, and nothing is half done.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type CrashingApi, openCrashingApi } from "#test/kit/crashing_api.ts";
import { patienceMs } from "../kit/patience.ts";

const redisUrl = process.env.TEST_REDIS_URL;
const skip = redisUrl ? false : "no TEST_REDIS_URL (no redis-server on this machine)";

const stay = { jurisdiction_code: "IT-RM-ROM", stay_date: "2026-12-01", nights: 2, nightly_rate: 90, currency: "EUR" };

/** `kept`: what is cut off here was done; from the commit on it is the database's. */
const steps = [
  { what: "between the number and the invoice", trigger: "before insert on invoices", kept: false },
  { what: "as it is committed", trigger: "after insert on invoices", deferred: true, kept: true },
  { what: "before the answer", trigger: "before insert on request_log", kept: true },
];

describe("kill -9 of the api that issues invoices", { skip }, () => {
  let api: CrashingApi;
  before(async () => {
    api = await openCrashingApi(redisUrl ?? "");
  });
  after(() => api?.close());
  const request: CrashingApi["request"] = (path, body) => api.request(path, body);
  const book = async () => (await request("/v1/bookings", { calculation: stay })).body.id as string;
  const issue = (booking: string) => request(`/v1/bookings/${booking}/invoice`, {});
  const credit = (booking: string) => request(`/v1/bookings/${booking}/invoice/credit`, {});

  /** Numbers of a type, which must be 1, 2, 3 …, as the series says as well. */
  async function sequencesOf(type: string): Promise<number> {
    const rows = await api.sql<{ sequence: number }[]>`
      select sequence from invoices where type = ${type} order by sequence`;
    assert.deepEqual(
      rows.map(({ sequence }) => sequence),
      rows.map((_, index) => index + 1),
    );
    const [series] = await api.sql<{ last_sequence: number }[]>`
      select last_sequence from invoice_series where type = ${type}`;
    assert.equal(series?.last_sequence ?? 0, rows.length);
    return rows.length;
  }

  for (const step of steps) {
    it(`${step.what} leaves no gap and no half of one`, { timeout: patienceMs }, async () => {
      const [fresh, live] = [await book(), await book()];
      assert.equal((await issue(live)).status, 201);
      const issuedBefore = await sequencesOf("invoice");
      const creditedBefore = await sequencesOf("credit_note");
      await api.killAt(step, () => [issue(fresh), credit(live)]);
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
