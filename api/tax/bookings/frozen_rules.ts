/**
 * The rules that bookings were made by. A place's rules are kept once for each fingerprint, before
 * the first booking names it; what is edited on disk later changes no booking.
 */
import { type AnySql, json, oneRow, type Sql } from "#store/sql.ts";
import type { PlaceRules } from "../rules/ruleset.ts";

/** Places that this process has at hand; the others are read from the database. */
const rememberedMax = 200;

export interface FrozenRules {
  /** Makes sure that the rules are kept. Outside of transactions: what one rolls back would be remembered as kept. */
  keep(sql: Sql, place: PlaceRules): Promise<void>;
  /** The rules of a booking, by its `ruleset_hash`; over the connection of whoever asks. */
  read(sql: AnySql, hash: string): Promise<PlaceRules>;
}

export function createFrozenRules(): FrozenRules {
  const kept = new Map<string, PlaceRules>();
  const remember = (place: PlaceRules) => {
    const [oldest] = kept.keys();
    if (kept.size >= rememberedMax && oldest !== undefined) kept.delete(oldest);
    kept.set(place.hash, place);
  };
  return {
    async keep(sql, place) {
      if (kept.has(place.hash)) return;
      await sql`
        insert into frozen_rules (hash, rules) values (${place.hash}, ${json(sql, place)}) on conflict do nothing`;
      remember(place);
    },
    async read(sql, hash) {
      const known = kept.get(hash);
      if (known) return known;
      const { rules } = oneRow(await sql<{ rules: PlaceRules }[]>`select rules from frozen_rules where hash = ${hash}`);
      remember(rules);
      return rules;
    },
  };
}
