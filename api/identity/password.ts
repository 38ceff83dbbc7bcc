/**
 * Password hashes: argon2id with the parameters that OWASP recommends (19 MiB, 2 passes, 1 lane).
 * A few are computed at a time, whatever the crowd: each takes a core for tens of milliseconds.
 */
import { hash, verify } from "@node-rs/argon2";
import { ApiError } from "#contracts/errors.ts";

const parameters = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const encodedParameters = "$argon2id$v=19$m=19456,t=2,p=1$";
const concurrencyMax = 3;
/** Whoever would wait longer than about a minute is told to come back. */
const waitingMax = 1000;

let running = 0;
const waiting: (() => void)[] = [];

/** @throws ApiError unavailable when too many wait */
async function withSlot<T>(work: () => Promise<T>): Promise<T> {
  if (running >= concurrencyMax) {
    if (waiting.length >= waitingMax) throw new ApiError("unavailable", { retryAfterS: 5 });
    await new Promise<void>((resolve) => waiting.push(resolve)); // The slot is handed over, not freed.
  } else {
    running += 1;
  }
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  }
}

/** An encoded hash that carries its own salt and parameters. */
export function hashPassword(password: string): Promise<string> {
  return withSlot(() => hash(password, parameters));
}

let hashOfNobody: Promise<string> | undefined;

/**
 * Whether `password` is the one behind `passwordHash`. Without a hash the same work is done and
 * the answer is no, so that its duration does not tell who has an account.
 */
export async function verifyPassword(passwordHash: string | null | undefined, password: string): Promise<boolean> {
  hashOfNobody ??= hashPassword(crypto.randomUUID());
  const expected = passwordHash ?? (await hashOfNobody);
  const matches = await withSlot(() => verify(expected, password));
  return matches && passwordHash !== null && passwordHash !== undefined;
}

/** Whether a hash was made with other parameters than today's, so that a sign-in should renew it. */
export function needsRehash(passwordHash: string): boolean {
  return !passwordHash.startsWith(encodedParameters);
}
