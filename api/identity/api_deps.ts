/** What the resources of the management API are built from. Time comes from here, so that tests own it. */
import type { Bus } from "#bus/bus.ts";
import type { Guard } from "#http/route.ts";
import type { Sql } from "#store/sql.ts";
import type { Caller } from "./caller.ts";

export interface ApiDeps {
  sql: Sql;
  bus: Bus;
  now(): Date;
  personalAccessToken: Guard<Caller>;
}
