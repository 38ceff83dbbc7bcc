import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { type BookingDesk, openBookingDesk } from "#test/kit/tax/booking_desk.ts";
import { ruleOf } from "#test/kit/tax/calculation_fixture.ts";

const law = [
  ruleOf("levy", { unit: "person_night", amount: { flat: "3.00" }, authority: "City of Testburg" }),
  ruleOf("vat", { kind: "vat", unit: "room_night", amount: { percent: "10" }, authority: "State" }),
];

describe("the liability summary", () => {
  let desk: BookingDesk;
  before(async () => {
    desk = await openBookingDesk(law);
  });
  beforeEach(async () => {
    const [row] = await desk.sql<{ id: string }[]>`insert into organization (name) values ('Inn') returning id`;
    desk.caller = { ...desk.caller, organizationId: row?.id ?? "" };
    desk.at = new Date("2026-06-01T10:00:00Z");
  });
  after(() => desk.close());

  interface Item {
    period: string | null;
    authority: string;
    bookings: number;
    taxable_amount: string;
    tax_amount: string;
  }
  const summary = async (query = "") => {
    const { status, body } = await desk.call("GET", `/v1/liability${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  const amounts = async (query = "") =>
    (await summary(query)).items.map((item: Item) => [item.period, item.authority, item.bookings, item.tax_amount]);

  it("sums by place, authority, category and currency", async () => {
    await desk.book();
    await desk.book({ number_of_guests: 2 });
    const body = await summary();
    assert.deepEqual(body.items, [
      {
        period: null,
        jurisdiction_code: "NL-TST",
        jurisdiction_name: "Testburg",
        authority: "City of Testburg",
        kind: "accommodation",
        category_code: "accommodation_tax",
        collector: "property",
        currency: "EUR",
        bookings: 2,
        taxable_amount: "0.00",
        tax_amount: "18.00",
      },
      {
        period: null,
        jurisdiction_code: "NL-TST",
        jurisdiction_name: "Testburg",
        authority: "State",
        kind: "vat",
        category_code: "vat",
        collector: "property",
        currency: "EUR",
        bookings: 2,
        taxable_amount: "400.00",
        tax_amount: "40.00",
      },
    ]);
    assert.deepEqual(body.totals, [{ currency: "EUR", tax_amount: "58.00" }]);
  });

  it("is net of what was refunded and voided", async () => {
    const [voided, refunded, kept] = [await desk.book(), await desk.book(), await desk.book()];
    await desk.change(voided.id, "void");
    await desk.change(refunded.id, "refund", { nights: 1 });
    await desk.change(kept.id, "adjust", { number_of_guests: 2 });
    assert.deepEqual(await amounts(), [
      [null, "City of Testburg", 2, "15.00"],
      [null, "State", 2, "30.00"],
    ]);
  });

  it("says nothing of bookings that came to nothing", async () => {
    await desk.change((await desk.book()).id, "refund");
    assert.deepEqual(await amounts(), []);
  });

  it("puts a stay into the period in which it ends as it is now, or begins, or each change when it was made", async () => {
    const { id } = await desk.book({ stay_date: "2026-06-29" });
    desk.at = new Date("2026-07-02T23:59:59Z");
    await desk.change(id, "adjust", { nights: 4 });
    desk.at = new Date("2026-10-01T00:00:00Z");
    await desk.change(id, "refund", { nights: 1 });
    const city = async (query: string) =>
      (await amounts(query))
        .filter(([, authority]: string[]) => authority !== "State")
        .map(([period, , , tax]: string[]) => [period, tax]);
    assert.deepEqual(await city("?period=month"), [["2026-07", "9.00"]]);
    assert.deepEqual(await city("?period=month&date_anchor=checkin"), [["2026-06", "9.00"]]);
    assert.deepEqual(await city("?period=quarter&date_anchor=recorded"), [
      ["2026-Q2", "6.00"],
      ["2026-Q3", "6.00"],
      ["2026-Q4", "-3.00"],
    ]);
    assert.deepEqual(await city("?period=year&date_anchor=recorded"), [["2026", "9.00"]]);
    assert.deepEqual(await city("?from=2026-07-02&to=2026-07-02"), [[null, "9.00"]]);
    assert.deepEqual(await city("?from=2026-07-03"), []);
    assert.deepEqual(await city("?to=2026-07-01"), []);
    assert.deepEqual(await city("?date_anchor=recorded&from=2026-10-01"), [[null, "-3.00"]]);
  });

  it("never mixes live with test, nor one organization with another, nor currencies", async () => {
    await desk.book();
    const live = desk.caller;
    desk.caller = { ...live, environment: "test" };
    await desk.book({ number_of_guests: 4 });
    assert.deepEqual(await amounts(), [
      [null, "City of Testburg", 1, "24.00"],
      [null, "State", 1, "20.00"],
    ]);
    assert.equal((await summary()).environment, "test");
    desk.caller = live;
    await desk.book({ currency: "USD", fx: { rate: "1.1", source: "ECB", date: "2026-06-01" } });
    assert.deepEqual((await summary()).totals, [
      { currency: "EUR", tax_amount: "26.00" },
      { currency: "USD", tax_amount: "26.60" },
    ]);
    desk.caller = { ...live, organizationId: "00000000-0000-4000-8000-000000000000" };
    assert.deepEqual(await amounts(), []);
  });

  it("narrows to a kind, a place, and who collects", async () => {
    await desk.book();
    assert.equal((await amounts("?kind=vat")).length, 1);
    assert.equal((await amounts("?jurisdiction_code=NL-TST")).length, 2);
    assert.equal((await amounts("?jurisdiction_code=NL")).length, 0);
    assert.equal((await amounts("?collector=platform")).length, 0);
    for (const [query, field] of [
      ["?from=2026-02-30", "from"],
      ["?to=yesterday", "to"],
      ["?period=week", "period"],
      ["?date_anchor=paid", "date_anchor"],
    ]) {
      const { status, body } = await desk.call("GET", `/v1/liability${query}`);
      assert.deepEqual([status, body.detail[0].loc], [422, ["query", field]]);
    }
  });

  it("is CSV for who accepts CSV", async () => {
    await desk.book();
    const answer = await desk.fetch("/v1/liability?period=month", { headers: { accept: "text/csv" } });
    assert.match(answer.headers.get("content-type") ?? "", /^text\/csv; charset=utf-8/);
    assert.deepEqual((await answer.text()).split("\r\n"), [
      "period,jurisdiction_code,jurisdiction_name,authority,kind,category_code,collector,currency,bookings,taxable_amount,tax_amount",
      "2026-06,NL-TST,Testburg,City of Testburg,accommodation,accommodation_tax,property,EUR,1,0.00,6.00",
      "2026-06,NL-TST,Testburg,State,vat,vat,property,EUR,1,200.00,20.00",
      "",
    ]);
  });
});
