/**
 * How often somebody may try. Sign-ins are counted in Postgres, where a success gives its attempt
 * back; what is merely costly is counted on the bus. Nobody is ever locked out for good: windows end.
 */
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { gatewayHeader } from "#contracts/internal_runs.ts";
import type { AnySql } from "#store/sql.ts";
import { equalSecrets } from "./secret.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

interface Window {
  key: string;
  limit: number;
  windowMs: number;
}

/** Failures that one address may have: with one account in a minute and in an hour, and with all accounts. */
function signInWindows(email: string, address: string): Window[] {
  const account = `${address} ${email.toLowerCase()}`;
  return [
    { key: `minute ${account}`, limit: 5, windowMs: minuteMs },
    { key: `hour ${account}`, limit: 20, windowMs: hourMs },
    { key: `address ${address}`, limit: 100, windowMs: hourMs },
  ];
}

/**
 * Counts an attempt before it is judged, so that a crowd of parallel guesses cannot slip through.
 * @throws ApiError too_many_requests with the seconds until the window ends
 */
export async function countSignIn(sql: AnySql, email: string, address: string, now: Date): Promise<void> {
  const windows = signInWindows(email, address);
  const rows = await sql<{ key: string; attempts: number; window_ends_at: Date }[]>`
    insert into sign_in_attempt as attempt (key, attempts, window_ends_at)
    select key, 1, ${now}::timestamptz + window_ms * interval '1 millisecond'
    from unnest(${windows.map(({ key }) => key)}::text[], ${windows.map(({ windowMs }) => windowMs)}::integer[])
      as wanted (key, window_ms)
    order by key
    on conflict (key) do update set
      attempts = case when attempt.window_ends_at > ${now} then attempt.attempts + 1 else 1 end,
      window_ends_at =
        case when attempt.window_ends_at > ${now} then attempt.window_ends_at else excluded.window_ends_at end
    returning key, attempts, window_ends_at`;
  const exceeded = rows.filter((row) => row.attempts > (windows.find(({ key }) => key === row.key)?.limit ?? 0));
  if (exceeded.length === 0) return;
  const endsAtMs = Math.max(...exceeded.map((row) => row.window_ends_at.getTime()));
  throw tooMany(endsAtMs - now.getTime());
}

/** A sign-in that succeeded does not count. */
export async function uncountSignIn(sql: AnySql, email: string, address: string): Promise<void> {
  const keys = signInWindows(email, address).map(({ key }) => key);
  await sql`
    update sign_in_attempt set attempts = greatest(attempts - 1, 0)
    where key in (select key from sign_in_attempt where key in ${sql(keys)} order by key for update)`;
}

/** What costs us mail or a password hash, by the address that asks for it. Without a bus nothing is counted. */
export async function countCostly(bus: Bus, what: string, address: string, perMinute: number): Promise<void> {
  const hit = await bus.hitRateLimit(`${what}:${address}`, perMinute, minuteMs).catch(() => undefined);
  if (hit && !hit.allowed) throw tooMany(hit.retryAfterMs);
}

function tooMany(retryAfterMs: number): ApiError {
  const retryAfterS = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return new ApiError("too_many_requests", { retryAfterS, detail: `Too many attempts: try again in ${retryAfterS} s` });
}

/** Who asks, as far as it can be believed. */
export type AddressOf = (request: Request) => string;

/**
 * The caller's address as our own gateway saw it. All who come past it are one: a header that
 * anybody can write gives nobody further tries.
 */
export function believedAddress(internalSecret: string): AddressOf {
  return (request) => {
    const shown = request.headers.get(gatewayHeader);
    if (!shown || !equalSecrets(shown, internalSecret)) return "direct";
    return request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim().slice(0, 64) || "direct";
  };
}
