/** Exact fractions of big integers: what the law divides, no float rounds. */

export type RoundingMode = "half_up" | "half_even" | "down" | "up";

const decimalPattern = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?$/;

/** Amounts of laws are few and come again and again. What is over the bound is read anew. */
const parsedMax = 20_000;
const parsed = new Map<string | number, Rational>();

export class Rational {
  static readonly zero = new Rational(0n, 1n);
  static readonly one = new Rational(1n, 1n);
  readonly n: bigint;
  /** Above 0, with no factor in common with `n`. */
  readonly d: bigint;

  private constructor(n: bigint, d: bigint) {
    this.n = n;
    this.d = d;
  }

  /** `n / d` in lowest terms; `d` must not be 0. */
  static of(n: bigint | number, d: bigint | number = 1n): Rational {
    const [top, bottom] = [BigInt(n), BigInt(d)];
    if (bottom === 0n) throw new RangeError("Cannot divide by zero");
    if (bottom === 1n) return new Rational(top, 1n);
    const shared = gcd(top < 0n ? -top : top, bottom < 0n ? -bottom : bottom) * (bottom < 0n ? -1n : 1n);
    return new Rational(top / shared, bottom / shared);
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
    return scale >= 0 ? Rational.of(digits * 10n ** BigInt(scale)) : Rational.of(digits, 10n ** BigInt(-scale));
  }

  plus(other: Rational): Rational {
    if (this.d === other.d) return Rational.of(this.n + other.n, this.d);
    return Rational.of(this.n * other.d + other.n * this.d, this.d * other.d);
  }

  minus(other: Rational): Rational {
    return this.plus(new Rational(-other.n, other.d));
  }

  times(other: Rational): Rational {
    return Rational.of(this.n * other.n, this.d * other.d);
  }

  over(other: Rational): Rational {
    return Rational.of(this.n * other.d, this.d * other.n);
  }

  /** Below 0, 0 or above 0, as `this` is less than, equal to or more than `other`. */
  compare(other: Rational): number {
    const difference = this.n * other.d - other.n * this.d;
    return difference < 0n ? -1 : difference > 0n ? 1 : 0;
  }

  get isZero(): boolean {
    return this.n === 0n;
  }

  get isNegative(): boolean {
    return this.n < 0n;
  }

  /** The multiple of `increment` that `mode` chooses; half_up goes away from zero, down towards it. */
  roundTo(increment: Rational, mode: RoundingMode): Rational {
    const { n, d } = this.over(increment);
    const size = n < 0n ? -n : n;
    const whole = size / d;
    const rest = size % d;
    const above =
      rest > 0n &&
      (mode === "up" ||
        (mode === "half_up" && rest * 2n >= d) ||
        (mode === "half_even" && (rest * 2n > d || (rest * 2n === d && whole % 2n === 1n))));
    const rounded = above ? whole + 1n : whole;
    return Rational.of(n < 0n ? -rounded : rounded).times(increment);
  }

  /** With exactly `digits` decimal places, half up where there are more. */
  toFixed(digits: number): string {
    const scaled = this.roundTo(Rational.of(1n, 10n ** BigInt(digits)), "half_up").times(
      Rational.of(10n ** BigInt(digits)),
    );
    const text = (scaled.n < 0n ? -scaled.n : scaled.n).toString().padStart(digits + 1, "0");
    const sign = scaled.n < 0n ? "-" : "";
    return digits === 0 ? sign + text : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`;
  }

  /** As few decimal places as it takes, at most `digitsMax`. */
  toText(digitsMax = 12): string {
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

function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y > 0n) [x, y] = [y, x % y];
  return x === 0n ? 1n : x;
}
