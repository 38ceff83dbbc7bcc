/** What every endpoint of bookings needs. */
import type { Billable } from "#accounts/request_log.ts";
import type { Sql } from "#store/sql.ts";
import type { CalculationOptions } from "../calculator/calculate.ts";
import type { Ruleset } from "../rules/ruleset.ts";
import type { FrozenRules } from "./frozen_rules.ts";

export interface BookingDeps extends Billable {
  sql: Sql;
  ruleset: Ruleset;
  frozenRules: FrozenRules;
  /** The place at a point. */
  locate: NonNullable<CalculationOptions["locate"]>;
  now(): Date;
}
