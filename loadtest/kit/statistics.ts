/**
 * Distributions in constant memory: buckets that grow by 1 %, so that a percentile is at most 1 %
 * too high, from a hundredth of a millisecond to hours. Minimum, maximum, sum and count are exact.
 */

export interface Summary {
  count: number;
  mean: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
}

/** Values up to this are one bucket: nothing here is measured finer than 10 µs. */
const resolution = 0.01;
const growth = 1.01;
const logGrowth = Math.log(growth);
/** 0.01 × 1.01^2200 is more than 10 hours in milliseconds. */
const buckets = 2200;

export class Distribution {
  readonly #counts = new Uint32Array(buckets);
  #count = 0;
  #sum = 0;
  #max = 0;

  get count(): number {
    return this.#count;
  }

  /** Adds one value; one below zero counts as zero (two clock readings may cross). */
  record(value: number): void {
    const positive = Math.max(0, value);
    const bucket = positive <= resolution ? 0 : Math.ceil(Math.log(positive / resolution) / logGrowth);
    const index = Math.min(bucket, buckets - 1);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#count += 1;
    this.#sum += positive;
    if (positive > this.#max) this.#max = positive;
  }

  /** The smallest bucket's edge below which `share` (0 to 1) of all values lie; 0 when there are none. */
  percentile(share: number): number {
    const wanted = Math.max(1, Math.ceil(share * this.#count));
    let seen = 0;
    for (let index = 0; index < buckets; index += 1) {
      seen += this.#counts[index] ?? 0;
      if (seen >= wanted) return Math.min(this.#max, resolution * growth ** index);
    }
    return this.#max;
  }

  summary(): Summary {
    return {
      count: this.#count,
      mean: this.#count === 0 ? 0 : this.#sum / this.#count,
      p50: this.percentile(0.5),
      p95: this.percentile(0.95),
      p99: this.percentile(0.99),
      max: this.#max,
    };
  }
}

/** Counts by name, for refusals and ends. */
export class Tally {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  get total(): number {
    let total = 0;
    for (const count of this.#counts.values()) total += count;
    return total;
  }

  toJSON(): Record<string, number> {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => a.localeCompare(b)));
  }
}
