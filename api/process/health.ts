/**
 * `/healthz`: the process is alive. `/readyz`: Postgres answers, has the schema, and commits. The bus is
 * not asked: without it nothing durable is lost, and a restart would mend nothing.
 */
import { Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { publicAccess, type Route, route } from "#http/route.ts";
import type { Sql } from "#store/sql.ts";

const Health = Type.Object({ status: Type.String() });

/** A database whose disk is full still reads: so often at most a write is tried. */
const writeEveryMs = 5000;

export function healthRoutes(deps: { sql: Sql; now(): Date }): Route[] {
  const assertWrites = writeProbe(deps);
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
      summary: "Ready: Postgres answers, has the schema, and commits",
      guard: publicAccess,
      reply: { status: 200, body: Health },
      errors: ["unavailable"],
      handle: async () => {
        try {
          await assertWrites();
        } catch (cause) {
          throw new ApiError("unavailable", { cause, retryAfterS: 1 });
        }
        return { status: "ready" };
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
