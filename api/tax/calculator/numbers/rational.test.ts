import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Rational, type RoundingMode } from "./rational.ts";

/** The same number as a plain fraction of big integers, never in a double. */
interface Exact {
  n: bigint;
  d: bigint;
}

const part = fc.oneof(
  fc.integer({ min: -1000, max: 1000 }).map(BigInt),
  fc.bigInt({ min: -(2n ** 53n), max: 2n ** 53n }),
  fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
);
const denominator = fc.oneof(
  fc.constantFrom(1n, 2n, 3n, 10n, 100n, 1000n, 10_000n, 15n),
  fc.bigInt({ min: 1n, max: 2n ** 53n }),
  fc.bigInt({ min: 1n, max: 10n ** 20n }),
);
const fraction = fc.tuple(part, denominator).map(([n, d]): Exact => ({ n, d }));
const numberOf = ({ n, d }: Exact) => Rational.of(n, d);
const same = (number: Rational, { n, d }: Exact) => assert.equal(number.n * d, n * number.d, `${number.n}/${number.d}`);
const abs = (n: bigint) => (n < 0n ? -n : n);

function rounded({ n, d }: Exact, mode: RoundingMode): bigint {
  const [whole, rest] = [abs(n) / d, abs(n) % d];
  const isHalfOrMore = mode === "half_up" ? rest * 2n >= d : rest * 2n > d || (rest * 2n === d && whole % 2n === 1n);
  const isUp = rest > 0n && (mode === "up" || (mode !== "down" && isHalfOrMore));
  return (n < 0n ? -1n : 1n) * (isUp ? whole + 1n : whole);
}

describe("an exact fraction", () => {
  it("adds, subtracts, multiplies and divides as big integers do, whatever its size", () => {
    fc.assert(
      fc.property(fraction, fraction, (a, b) => {
        const [x, y] = [numberOf(a), numberOf(b)];
        same(x.plus(y), { n: a.n * b.d + b.n * a.d, d: a.d * b.d });
        same(x.minus(y), { n: a.n * b.d - b.n * a.d, d: a.d * b.d });
        same(x.times(y), { n: a.n * b.n, d: a.d * b.d });
        if (b.n !== 0n) same(x.over(y), { n: a.n * b.d, d: a.d * b.n });
        const difference = a.n * b.d - b.n * a.d;
        assert.equal(Math.sign(x.compare(y)), difference < 0n ? -1 : difference > 0n ? 1 : 0);
      }),
      { numRuns: 3000 },
    );
  });

  it("stays exact over many steps, and in lowest terms for whoever looks", () => {
    const step = fc.tuple(fc.constantFrom("plus", "minus", "times"), fraction);
    fc.assert(
      fc.property(fraction, fc.array(step, { maxLength: 8 }), (start, steps) => {
        let [number, exact] = [numberOf(start), start];
        for (const [how, other] of steps) {
          number = number[how as "plus"](numberOf(other));
          const sum = how === "minus" ? -other.n : other.n;
          exact =
            how === "times"
              ? { n: exact.n * other.n, d: exact.d * other.d }
              : { n: exact.n * other.d + sum * exact.d, d: exact.d * other.d };
        }
        same(number, exact);
        assert.ok(number.d > 0n);
        let [a, b] = [abs(number.n), number.d];
        while (b > 0n) [a, b] = [b, a % b];
        assert.equal(a, 1n);
      }),
      { numRuns: 1000 },
    );
  });

  it("rounds and prints as big integers do, in every mode", () => {
    const modes = fc.constantFrom<RoundingMode>("half_up", "half_even", "down", "up");
    fc.assert(
      fc.property(
        fraction,
        modes,
        fc.constantFrom("1", "0.01", "0.05", "100"),
        fc.integer({ min: 0, max: 8 }),
        (a, mode, text, digits) => {
          const increment = Rational.parse(text);
          const steps = rounded({ n: a.n * increment.d, d: a.d * increment.n }, mode);
          same(numberOf(a).roundTo(increment, mode), { n: steps * increment.n, d: increment.d });
          const size = rounded({ n: a.n * 10n ** BigInt(digits), d: a.d }, "half_up");
          const shown = numberOf(a).toFixed(digits);
          assert.equal(BigInt(shown.replace(".", "")), size);
          assert.equal(shown.startsWith("-"), size < 0n);
          assert.equal(shown.split(".")[1]?.length ?? 0, digits);
        },
      ),
      { numRuns: 3000 },
    );
  });

  it("refuses to divide by zero", () => {
    assert.throws(() => Rational.one.over(Rational.zero), RangeError);
    assert.throws(() => Rational.of(1, 0), RangeError);
    assert.throws(() => Rational.of(1n, 0n), RangeError);
  });
});
