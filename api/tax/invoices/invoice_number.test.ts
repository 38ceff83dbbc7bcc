import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { dayIn, numberText } from "./invoice_number.ts";

describe("invoice numbers", () => {
  it("are never the same for two that differ in anything", () => {
    const series = fc
      .tuple(fc.constantFrom("A", "7", "CN", "TEST"), fc.string({ unit: fc.constantFrom(..."A2/_-0"), maxLength: 9 }))
      .map((parts) => parts.join(""));
    const taken = fc.record({
      environment: fc.constantFrom("live" as const, "test" as const),
      type: fc.constantFrom("invoice" as const, "credit_note" as const),
      series,
      fiscal_year: fc.integer({ min: 2020, max: 2030 }),
      sequence: fc.integer({ min: 1, max: 20_000_000 }),
    });
    fc.assert(
      fc.property(taken, taken, (one, other) => {
        const isSame = JSON.stringify(one) === JSON.stringify(other);
        assert.equal(numberText(one, one) === numberText(other, other), isSame);
      }),
    );
    const one = { environment: "test", type: "credit_note", series: "SEE", fiscal_year: 2026, sequence: 42 } as const;
    assert.equal(numberText(one, one), "TEST.CN.SEE-2026-000042");
  });

  it("bear the day of the seller's place, over the date line and through the change of clocks", () => {
    const at = (text: string) => new Date(text);
    assert.equal(dayIn("UTC", at("2026-12-31T23:59:59.999Z")), "2026-12-31");
    assert.equal(dayIn("Pacific/Kiritimati", at("2026-12-31T10:00:00Z")), "2027-01-01");
    assert.equal(dayIn("Pacific/Pago_Pago", at("2027-01-01T10:59:59Z")), "2026-12-31");
    assert.equal(dayIn("Europe/Berlin", at("2026-03-28T23:00:00Z")), "2026-03-29");
    assert.equal(dayIn("Europe/Berlin", at("2026-03-29T22:00:00Z")), "2026-03-30");
  });
});
