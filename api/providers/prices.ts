/** What the amounts of a use cost, by a table of prices. Pure. Unknown is null, never 0. */
import type { Cost, Price, VendorUse } from "#contracts/usage.ts";
import type { Biller, StageUse } from "./metered_stage.ts";

/** A use, summed up, with the place that it was reached at. */
export type UseSum = Omit<StageUse, "turnId" | "at">;

const million = 1_000_000;
/** Money is told to a billionth. */
const places = 1e9;

/** The most exact row that fits: one of the address, of the model's whole name, of its beginning, of the vendor. */
export function priceOf(by: Biller, prices: readonly Price[]): Price | undefined {
  const fitting = prices.filter(
    (price) =>
      price.stage === by.stage &&
      price.provider === by.provider &&
      (price.base_url ?? "") === (by.baseUrl ?? "") &&
      fits(by.model, price.model),
  );
  return fitting.sort((a, b) => (b.model ?? "").length - (a.model ?? "").length)[0];
}

function fits(model: string | undefined, pattern: string | undefined): boolean {
  if (pattern === undefined) return true;
  if (pattern.endsWith("*")) return model?.startsWith(pattern.slice(0, -1)) ?? false;
  return model === pattern;
}

/** In the table's currency. */
export function costOf(use: UseSum, price: Price | undefined): number | null {
  if (use.unreported || !price) return null;
  const { prompt = 0, completion = 0, cached = 0, audioMs = 0, characters = 0 } = use;
  const parts: [amount: number, price: number | undefined][] = [
    [(prompt - cached) / million, price.per_million_input_tokens],
    [cached / million, price.per_million_cached_tokens],
    [completion / million, price.per_million_output_tokens],
    [audioMs / 60_000, price.per_minute],
    [characters / million, price.per_million_characters],
  ];
  let cost = 0;
  for (const [amount, each] of parts) {
    if (amount === 0) continue;
    if (each === undefined) return null;
    cost += amount * each;
  }
  return Math.round(cost * places) / places;
}

/** Adds up uses by who was used. A provider that is built in, or is the operator's own server, has no vendor to bill it. */
export class UseMeter {
  readonly #prices: readonly Price[];
  readonly #isFree: (by: Biller) => boolean;
  readonly #sums = new Map<string, UseSum>();

  constructor(prices: readonly Price[], isFree: (by: Biller) => boolean) {
    this.#prices = prices;
    this.#isFree = isFree;
  }

  add({ turnId: _turn, at: _at, ...use }: StageUse): void {
    const { stage, provider, model, baseUrl } = use.by;
    const key = [stage, provider, model, baseUrl].join(" ");
    const sum = this.#sums.get(key);
    this.#sums.set(key, sum ? together(sum, use) : use);
  }

  vendors(): VendorUse[] {
    return [...this.#sums.values()].map((sum) => ({
      stage: sum.by.stage,
      provider: sum.by.provider,
      ...(sum.by.model !== undefined && { model: sum.by.model }),
      requests: sum.requests,
      ...(sum.prompt !== undefined && { prompt: sum.prompt }),
      ...(sum.completion !== undefined && { completion: sum.completion }),
      ...(sum.cached !== undefined && { cached: sum.cached }),
      ...(sum.audioMs !== undefined && { audio_ms: Math.round(sum.audioMs) }),
      ...(sum.characters !== undefined && { characters: sum.characters }),
      ...(sum.unreported !== undefined && { unreported: sum.unreported }),
      cost: this.#costOf(sum),
    }));
  }

  #costOf(sum: UseSum): number | null {
    const price = priceOf(sum.by, this.#prices);
    return !price && this.#isFree(sum.by) ? 0 : costOf(sum, price);
  }
}

/** What uses cost together. */
export function costTogether(vendors: readonly VendorUse[], currency: string): Cost {
  const known = Math.round(vendors.reduce((sum, { cost }) => sum + (cost ?? 0), 0) * places) / places;
  const unknown = vendors.filter(({ cost }) => cost === null).map(nameOf);
  return { currency, amount: unknown.length > 0 ? null : known, known, unknown };
}

const nameOf = ({ stage, provider, model }: VendorUse) => [stage, provider, model].filter(Boolean).join(" ");

function together(a: UseSum, b: UseSum): UseSum {
  const sum: UseSum = { by: a.by, requests: a.requests + b.requests };
  for (const field of ["prompt", "completion", "cached", "audioMs", "characters", "unreported"] as const) {
    if (a[field] !== undefined || b[field] !== undefined) sum[field] = (a[field] ?? 0) + (b[field] ?? 0);
  }
  return sum;
}
