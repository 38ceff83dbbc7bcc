/**
 * Exact fractions: what the law divides, no float rounds. Small ones are pairs of whole numbers that a
 * double holds exactly, the others of big integers; which of the two never shows in a result.
 */

export type RoundingMode = "half_up" | "half_even" | "down" | "up";

const decimalPattern = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?$/;

/** Amounts of laws are few and come again and again. What is over the bound is read anew. */
const parsedMax = 20_000;
const parsed = new Map<string | number, Rational>();

const safeMax = Number.MAX_SAFE_INTEGER;
/** Up to here two numbers multiply to one that is safe. */
const factorMax = 94_906_265;

export class Rational {
  static readonly zero = new Rational(0, 1, undefined);
  static readonly one = new Rational(1, 1, undefined);
  /** Whole and safe, not always in lowest terms; meaningless where there is a `big`. */
  private readonly top: number;
  private readonly bottom: number;
  /** In lowest terms, and only there where a double does not hold them. */
  private readonly big: { n: bigint; d: bigint } | undefined;

  private constructor(top: number, bottom: number, big: { n: bigint; d: bigint } | undefined) {
    this.top = top;
    this.bottom = bottom;
    this.big = big;
  }

  /** `n / d`; `d` must not be 0. */
  static of(n: bigint | number, d: bigint | number = 1): Rational {
    if (typeof n === "number" && typeof d === "number" && isSafe(n) && isSafe(d)) {
      if (d === 0) throw new RangeError("Cannot divide by zero");
      return d > 0 ? new Rational(n, d, undefined) : new Rational(n === 0 ? 0 : -n, -d, undefined);
    }
    return Rational.ofBig(BigInt(n), BigInt(d));
  }

  private static ofBig(n: bigint, d: bigint): Rational {
    if (d === 0n) throw new RangeError("Cannot divide by zero");
    const shared = bigGcd(n < 0n ? -n : n, d < 0n ? -d : d) * (d < 0n ? -1n : 1n);
    const [top, bottom] = [n / shared, d / shared];
    const isSmall = bottom <= safeMax && top <= safeMax && top >= -safeMax;
    return isSmall ? new Rational(Number(top), Number(bottom), undefined) : new Rational(0, 1, { n: top, d: bottom });
  }

  /** From the text of a decimal number, such as `7.50`, `-1` or `1e2`; a number by its shortest text. */
  static parse(value: string | number): Rational {
    const known = parsed.get(value);
    if (known) return known;
    const number = Rational.read(value);
    if (parsed.size < parsedMax) parsed.set(value, number);
    return number;
  }

  private static read(value: string | number): Rational {
    const match = decimalPattern.exec(String(value));
    const [, sign, whole = "", fraction = "", exponent = "0"] = match ?? [];
    if (!match || whole + fraction === "") throw new RangeError(`Not a decimal number: ${value}`);
    const digits = BigInt(`${sign}${whole}${fraction}`.replace(/^\+/, ""));
    const scale = Number(exponent) - fraction.length;
    return scale >= 0
      ? Rational.ofBig(digits * 10n ** BigInt(scale), 1n)
      : Rational.ofBig(digits, 10n ** BigInt(-scale));
  }

  /** In lowest terms. */
  get n(): bigint {
    return this.lowest().n;
  }

  /** Above 0, with no factor in common with `n`. */
  get d(): bigint {
    return this.lowest().d;
  }

  private lowest(): { n: bigint; d: bigint } {
    if (this.big) return this.big;
    const shared = gcd(Math.abs(this.top), this.bottom);
    return { n: BigInt(this.top / shared), d: BigInt(this.bottom / shared) };
  }

  private exact(): { n: bigint; d: bigint } {
    return this.big ?? { n: BigInt(this.top), d: BigInt(this.bottom) };
  }

  plus(other: Rational): Rational {
    if (!this.big && !other.big) {
      const [a, b, c, d] = [this.top, this.bottom, other.top, other.bottom];
      if (b === d) {
        const sum = a + c;
        if (isSafe(sum)) return new Rational(sum, b, undefined);
      } else if (a === 0) {
        return other;
      } else if (c === 0) {
        return this;
      } else {
        // Decimals have denominators that divide each other.
        const isMultiple = b > d ? b % d === 0 : d % b === 0;
        const bottom = isMultiple ? Math.max(b, d) : b * d;
        const left = isMultiple ? a * (bottom / b) : a * d;
        const right = isMultiple ? c * (bottom / d) : c * b;
        const sum = left + right;
        if (isSafe(bottom) && isSafe(left) && isSafe(right) && isSafe(sum)) return new Rational(sum, bottom, undefined);
      }
    }
    const [x, y] = [this.exact(), other.exact()];
    return Rational.ofBig(x.n * y.d + y.n * x.d, x.d * y.d);
  }

  minus(other: Rational): Rational {
    return this.plus(other.negated());
  }

  private negated(): Rational {
    if (this.big) return new Rational(0, 1, { n: -this.big.n, d: this.big.d });
    return this.top === 0 ? this : new Rational(-this.top, this.bottom, undefined);
  }

  times(other: Rational): Rational {
    if (!this.big && !other.big) return Rational.product(this.top, this.bottom, other.top, other.bottom);
    const [x, y] = [this.exact(), other.exact()];
    return Rational.ofBig(x.n * y.n, x.d * y.d);
  }

  over(other: Rational): Rational {
    if (!this.big && !other.big) {
      if (other.top === 0) throw new RangeError("Cannot divide by zero");
      return other.top > 0
        ? Rational.product(this.top, this.bottom, other.bottom, other.top)
        : Rational.product(this.top === 0 ? 0 : -this.top, this.bottom, other.bottom, -other.top);
    }
    const [x, y] = [this.exact(), other.exact()];
    return Rational.ofBig(x.n * y.d, x.d * y.n);
  }

