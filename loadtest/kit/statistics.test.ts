import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Distribution, Tally } from "./statistics.ts";

describe("a distribution", () => {
  it("gives every percentile within 1 % above the exact one", () => {
    const values = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 400 });
    const share = fc.double({ min: 0.001, max: 1, noNaN: true });
    fc.assert(
      fc.property(values, share, (sample, wanted) => {
        const distribution = new Distribution();
        for (const value of sample) distribution.record(value);
        const sorted = [...sample].sort((a, b) => a - b);
        const exact = sorted[Math.max(1, Math.ceil(wanted * sorted.length)) - 1] ?? 0;
        const found = distribution.percentile(wanted);
        assert.ok(found >= exact * (1 - 1e-9), `${found} is below ${exact}`);
        assert.ok(found <= Math.max(exact * 1.0101, 0.01), `${found} is more than 1 % above ${exact}`);
      }),
    );
  });

  it("has exact counts, mean and maximum", () => {
    const distribution = new Distribution();
    for (const value of [1, 2, 3, 4, 90]) distribution.record(value);
    const { count, mean, max } = distribution.summary();
    assert.deepEqual({ count, mean, max }, { count: 5, mean: 20, max: 90 });
  });

  it("is all zeros when nothing was recorded", () => {
    assert.deepEqual(new Distribution().summary(), { count: 0, mean: 0, p50: 0, p95: 0, p99: 0, max: 0 });
  });

  it("counts a negative difference of two clock readings as zero", () => {
    const distribution = new Distribution();
    distribution.record(-3);
    assert.equal(distribution.summary().max, 0);
  });
});

describe("a tally", () => {
  it("counts by name and lists the names in order", () => {
    const tally = new Tally();
    for (const name of ["capacity", "expired", "capacity"]) tally.add(name);
    assert.equal(JSON.stringify(tally), '{"capacity":2,"expired":1}');
    assert.deepEqual([tally.total, tally.of("capacity"), tally.of("gone")], [3, 2, 0]);
  });
});
