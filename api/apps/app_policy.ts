/** An app's limits and habits: what is bounded, for how long runs are kept, how a session's runs follow each other. */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";

/**
 * `enqueue`: a session's runs wait for each other; `reject`: a second one is refused while one is
 * under way; `cancel_previous`: the newest one wins.
 */
export const sessionPolicies = ["enqueue", "reject", "cancel_previous"] as const;

const fields = {
  max_concurrent_runs: Type.Integer({ minimum: 1, maximum: 10_000, about: "runs at a time; more wait" }),
  max_queued_runs: Type.Integer({
    minimum: 0,
    maximum: 1_000_000,
    about: "runs that may wait; more are refused with 429",
  }),
  session_policy: {
    ...oneOf(sessionPolicies),
    about: "of a further run of a session in which one is going on: it waits, is refused, or cancels that one",
  },
  run_timeout_s: Type.Number({ minimum: 1, maximum: 30 * 86_400, about: "seconds until a run fails that is not over" }),
  retention_days: Type.Integer({ minimum: 1, maximum: 3650, about: "runs are deleted so many days after their end" }),
  /** Node inputs and outputs stand in the events. */
  log_io: Type.Boolean({ about: "whether events have what nodes were given and what they answered" }),
  /** Requests a minute from one address, for an app that needs no key. */
  public_requests_per_minute: Type.Integer({
    minimum: 1,
    maximum: 100_000,
    about: "requests without a key that one address may send a minute",
  }),
};

export const AppPolicy = named("AppPolicy", Type.Object(fields));
export type AppPolicy = Static<typeof AppPolicy>;

/** As customers write it: each field on its own. */
export const AppPolicyChange = named(
  "AppPolicyChange",
  Type.Partial(Type.Object(fields, { additionalProperties: false }), { additionalProperties: false }),
);
export type AppPolicyChange = Static<typeof AppPolicyChange>;

export const appPolicyDefault: AppPolicy = {
  max_concurrent_runs: 100,
  max_queued_runs: 10_000,
  session_policy: "enqueue",
  run_timeout_s: 3600,
  retention_days: 30,
  log_io: false,
  public_requests_per_minute: 60,
};
