import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { recheckNightly } from "#tax/recheck/recheck.ts";
import type { Rule } from "#tax/rules/rule.ts";
import { type BookingDesk, openBookingDesk } from "#test/kit/tax/booking_desk.ts";
import { ruleOf, rulesetOf } from "#test/kit/tax/calculation_fixture.ts";

const room = { unit: "room_night" } as const;
const flat = (amount: string) => ({ amount: { flat: amount } });
const tax = ruleOf("a", { ...room, ...flat("2.00") });

/** The tax with another tariff from `from` on. */
function raised(from: string, amount = "5.00"): Rule[] {
  const [first] = tax.versions;
  const later = { ...first, version: 2, effective: { from }, ...flat(amount) };
  return [{ ...tax, versions: [{ ...first, effective: { from: "2020-01-01", to: from } }, later] }] as Rule[];
}
const lapsing = (on_lapse: "continue" | "unknown"): Rule[] => [
  ruleOf("a", { ...room, ...flat("2.00"), effective: { from: "2020-01-01", to: "2026-06-10" }, on_lapse }),
];

interface Row {
  booking_id: string;
  stored_tax: string;
  tax_now: string | null;
  delta: string | null;
  cause: string;
  rule_ids: string[];
}

describe("booked stays under a law that changes", () => {
  let desk: BookingDesk;
  before(async () => {
    desk = await openBookingDesk([tax]);
  });
  after(() => desk.close());

  /** Books the nights of 10 and 11 June by one law on 1 June, and rechecks them by another. */
  async function rowsAfter(
    law: readonly Rule[],
    { from = [tax] as readonly Rule[], at = "2026-06-02", nights = 2 } = {},
  ) {
    await desk.sql`delete from bookings`;
    desk.at = new Date("2026-06-01T10:00:00Z");
    desk.enact(from);
    const booking = await desk.book({ nights });
    desk.at = new Date(`${at}T10:00:00Z`);
    desk.enact(law);
    const { status, body } = await desk.call("POST", "/v1/bookings/recheck", {});
    assert.equal(status, 200, JSON.stringify(body));
    const { rows, bookings, id } = body as unknown as { rows: Row[]; bookings: number; id: string };
    return { booking: booking as { id: string }, rows, bookings, reportId: id };
  }
  const brief = (rows: readonly Row[]) =>
    rows.map(({ stored_tax, tax_now, delta, cause, rule_ids }) => [stored_tax, tax_now, delta, cause, rule_ids.join()]);

  it("are listed where the law changes before they begin, with what it changes", async () => {
    const { rows, booking, bookings } = await rowsAfter(raised("2026-06-05"));
    assert.deepEqual(brief(rows), [["4.00", "10.00", "6.00", "new_version", "xx.a"]]);
    assert.deepEqual([rows[0]?.booking_id, bookings], [booking.id, 1]);
  });

  it("are listed where it changes in mid-stay, for the nights after that alone", async () => {
    const { rows } = await rowsAfter(raised("2026-06-11"));
    assert.deepEqual(brief(rows), [["4.00", "7.00", "3.00", "new_version", "xx.a"]]);
  });

  it("are listed after check-in while a night is to come, also where the law reaches back", async () => {
    const { rows } = await rowsAfter(raised("2026-06-01"), { at: "2026-06-11" });
    assert.deepEqual(brief(rows), [["4.00", "10.00", "6.00", "new_version", "xx.a"]]);
    const gone = await rowsAfter(raised("2026-06-01"), { at: "2026-06-12" });
    assert.deepEqual([gone.rows, gone.bookings], [[], 0]);
  });

  it("are not listed where what changes is after they end, or not at all", async () => {
    assert.deepEqual((await rowsAfter(raised("2026-06-12"))).rows, []);
    assert.deepEqual((await rowsAfter([tax])).rows, []);
  });

  it("say whether an assumption came true, and whether a tariff lapsed or a tax was found", async () => {
    const confirmed = await rowsAfter(raised("2026-06-10", "2.00"), { from: lapsing("continue") });
    assert.deepEqual(brief(confirmed.rows), [["4.00", "4.00", "0.00", "assumption_confirmed", ""]]);
    const replaced = await rowsAfter(raised("2026-06-10"), { from: lapsing("continue") });
    assert.deepEqual(brief(replaced.rows), [["4.00", "10.00", "6.00", "assumption_replaced", "xx.a"]]);
    const lapsed = await rowsAfter(lapsing("unknown"), { from: [tax] });
    assert.deepEqual(brief(lapsed.rows), [["4.00", "0.00", "-4.00", "lapsed", "xx.a"]]);
    const found = await rowsAfter([tax], { from: [] });
    assert.deepEqual(brief(found.rows), [["0.00", "4.00", "4.00", "slot_discovered", "xx.a"]]);
  });

  it("are changed by no report, and stand in it as they stood", async () => {
    const { booking, reportId } = await rowsAfter(raised("2026-06-05"));
    const { body } = await desk.call("GET", `/v1/bookings/${booking.id}`);
    assert.equal(body.total_tax, "4.00");
    await desk.change(booking.id, "void");
    const kept = await desk.call("GET", `/v1/recheck-reports/${reportId}`);
    assert.deepEqual(brief((kept.body as unknown as { rows: Row[] }).rows), [
      ["4.00", "10.00", "6.00", "new_version", "xx.a"],
    ]);
    const csv = await desk.fetch(`/v1/recheck-reports/${reportId}`, { headers: { accept: "text/csv" } });
    assert.match(await csv.text(), /^booking_id,.*\r\n.*,4\.00,10\.00,6\.00,new_version,xx\.a,/);
    const { body: list } = await desk.call("GET", "/v1/recheck-reports");
    assert.equal((list.items as { id: string }[])[0]?.id, reportId);
  });

  it("keep no report of a dry run, and of no other organization or environment", async () => {
    const { reportId } = await rowsAfter(raised("2026-06-05"));
    const before = (await desk.call("GET", "/v1/recheck-reports")).body.items as unknown[];
    const { body } = await desk.call("POST", "/v1/bookings/recheck", { dry_run: true });
    assert.deepEqual([body.id, body.total], [null, 1]);
    assert.equal(((await desk.call("GET", "/v1/recheck-reports")).body.items as unknown[]).length, before.length);
    const own = desk.caller;
    desk.caller = { ...own, environment: "test" };
    assert.equal((await desk.call("GET", `/v1/recheck-reports/${reportId}`)).status, 404);
    assert.equal((await desk.call("POST", "/v1/bookings/recheck", {})).body.bookings, 0);
    desk.caller = own;
  });

  it("are looked at within the days that are asked for, and a wrong day is refused", async () => {
    await rowsAfter(raised("2026-06-05"));
    const within = async (range: object) => (await desk.call("POST", "/v1/bookings/recheck", range)).body.bookings;
    assert.deepEqual([await within({ from: "2026-06-11" }), await within({ from: "2026-06-12" })], [1, 0]);
    assert.deepEqual([await within({ to: "2026-06-10" }), await within({ to: "2026-06-09" })], [1, 0]);
    assert.equal((await desk.call("POST", "/v1/bookings/recheck", { from: "2026-02-30" })).status, 422);
    assert.equal((await desk.call("POST", "/v1/bookings/recheck", { form: "2026-06-01" })).status, 422);
  });

  it("have one report a night, however often the job runs", async () => {
    await rowsAfter(raised("2026-06-05"));
    const deps = {
      sql: desk.sql,
      ruleset: rulesetOf(raised("2026-06-05")),
      now: () => new Date("2026-06-03T02:07:00Z"),
    };
    const both = await Promise.all([recheckNightly(deps), recheckNightly(deps)]);
    assert.equal(
      both.reduce((sum, made) => sum + made, 0),
      1,
    );
    assert.equal(await recheckNightly(deps), 0);
    assert.equal(await recheckNightly({ ...deps, now: () => new Date("2026-06-04T02:07:00Z") }), 1);
    const unchanged = { ...deps, ruleset: rulesetOf([tax]), now: () => new Date("2026-06-05T02:07:00Z") };
    assert.equal(await recheckNightly(unchanged), 0);
  });

  it("take over today's law by an adjustment that says so, and keep it", async () => {
    const { booking } = await rowsAfter(raised("2026-06-05"));
    const frozen = await desk.change(booking.id, "adjust", { nights: 3 });
    assert.equal(frozen.total_tax, "6.00");
    const today = await desk.change(booking.id, "adjust", { law: "today" });
    assert.equal(today.total_tax, "15.00");
    assert.equal((today.tax_delta as { total_tax: string }).total_tax, "9.00");
    assert.notEqual(today.ruleset_hash, frozen.ruleset_hash);
    assert.equal((await desk.call("POST", "/v1/bookings/recheck", {})).body.total, 0);
    assert.equal((await desk.change(booking.id, "adjust", { nights: 1, law: "frozen" })).total_tax, "5.00");
    const { body } = await desk.call("GET", "/v1/liability");
    assert.deepEqual(body.totals, [{ currency: "EUR", tax_amount: "5.00" }]);
    assert.equal((await desk.call("POST", `/v1/bookings/${booking.id}/adjust`, { law: "frozen" })).status, 422);
  });
});
