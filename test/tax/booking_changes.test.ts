import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { type BookingDesk, openBookingDesk } from "#test/kit/tax/booking_desk.ts";
import { ruleOf } from "#test/kit/tax/calculation_fixture.ts";

const vat = ruleOf("vat", { kind: "vat", unit: "room_night", amount: { percent: "10" } });
const levy = ruleOf("levy", { unit: "person_night", amount: { flat: "3.00" }, nights: { max: 5 } });
const capped = ruleOf("capped", {
  unit: "person_night",
  amount: { flat: "2.00" },
  cap: { per: "person_stay", amount: "10.00" },
});
const law = [levy, vat];

const sums = (delta: { components: { rule_id: string; tax_amount: string }[] }) =>
  Object.fromEntries(delta.components.map((one) => [one.rule_id.replace("xx.", ""), one.tax_amount]));

describe("a booking that changes", () => {
  let desk: BookingDesk;
  before(async () => {
    desk = await openBookingDesk(law);
  });
  afterEach(() => desk.enact(law));
  after(() => desk.close());

  const post = (id: string, action: string, body: unknown = {}) =>
    desk.call("POST", `/v1/bookings/${id}/${action}`, body);
  const read = async (id: string) => (await desk.call("GET", `/v1/bookings/${id}`)).body;

  describe("by an adjustment", () => {
    it("answers the difference by component, and stands as the whole stay would", async () => {
      const booking = await desk.book();
      assert.equal(booking.total_tax, "26.00");
      const adjusted = await desk.change(booking.id, "adjust", { nights: 4, number_of_guests: 2, reason: "family" });
      assert.equal(adjusted.state, "adjusted");
      assert.equal(adjusted.total_tax, "64.00");
      assert.equal(adjusted.checkout_date, "2026-06-14");
      assert.equal(adjusted.tax_delta.total_tax, "38.00");
      assert.deepEqual(sums(adjusted.tax_delta), { levy: "18.00", vat: "20.00" });
      const [, change] = (await read(booking.id)).changes;
      assert.deepEqual(
        [change.kind, change.reason, change.request],
        ["adjusted", "family", { nights: 4, number_of_guests: 2 }],
      );
      assert.deepEqual(change.tax_delta, adjusted.tax_delta);
    });

    it("takes the changes in calculation as well, but each once", async () => {
      const booking = await desk.book();
      const adjusted = await desk.change(booking.id, "adjust", { calculation: { nightly_rate: 80, nights: 1 } });
      assert.equal(adjusted.total_tax, "11.00");
      const twice = await post(booking.id, "adjust", { nights: 2, calculation: { nights: 3 } });
      assert.deepEqual([twice.status, twice.body.detail[0].loc], [422, ["body", "nights"]]);
      const nothing = await post(booking.id, "adjust", { reason: "none" });
      assert.deepEqual([nothing.status, nothing.body.detail[0].loc], [422, ["body", "calculation"]]);
    });

    it("lets go of what it contradicts: the day of departure, other nights' prices", async () => {
      const nightly_rates = [
        { date: "2026-06-10", rate: 50 },
        { date: "2026-06-11", rate: 60 },
      ];
      const booking = await desk.book({ checkout_date: "2026-06-12", nightly_rates });
      const shorter = await desk.change(booking.id, "adjust", { nights: 1 });
      assert.equal(shorter.calculation.checkout_date, "2026-06-11");
      assert.deepEqual(shorter.calculation.nightly_rates, nightly_rates.slice(0, 1));
      const longer = await desk.change(booking.id, "adjust", { nights: 3 });
      assert.equal(longer.result.total_without_tax, "250.00");
      const repriced = await desk.change(booking.id, "adjust", { nightly_rate: 70 });
      assert.equal(repriced.result.total_without_tax, "210.00");
      const wrong = await post(booking.id, "adjust", { calculation: { checkout_date: "2026-06-12" } });
      assert.deepEqual([wrong.status, wrong.body.detail[0].loc], [422, ["body", "calculation", "checkout_date"]]);
    });

    it("is refused another place, another currency, and facts that do not fit", async () => {
      const { id } = await desk.book({ number_of_guests: 2, guest_ages: [30, 5] });
      assert.equal((await post(id, "adjust", { jurisdiction_code: "nl-tst", nights: 2 })).status, 200);
      const elsewhere = await post(id, "adjust", { calculation: { jurisdiction_code: "NL" } });
      assert.deepEqual(
        [elsewhere.status, elsewhere.body.detail[0].loc],
        [422, ["body", "calculation", "jurisdiction_code"]],
      );
      assert.equal((await post(id, "adjust", { jurisdiction_code: "NOWHERE" })).status, 400);
      const currency = await post(id, "adjust", { currency: "USD" });
      assert.equal(currency.status, 400);
      assert.match(currency.body.detail, /currency mismatch/);
      const guests = await post(id, "adjust", { number_of_guests: 3 });
      assert.deepEqual([guests.status, guests.body.detail[0].loc], [422, ["body", "guest_ages"]]);
      assert.equal((await read(id)).changes.length, 2);
    });
  });

  describe("under a law that was changed on disk since", () => {
    const raised = [
      ruleOf("levy", { unit: "person_night", amount: { flat: "9.00" } }),
      ruleOf("new", { unit: "stay", amount: { flat: "50.00" } }),
    ];

    it("is adjusted and refunded by the law that it was booked under", async () => {
      const booking = await desk.book({ nights: 4 });
      assert.equal(booking.total_tax, "52.00");
      desk.enact(raised);
      assert.equal((await desk.book({ nights: 4 })).total_tax, "86.00");
      const longer = await desk.change(booking.id, "adjust", { nights: 7 });
      assert.deepEqual(sums(longer.tax_delta), { levy: "3.00", vat: "30.00" });
      assert.equal(longer.ruleset_hash, booking.ruleset_hash);
      const refunded = await desk.change(booking.id, "refund", { nights: 6 });
      assert.deepEqual(sums(refunded.tax_delta), { levy: "-12.00", vat: "-60.00" });
      assert.equal(refunded.total_tax, "13.00");
      desk.enact([]);
      assert.equal((await desk.change(booking.id, "void")).tax_delta.total_tax, "-13.00");
    });

    it("counts as booked on the day on which it was", async () => {
      const early = { booking_window: { to: "2026-06-02" } };
      desk.enact([ruleOf("early", { unit: "stay", amount: { flat: "5.00" }, ...early })]);
      const booking = await desk.book();
      assert.equal(booking.total_tax, "5.00");
      const bookedAt = desk.at;
      desk.at = new Date("2026-06-05T00:00:00Z");
      assert.equal((await desk.book()).total_tax, "0.00");
      assert.equal((await desk.change(booking.id, "adjust", { nights: 3 })).total_tax, "5.00");
      desk.at = bookedAt;
    });
  });

  describe("stays within what the law allows a whole stay", () => {
    it("where it caps a person's stay", async () => {
      desk.enact([capped]);
      const booking = await desk.book({ nights: 4 });
      assert.equal(booking.total_tax, "8.00");
      assert.equal((await desk.change(booking.id, "adjust", { nights: 8 })).tax_delta.total_tax, "2.00");
      assert.equal((await desk.change(booking.id, "adjust", { nights: 12 })).tax_delta.total_tax, "0.00");
      assert.equal((await desk.change(booking.id, "refund", { nights: 6 })).tax_delta.total_tax, "0.00");
      assert.equal((await desk.change(booking.id, "refund", { nights: 3 })).tax_delta.total_tax, "-4.00");
    });

    it("where nights beyond a number are free", async () => {
      const booking = await desk.book({ nights: 5 });
      assert.deepEqual(sums((await desk.change(booking.id, "adjust", { nights: 9 })).tax_delta), {
        levy: "0.00",
        vat: "40.00",
      });
      assert.equal(sums((await desk.change(booking.id, "refund", { nights: 5 })).tax_delta).levy, "-3.00");
    });

    it("where the price of the whole stay chooses the rate", async () => {
      const rows = [
        { from: "0", flat: "1" },
        { from: "300", flat: "5" },
      ];
      const bands = { key: "stay_price_per_person" as const, mode: "slab" as const, rows };
      desk.enact([ruleOf("tier", { unit: "person_stay", amount: { bands } })]);
      const booking = await desk.book();
      assert.equal(booking.total_tax, "1.00");
      assert.equal((await desk.change(booking.id, "adjust", { nights: 3 })).tax_delta.total_tax, "4.00");
      assert.equal((await desk.change(booking.id, "refund", { nights: 1 })).tax_delta.total_tax, "-4.00");
    });

    it("where a long stay is exempt: to shorten it makes tax due", async () => {
      const long_stay = { nights: 30, effect: "all_nights" as const };
      desk.enact([ruleOf("short", { unit: "room_night", amount: { flat: "1.00" }, long_stay })]);
      const booking = await desk.book({ nights: 30 });
      assert.equal(booking.total_tax, "0.00");
      const refunded = await desk.change(booking.id, "refund", { nights: 1 });
      assert.deepEqual([refunded.tax_delta.total_tax, refunded.refunded_amount], ["29.00", "71.00"]);
    });

    it("but not so that a refund would charge the guest", async () => {
      const long_stay = { nights: 30, effect: "all_nights" as const };
      desk.enact([ruleOf("dear", { unit: "room_night", amount: { flat: "10.00" }, long_stay })]);
      const booking = await desk.book({ nights: 30 });
      const refused = await post(booking.id, "refund", { nights: 1 });
      assert.equal(refused.status, 400);
      assert.match(refused.body.detail, /the shorter stay costs 190\.00 more/);
      assert.equal((await read(booking.id)).state, "confirmed");
    });
  });

  describe("by a refund", () => {
    it("of all gives all tax back, and ends it", async () => {
      const booking = await desk.book();
      const refunded = await desk.change(booking.id, "refund", { reason: "storm" });
      assert.equal(refunded.state, "refunded");
      assert.equal(refunded.total_tax, "0.00");
      assert.equal(refunded.refunded_amount, "226.00");
      assert.deepEqual(sums(refunded.tax_delta), { levy: "-6.00", vat: "-20.00" });
      assert.deepEqual(refunded.result.tax_breakdown.components, []);
      for (const [action, body] of [
        ["refund", {}],
        ["adjust", { nights: 1 }],
        ["void", {}],
      ] as const) {
        const answer = await post(booking.id, action, body);
        assert.equal(answer.status, 409);
        assert.match(answer.body.detail, /it is refunded/);
      }
    });

    it("of the last nights leaves the first ones", async () => {
      const booking = await desk.book({ nights: 3 });
      const refunded = await desk.change(booking.id, "refund", { nights: 1 });
      assert.deepEqual(
        [refunded.state, refunded.checkout_date, refunded.refunded_amount, refunded.total_tax],
        ["partially_refunded", "2026-06-12", "113.00", "26.00"],
      );
      assert.equal((await desk.change(booking.id, "adjust", { nightly_rate: 90 })).state, "partially_refunded");
      const tooMany = await post(booking.id, "refund", { nights: 3 });
      assert.deepEqual([tooMany.status, tooMany.body.detail], [400, "Cannot refund 3 nights: 2 are left"]);
      assert.equal((await desk.change(booking.id, "refund", { nights: 2 })).state, "refunded");
    });

    it("of an amount is of price and tax together; taxes by the head stay", async () => {
      const booking = await desk.book();
      const refunded = await desk.change(booking.id, "refund", { amount: "110.00" });
      assert.equal(refunded.state, "partially_refunded");
      assert.deepEqual(sums(refunded.tax_delta), { levy: "0.00", vat: "-10.00" });
      assert.deepEqual([refunded.refunded_amount, refunded.result.total_with_tax], ["110.00", "116.00"]);
      const comped = await desk.change(booking.id, "refund", { amount: 110 });
      assert.deepEqual([comped.result.total_without_tax, comped.total_tax], ["0.00", "6.00"]);
      const tooMuch = await post(booking.id, "refund", { amount: 1 });
      assert.equal(tooMuch.status, 400);
      assert.match(tooMuch.body.detail, /owes 6.00 of tax at any price/);
      assert.equal((await desk.change(booking.id, "refund", { amount: 6 })).state, "refunded");
    });

    it("of an amount works on a price that has the tax in it", async () => {
      const booking = await desk.book({ price_includes_tax: true });
      assert.equal(booking.total_with_tax, "200.00");
      const refunded = await desk.change(booking.id, "refund", { amount: 50 });
      assert.equal(refunded.total_with_tax, "150.00");
      assert.equal((await post(booking.id, "refund", { amount: "149.00" })).status, 400);
      assert.equal((await desk.change(booking.id, "refund", { amount: "150.00" })).state, "refunded");
    });

    it("of an amount beyond a jump of the tariff reckons the tax of the lower price", async () => {
      const rows = [
        { from: "0", flat: "1" },
        { from: "90", flat: "8" },
      ];
      const bands = { key: "price_per_room_night" as const, mode: "slab" as const, rows };
      desk.enact([ruleOf("tier", { unit: "room_night", amount: { bands } })]);
      const booking = await desk.book({ nights: 1 });
      assert.equal(booking.total_with_tax, "108.00");
      const refunded = await desk.change(booking.id, "refund", { amount: "13.00" });
      assert.deepEqual([refunded.result.total_without_tax, refunded.total_tax], ["89.99", "1.00"]);
    });

    it("is refused another currency, more than is left, and what is no amount", async () => {
      const { id } = await desk.book();
      const mismatch = await post(id, "refund", { amount: 10, currency: "USD" });
      assert.deepEqual(
        [mismatch.status, mismatch.body.detail],
        [400, "currency mismatch: the booking is in EUR, the refund in USD"],
      );
      assert.equal((await post(id, "refund", { currency: "USD" })).status, 400);
      const tooMuch = await post(id, "refund", { amount: "226.01" });
      assert.deepEqual([tooMuch.status, tooMuch.body.detail], [400, "Cannot refund 226.01: 226.00 is left"]);
      const wrong: [object, string][] = [
        [{ amount: 0 }, "amount"],
        [{ amount: "-1" }, "amount"],
        [{ amount: "1.001" }, "amount"],
        [{ amount: 1, nights: 1 }, "amount"],
        [{ nights: 0 }, "nights"],
        [{ nights: 1.5 }, "nights"],
        [{ currency: "euro" }, "currency"],
        [{ refund_idempotency_key: "k".repeat(201) }, "refund_idempotency_key"],
        [{ reason: 7 }, "reason"],
      ];
      for (const [body, field] of wrong) {
        const answer = await post(id, "refund", body);
        assert.deepEqual([answer.status, answer.body.detail[0]?.loc], [422, ["body", field]], JSON.stringify(body));
        assert.ok(answer.body.detail[0].type && answer.body.detail[0].msg);
      }
      assert.equal((await read(id)).changes.length, 1);
    });
  });

  describe("by a refund with a key", () => {
    it("never reclaims twice: sent again it answers what it gave back then", async () => {
      const booking = await desk.book({ nights: 4 });
      const body = { refund_idempotency_key: "r1", nights: 1 };
      const first = await desk.change(booking.id, "refund", body);
      await desk.change(booking.id, "refund", { nights: 1 });
      const again = await desk.change(booking.id, "refund", body);
      assert.deepEqual(again.tax_delta, first.tax_delta);
      assert.equal(again.refunded_amount, first.refunded_amount);
      assert.equal(again.calculation.nights, 2);
      await desk.change(booking.id, "void");
      assert.deepEqual(
        (await desk.change(booking.id, "refund", { ...body, currency: "EUR" })).tax_delta,
        first.tax_delta,
      );
      assert.deepEqual(
        (await read(booking.id)).changes.map((one: { kind: string; idempotency_key: string | null }) => [
          one.kind,
          one.idempotency_key,
        ]),
        [
          ["created", null],
          ["refunded", "r1"],
          ["refunded", null],
          ["voided", null],
        ],
      );
    });

    it("refuses the key for another refund, and for another booking", async () => {
      const [one, other] = [await desk.book(), await desk.book()];
      await desk.change(one.id, "refund", { refund_idempotency_key: "r2", amount: 10 });
      assert.equal((await post(one.id, "refund", { refund_idempotency_key: "r2", amount: "10.00" })).status, 200);
      for (const [id, body] of [
        [one.id, { amount: 11 }],
        [one.id, { nights: 1 }],
        [one.id, {}],
        [one.id, { amount: 10, reason: "again" }],
        [other.id, { amount: 10 }],
      ] as const) {
        const answer = await post(id, "refund", { refund_idempotency_key: "r2", ...body });
        assert.equal(answer.status, 409, JSON.stringify(body));
      }
      assert.equal((await read(other.id)).total_tax, "26.00");
    });

    it("leaves the key free when it is refused", async () => {
      const { id } = await desk.book();
      assert.equal((await post(id, "refund", { refund_idempotency_key: "r3", amount: 900 })).status, 400);
      assert.equal((await post(id, "refund", { refund_idempotency_key: "r3", amount: 9 })).status, 200);
    });

    it("50 times at once gives back once", async () => {
      const { id } = await desk.book({ nights: 60 });
      const body = { refund_idempotency_key: "r50", nights: 1 };
      const answers = await Promise.all(Array.from({ length: 50 }, () => post(id, "refund", body)));
      assert.ok(answers.every(({ status }) => status === 200));
      assert.equal(new Set(answers.map((answer) => JSON.stringify(answer.body.tax_delta))).size, 1);
      assert.equal((await read(id)).calculation.nights, 59);
    });

    it("50 times at once for two bookings gives back to one", async () => {
      const bookings = [await desk.book(), await desk.book()];
      const body = { refund_idempotency_key: "rivals", nights: 1 };
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, index) => post(bookings[index % 2].id, "refund", body)),
      );
      const counts = [0, 1].map(
        (rest) => answers.filter(({ status }, index) => status === 200 && index % 2 === rest).length,
      );
      assert.deepEqual(counts.sort(), [0, 25]);
      const nights = await Promise.all(bookings.map(async ({ id }) => (await read(id)).calculation.nights));
      assert.deepEqual(nights.sort(), [1, 2]);
    });

    it("without one gives back every time, until nothing is left", async () => {
      const { id } = await desk.book({ nights: 5 });
      const answers = await Promise.all(Array.from({ length: 8 }, () => post(id, "refund", { nights: 1 })));
      assert.equal(answers.filter(({ status }) => status === 200).length, 5);
      assert.equal((await read(id)).total_tax, "0.00");
    });
  });

  it("is refused a day that the calendar does not have, as a field of the body", async () => {
    const { id } = await desk.book({ checkout_date: "2026-06-12" });
    for (const field of ["stay_date", "checkout_date", "booking_date", "payment_date", "as_known_at"]) {
      for (const day of ["2026-02-30", "2026-13-45"]) {
        const beside = await post(id, "adjust", { [field]: day });
        assert.deepEqual([beside.status, beside.body.detail[0].loc], [422, ["body", field]]);
        const within = await post(id, "adjust", { calculation: { [field]: day } });
        assert.deepEqual([within.status, within.body.detail[0].loc], [422, ["body", "calculation", field]]);
      }
    }
    assert.equal((await read(id)).changes.length, 1);
  });

  it("is refused a refund that names another field than ours, and moves no money", async () => {
    const { id } = await desk.book({ nights: 5 });
    for (const mistaken of [{ night: 1 }, { night: null }, { Nights: 1 }, { amuont: "10.00" }]) {
      const { status, body } = await post(id, "refund", mistaken);
      const [field = ""] = Object.keys(mistaken);
      assert.deepEqual([status, body.detail[0].type, body.detail[0].loc], [422, "extra_forbidden", ["body", field]]);
      const meant = field === "amuont" ? "amount" : "nights";
      assert.equal(body.detail[0].msg, `Unknown field: did you mean ${meant}?`);
    }
    const { state, changes } = await read(id);
    assert.deepEqual([state, changes.length], ["confirmed", 1]);
    assert.equal((await desk.change(id, "refund", { nights: null })).state, "refunded");
  });

  it("cannot be changed once it is void", async () => {
    const { id } = await desk.book();
    const voided = await desk.change(id, "void", { reason: "typed in twice" });
    assert.deepEqual([voided.state, voided.total_tax, voided.tax_delta.total_tax], ["voided", "0.00", "-26.00"]);
    assert.equal((await post(id, "void")).status, 409);
    for (const action of ["refund", "adjust"]) assert.equal((await post(id, action, { nights: 1 })).status, 409);
  });

  it("keeps its history as it was written", async () => {
    const { id } = await desk.book();
    for (const rewriting of [
      desk.sql`update booking_changes set reason = 'another' where booking_id = ${id}`,
      desk.sql`update tax_entries set tax_amount = 0 where booking_id = ${id}`,
      desk.sql`update frozen_rules set rules = '{}'`,
    ]) {
      await assert.rejects(rewriting, /only ever added to/);
    }
  });
});
