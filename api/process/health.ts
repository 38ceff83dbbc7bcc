/** `/healthz`: the process is alive. `/readyz`: its stores answer. */
import { Type } from "@sinclair/typebox";
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { publicAccess, type Route, route } from "#http/route.ts";
import type { Sql } from "#store/sql.ts";

const Health = Type.Object({ status: Type.String() });

export function healthRoutes({ sql, bus }: { sql: Sql; bus: Bus }): Route[] {
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
      summary: "Ready: the stores answer and the schema is there",
      guard: publicAccess,
      reply: { status: 200, body: Health },
      errors: ["unavailable"],
      handle: async () => {
        try {
          await Promise.all([sql`select version from schema_migration limit 1`, bus.ping()]);
        } catch (cause) {
          throw new ApiError("unavailable", { cause, retryAfterS: 1 });
        }
        return { status: "ready" };
      },
    }),
  ];
}
