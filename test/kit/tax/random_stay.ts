/** Stays of all kinds in all places, each by its number: the same number is the same stay. */
import type { CalculationRequest } from "#tax/calculator/calculation_request.ts";
import { propertyTypes, purposes } from "#tax/rules/rule.ts";
import type { Ruleset } from "#tax/rules/ruleset.ts";

export function randomStay(codes: readonly string[], ruleset: Ruleset, number: number): CalculationRequest {
  const random = randomOf(number);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const maybe = <T>(share: number, value: () => T) => (random() < share ? value() : undefined);
  const code = pick(codes);
  const currency = ruleset.rulesIn(code)?.rules.flatMap(currenciesOf)[0] ?? "EUR";
  const guests = 1 + Math.floor(random() * 5);
  const month = String(1 + Math.floor(random() * 12)).padStart(2, "0");
  const day = String(1 + Math.floor(random() * 28)).padStart(2, "0");
  const price = (0.01 + random() ** 3 * 30_000).toFixed(pick([0, 2, 2, 2, 4]));
  const stay = {
    jurisdiction_code: code,
    stay_date: `${pick([2023, 2024, 2025, 2026, 2026, 2027])}-${month}-${day}`,
    nights: pick([1, 1, 2, 3, 5, 8, 14, 31, 40]),
    nightly_rate: Number(price) > 0 ? price : "1",
    currency,
    fx: { rate: pick(["1.08", "0.0061", "133.7"]), source: "test", date: "2026-11-20" },
    rooms: pick([1, 1, 1, 2, 3]),
    number_of_guests: guests,
    guest_ages: maybe(0.4, () => Array.from({ length: guests }, () => Math.floor(random() * 70))),
    guest_country: maybe(0.3, () => pick(["US", "DE", "MY", "JP"])),
    guest_is_resident: maybe(0.3, () => random() < 0.3),
    purpose: maybe(0.3, () => pick(purposes)),
    property_type: maybe(0.7, () => pick(propertyTypes)),
    star_rating: maybe(0.6, () => pick([0, 1, 2, 3, 4, 4.5, 5])),
    property_rooms: maybe(0.4, () => pick([5, 30, 80, 300])),
    price_includes_tax: maybe(0.1, () => true),
    channel: maybe(0.3, () => pick(["direct", "platform"] as const)),
    included_amounts: maybe(0.2, () => ({ service_charge: (random() * 0.005).toFixed(4) })),
  };
  return Object.fromEntries(
    Object.entries(stay).filter(([, value]) => value !== undefined),
  ) as unknown as CalculationRequest;
}

const currenciesOf = ({ versions }: { versions: readonly { terms: { currency?: string } }[] }) =>
  versions.flatMap(({ terms }) => terms.currency ?? []);

/** Mulberry32: small, and good enough to choose with. */
function randomOf(seed: number): () => number {
  let state = (seed + 1) * 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
