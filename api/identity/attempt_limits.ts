/**
 * How often somebody may try. Sign-ins are counted in Postgres, where only a failure stays counted;
 * what is merely costly is counted on the bus. Nobody is ever locked out for good: windows end.
 */
import type { Bus } from "#bus/bus.ts";
import { addressGroup, clientAddress, type TrustedProxies } from "#contracts/client_address.ts";
import { ApiError } from "#contracts/errors.ts";
import { gatewayHeader } from "#contracts/internal_runs.ts";
import { peerOf } from "#http/peer_address.ts";
import { purgeBefore } from "#store/purge.ts";
import type { Sql } from "#store/sql.ts";
import { equalSecrets } from "./secret.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Somebody who tries to sign in. */
export interface SignIn {
  email: string;
  /** Where from, as `AddressOf` says. */
  address: string;
}

interface Window {
  key: string;
  limit: number;
  windowMs: number;
}

/** Failures: of one address with one account, of an address with all accounts, of an account from all addresses. */
function signInWindows({ email, address }: SignIn) {
  const account = accountKey(email);
  const from = addressGroup(address);
  return {
    all: [
      { key: `minute ${from} ${account}`, limit: 5, windowMs: minuteMs },
      { key: `hour ${from} ${account}`, limit: 20, windowMs: hourMs },
      { key: `address ${from}`, limit: 1000, windowMs: hourMs },
    ],
    account: { key: `account ${account}`, limit: 200, windowMs: hourMs },
    /** For addresses that never signed in to an account which is guessed at from everywhere. */
    stranger: { key: `stranger ${account}`, limit: 1, windowMs: minuteMs / 2 },
  };
}

/**
 * One for all ways to write an address in other letters: whatever some system takes for the same
 * account counts as the same. Coarser than that does no harm.
 */
export function accountKey(email: string): string {
  return email.normalize("NFKD").replace(/\p{M}/gu, "").toUpperCase().toLowerCase();
}

/**
 * Counts an attempt before it is judged, so that a crowd of parallel guesses cannot slip through. One
 * that is refused is no failure and does not stay counted.
 * @throws ApiError too_many_requests with the seconds until the window ends
 */
export async function countSignIn(sql: Sql, signIn: SignIn, now: Date): Promise<void> {
  const windows = signInWindows(signIn);
  const everybodys = [...windows.all, windows.account];
  const exceeded = await countIn(sql, everybodys, now);
  const onlyByOthers = exceeded.every(({ key }) => key === windows.account.key);
  if (onlyByOthers && (exceeded.length === 0 || (await isKnownAddress(sql, signIn)))) return;
  const inTurn = onlyByOthers ? await countIn(sql, [windows.stranger], now) : exceeded;
  if (inTurn.length === 0) return;
  await uncount(sql, everybodys);
  throw tooMany(Math.max(...inTurn.map(({ waitMs }) => waitMs)));
}

/**
 * Adds one to each window.
 * @returns those that have more than their limit then, and until when: a window that somebody else began a
 * moment later, by another clock, is not longer for that
 */
async function countIn(sql: Sql, windows: readonly Window[], now: Date): Promise<{ key: string; waitMs: number }[]> {
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
  return rows.flatMap(({ key, attempts, window_ends_at }) => {
    const { limit = 0, windowMs = 0 } = windows.find((window) => window.key === key) ?? {};
    return attempts > limit ? { key, waitMs: Math.min(windowMs, window_ends_at.getTime() - now.getTime()) } : [];
  });
}

async function uncount(sql: Sql, windows: readonly Window[]): Promise<void> {
  const keys = windows.map(({ key }) => key);
  await sql`
    update sign_in_attempt set attempts = greatest(attempts - 1, 0)
    where key in (select key from sign_in_attempt where key in ${sql(keys)} order by key for update)`;
}

/** Whether somebody has signed in to the account from there before. */
async function isKnownAddress(sql: Sql, { email, address }: SignIn): Promise<boolean> {
  const rows = await sql`
    select 1 from sign_in_address known join app_user person on person.id = known.user_id
    where lower(person.email) = lower(${email}) and known.address = ${addressGroup(address)}`;
  return rows.length > 0;
}

/** Addresses are remembered for so long after the last sign-in from there. */
const addressKeptMs = 180 * dayMs;

/** A sign-in that succeeded does not count as a failure, and its address is one of the account's from now on. */
export async function signInSucceeded(sql: Sql, userId: string, signIn: SignIn, now: Date): Promise<void> {
  const { all, account } = signInWindows(signIn);
  await uncount(sql, [...all, account]);
  if (signIn.address === unknownAddress) return;
  await sql`
    insert into sign_in_address as known (user_id, address, last_at)
    values (${userId}, ${addressGroup(signIn.address)}, ${now})
    on conflict (user_id, address) do update set last_at = excluded.last_at
    where known.last_at < ${new Date(now.getTime() - dayMs)}`;
}

/** Removes what no attempt is judged by any more. */
export async function purgeSignIns(sql: Sql, now: Date): Promise<void> {
  await purgeBefore(sql, { table: "sign_in_attempt", column: "window_ends_at" }, now);
  await purgeBefore(sql, { table: "sign_in_address", column: "last_at" }, new Date(now.getTime() - addressKeptMs));
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

/** Of requests that came without a socket that we know of. */
const unknownAddress = "direct";

/**
 * The caller's address: as our own gateway saw it, or by the socket and the proxies that are trusted.
 * A header that anybody can write gives nobody further tries.
 */
export function believedAddress(internalSecret: string, proxies: TrustedProxies): AddressOf {
  return (request) => {
    const shown = request.headers.get(gatewayHeader);
    const forwardedFor = request.headers.get("x-forwarded-for");
    if (shown && equalSecrets(shown, internalSecret)) return forwardedFor ?? unknownAddress;
    const peer = peerOf(request);
    if (peer === undefined) return unknownAddress;
    return clientAddress({ peer, forwardedFor, forwarded: request.headers.get("forwarded") }, proxies);
  };
}