  /** `(a / b) * (c / d)`, with `b` and `d` above 0. */
  private static product(a: number, b: number, c: number, d: number): Rational {
    if (a === 0 || c === 0) return Rational.zero;
    // What stands above and below alike goes at once: a percentage of a price, a price by the cent.
    if (a === d) return new Rational(c, b, undefined);
    if (b === c) return new Rational(a, d, undefined);
    const [top, bottom] = [a * c, b * d];
    if (isSafe(top) && bottom <= factorMax) return new Rational(top, bottom, undefined);
    const [first, second] = [gcd(Math.abs(a), d), gcd(Math.abs(c), b)];
    const reducedTop = (a / first) * (c / second);
    const reducedBottom = (b / second) * (d / first);
    if (isSafe(reducedTop) && isSafe(reducedBottom)) {
      const shared = reducedBottom > factorMax ? gcd(Math.abs(reducedTop), reducedBottom) : 1;
      return new Rational(reducedTop / shared, reducedBottom / shared, undefined);
    }
    return Rational.ofBig(BigInt(a) * BigInt(c), BigInt(b) * BigInt(d));
  }

  /** Below 0, 0 or above 0, as `this` is less than, equal to or more than `other`. */
  compare(other: Rational): number {
    if (!this.big && !other.big) {
      const [left, right] =
        this.bottom === other.bottom ? [this.top, other.top] : [this.top * other.bottom, other.top * this.bottom];
      if (isSafe(left) && isSafe(right)) return left < right ? -1 : left > right ? 1 : 0;
    }
    const [x, y] = [this.exact(), other.exact()];
    const difference = x.n * y.d - y.n * x.d;
    return difference < 0n ? -1 : difference > 0n ? 1 : 0;
  }

  get isZero(): boolean {
    return this.big ? this.big.n === 0n : this.top === 0;
  }

  get isNegative(): boolean {
    return this.big ? this.big.n < 0n : this.top < 0;
  }

  /** The multiple of `increment` that `mode` chooses; half_up goes away from zero, down towards it. */
  roundTo(increment: Rational, mode: RoundingMode): Rational {
    const { top, bottom, big } = this.over(increment);
    if (big) {
      const rounded = roundedBig(big.n, big.d, mode);
      return Rational.ofBig(rounded, 1n).times(increment);
    }
    const size = Math.abs(top);
    const rest = size % bottom;
    const whole = (size - rest) / bottom;
    // Twice the rest may be more than a double holds exactly.
    const half = rest - (bottom - rest);
    const above =
      rest > 0 &&
      (mode === "up" ||
        (mode === "half_up" && half >= 0) ||
        (mode === "half_even" && (half > 0 || (half === 0 && whole % 2 === 1))));
    const rounded = above ? whole + 1 : whole;
    return Rational.of(top < 0 && rounded > 0 ? -rounded : rounded).times(increment);
  }

  /** With exactly `digits` decimal places, half up where there are more. */
  toFixed(digits: number): string {
    const { big, top, bottom } = this;
    const power = powersOfTen[digits];
    if (!big && power !== undefined) {
      const scaled = Math.abs(top) * power;
      if (scaled <= safeMax) {
        const rest = scaled % bottom;
        const rounded = (scaled - rest) / bottom + (rest > 0 && rest - (bottom - rest) >= 0 ? 1 : 0);
        return decimalText(String(rounded), digits, top < 0 && rounded > 0);
      }
    }
    const { n, d } = this.exact();
    const size = roundedBig(n < 0n ? -n * 10n ** BigInt(digits) : n * 10n ** BigInt(digits), d, "half_up");
    return decimalText(size.toString(), digits, n < 0n && size > 0n);
  }

  /** As few decimal places as it takes, at most `digitsMax`. */
  toText(digitsMax = 12): string {
    if (!this.big && this.bottom === 1) return String(this.top);
    const text = this.toFixed(digitsMax);
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  }
}

export function sumOf(values: Iterable<Rational>): Rational {
  let sum = Rational.zero;
  for (const value of values) sum = sum.plus(value);
  return sum;
}

export const smallerOf = (a: Rational, b: Rational): Rational => (a.compare(b) <= 0 ? a : b);

const powersOfTen = Array.from({ length: 13 }, (_, index) => 10 ** index);

/** Whole, and so small that doubles around it are all whole numbers. */
function isSafe(value: number): boolean {
  return value <= safeMax && value >= -safeMax;
}

function decimalText(size: string, digits: number, isNegative: boolean): string {
  const sign = isNegative ? "-" : "";
  if (digits === 0) return sign + size;
  const text = size.padStart(digits + 1, "0");
  return `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

function roundedBig(n: bigint, d: bigint, mode: RoundingMode): bigint {
  const size = n < 0n ? -n : n;
  const whole = size / d;
  const rest = size % d;
  const above =
    rest > 0n &&
    (mode === "up" ||
      (mode === "half_up" && rest * 2n >= d) ||
      (mode === "half_even" && (rest * 2n > d || (rest * 2n === d && whole % 2n === 1n))));
  const rounded = above ? whole + 1n : whole;
  return n < 0n ? -rounded : rounded;
}

function gcd(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y > 0) [x, y] = [y, x % y];
  return x === 0 ? 1 : x;
}

function bigGcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y > 0n) [x, y] = [y, x % y];
  return x === 0n ? 1n : x;
}
