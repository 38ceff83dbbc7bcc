/**
 * `/healthz`: the process is alive. `/readyz`: Postgres answers, has the schema, and commits. What all
 * replicas share takes none of them out of a balancer, unless nothing can be answered without it: that is
 * Postgres alone. A bus that is away is said here and alerted on.
 */

import { Type } from "@sinclair/typebox";
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { Deadline } from "#http/deadline.ts";
import { publicAccess, type Route, route } from "#http/route.ts";
import type { Sql } from "#store/sql.ts";

const Health = named("Health", Type.Object({ status: Type.String(), bus: Type.Optional(Type.String()) }), {
  status: "ok, ready, draining or unavailable",
  bus: "whether the bus answers; without it calls and runs go on",
});

/** Balancers ask every few seconds and take no answer for a no. */
const storeMsMax = 2000;
const busMsMax = 500;

/** A database whose disk is full still reads: so often at most a write is tried. */
const writeEveryMs = 5000;

export function healthRoutes({ sql, bus, now }: { sql: Sql; bus: Bus; now(): Date }): Route[] {
  const assertWrites = writeProbe({ sql, now });
  return [
    route({
      method: "GET",
      path: "/healthz",
      summary: "Alive",
      guard: publicAccess,
      reply: { status: 200, body: Health },
      handle: async () => ({ status: "ok" }),
    }),
    route({
      method: "GET",
      path: "/readyz",
      summary: "Ready: Postgres answers, has the schema, and commits; degraded while the bus is away",
      guard: publicAccess,
      reply: { status: 200, body: Health },
      errors: ["unavailable"],
      handle: async () => {
        const [store, heard] = await Promise.allSettled([
          new Deadline(storeMsMax).within(assertWrites()),
          new Deadline(busMsMax).within(bus.ping()),
        ]);
        if (store.status === "rejected") throw new ApiError("unavailable", { cause: store.reason, retryAfterS: 1 });
        return heard.status === "fulfilled" ? { status: "ready" } : { status: "degraded", bus: "away" };
      },
    }),
  ];
}

/** Fails while Postgres does not answer or does not commit. Who asks at once shares one try. */
function writeProbe({ sql, now }: { sql: Sql; now(): Date }): () => Promise<void> {
  let writtenMs = Number.NEGATIVE_INFINITY;
  let writing: Promise<void> | undefined;
  const write = async () => {
    const at = now();
    await sql`
      insert into readiness_probe (is_only, written_at) values (true, ${at})
      on conflict (is_only) do update set written_at = excluded.written_at`;
    writtenMs = at.getTime();
  };
  return async () => {
    if (now().getTime() - writtenMs < writeEveryMs) return void (await sql`select 1 from readiness_probe`);
    writing ??= write().finally(() => {
      writing = undefined;
    });
    await writing;
  };
}
