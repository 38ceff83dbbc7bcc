import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { CalculationRequest } from "../calculator/calculation_request.ts";
import { canonicalJson, fingerprintOf, meaningOf } from "./request_fingerprint.ts";

const stay: CalculationRequest = {
  jurisdiction_code: "IT-RM-ROM",
  stay_date: "2026-12-01",
  nights: 3,
  nightly_rate: 120,
  currency: "EUR",
};
const printOf = (changes: Partial<CalculationRequest> = {}) => fingerprintOf(meaningOf({ ...stay, ...changes }));

describe("canonical JSON", () => {
  it("is RFC 8785's: fields by code units, no white space, numbers as JavaScript prints them", () => {
    const value = { "\u20ac": 1e30, "\r": [true, null, 4.5], "\ud83d\ude00": 2e-3, "1": "\u20ac\n", ö: undefined };
    assert.equal(canonicalJson(value), '{"\\r":[true,null,4.5],"1":"\u20ac\\n","\u20ac":1e+30,"\ud83d\ude00":0.002}');
  });

  it("is the same for the same value in any order, and another for another value", () => {
    const reversed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reversed);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([name, field]) => [name, reversed(field)]),
      );
    };
    fc.assert(fc.property(fc.jsonValue(), (value) => canonicalJson(reversed(value)) === canonicalJson(value)));
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        assert.deepEqual(JSON.parse(canonicalJson(value)), JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe("the meaning of a calculation", () => {
  it("is the same however it is written", () => {
    const same: Partial<CalculationRequest>[] = [
      { nightly_rate: "120.00" },
      { nightly_rate: "0120" },
      { jurisdiction_code: "it-rm-rom" },
      { rooms: 1, number_of_guests: 1, adults: 1, purpose: "leisure", channel: "direct", customer_type: "consumer" },
      { checkout_date: "2026-12-04", price_includes_tax: false, guest_is_resident: false, included_amounts: {} },
      { included_amounts: { breakfast: false } },
      { fx: [] },
    ];
    for (const changes of same) assert.equal(printOf(changes), printOf(), JSON.stringify(changes));
    const rate = { rate: "1.10", source: "ECB", date: "2026-01-01" };
    assert.equal(printOf({ fx: rate }), printOf({ fx: [{ ...rate, rate: 1.1 }] }));
  });

  it("is another for anything that may change the answer", () => {
    const changes: Partial<CalculationRequest>[] = [
      {},
      { nights: 4 },
      { stay_date: "2026-12-02" },
      { nightly_rate: "120.000000000000001" },
      { currency: "USD" },
      { jurisdiction_code: "IT-MI-MIL" },
      { rooms: 2 },
      { number_of_guests: 2 },
      { number_of_guests: 2, adults: 1 },
      { guest_ages: [30] },
      { guest_ages: [12] },
      { guest_country: "IT" },
      { guest_is_resident: true },
      { purpose: "business" },
      { customer_type: "diplomat" },
      { property_type: "hostel" },
      { star_rating: 4 },
      { property_rooms: 10 },
      { nightly_rates: [{ date: "2026-12-02", rate: 90 }] },
      { price_includes_tax: true },
      { booking_date: "2026-11-01" },
      { payment_date: "2026-11-01" },
      { channel: "platform" },
      { included_amounts: { breakfast: 10 } },
      { included_amounts: { breakfast: true } },
      { included_amounts: { cleaning: 10 } },
      { declared_tariff: 200 },
      { as_known_at: "2026-01-01" },
      { fx: { rate: 1.1, source: "ECB", date: "2026-01-01" } },
      { latitude: 41.9, longitude: 12.5 },
    ];
    assert.equal(new Set(changes.map(printOf)).size, changes.length);
  });
});
