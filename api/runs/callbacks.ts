/**
 * Callbacks of asynchronous invocations: one POST to each address when the run is over. At most one
 * attempt, also across a crash: the row is claimed before anything is sent.
 */
import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { type RunError, type RunStatus, runLimits } from "#contracts/run_event.ts";
import type { Logger } from "#http/logger.ts";
import { AddressRefusedError, checkPublicUrl, type Resolve } from "#outbound/address_guard.ts";
import type { GuardedHttp } from "#outbound/guarded_http.ts";
import type { Encryption } from "#store/encryption.ts";
import type { Sql } from "#store/sql.ts";
import type { NewRun } from "./run_creation.ts";

export const Callback = Type.Object(
  {
    url: Type.String({ minLength: 1, maxLength: 4096 }),
    auth: Type.Optional(
      Type.Object(
        {
          type: Type.Literal("bearer"),
          token: Type.String({ minLength: 1, maxLength: 8192, pattern: "^[\\x21-\\x7e]+$" }),
        },
        { additionalProperties: false },
      ),
    ),
    metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  { additionalProperties: false },
);
export type Callback = Static<typeof Callback>;
export const Callbacks = Type.Array(Callback, { maxItems: runLimits.callbacksMax });

export interface CallbackRules {
  encryption: Encryption;
  allowPrivateAddresses: boolean;
  resolve?: Resolve;
}

/** Checks the addresses and seals the tokens. @throws ApiError bad_request naming each refused address */
export async function prepareCallbacks(
  callbacks: readonly Callback[],
  { encryption, allowPrivateAddresses, resolve }: CallbackRules,
): Promise<NonNullable<NewRun["callbacks"]>> {
  const rules = { protocols: ["https:"], allowPrivateAddresses, ...(resolve && { resolve }) };
  const problems = await Promise.all(
    callbacks.map(({ url }) =>
      checkPublicUrl(url, rules).then(
        () => undefined,
        (error: unknown) => {
          if (error instanceof AddressRefusedError) return error.message;
          throw error;
        },
      ),
    ),
  );
  const details = Object.fromEntries(
    problems.flatMap((problem, i) => (problem ? [[`callbacks.${i}.url`, problem]] : [])),
  );
  if (Object.keys(details).length > 0) throw new ApiError("bad_request", { details });
  return callbacks.map(({ url, auth, metadata }) => ({
    url,
    tokenEncrypted: auth ? encryption.seal(auth.token, sealedFor(url)) : null,
    metadata: metadata ?? null,
  }));
}

/** A token opens for its own address only. */
const sealedFor = (url: string) => `callback:${url}`;

export const userAgent = "Frontdesk-Callbacks/1";
const deliveryTimeoutMs = 30_000;
const responseBytesMax = 64 * 1024;

export interface CallbackDeliveryDeps {
  sql: Sql;
  http: GuardedHttp;
  encryption: Encryption;
  logger: Logger;
  now(): Date;
}

interface ClaimedCallback {
  position: number;
  url: string;
  token_encrypted: Buffer | null;
  metadata: Record<string, unknown> | null;
}

/** Sends the run's callbacks that nobody has tried yet, side by side. */
export async function deliverCallbacks(deps: CallbackDeliveryDeps, runId: string): Promise<void> {
  const { sql, now } = deps;
  const [run] = await sql<{ status: RunStatus; output: object | null; error: RunError | null; ended_at: Date }[]>`
    select status, output, error, ended_at from run where id = ${runId} and ended_at is not null`;
  if (!run) return;
  const claimed = await sql<ClaimedCallback[]>`
    update callback set attempted_at = ${now()} where run_id = ${runId} and attempted_at is null
    returning position, url, token_encrypted, metadata`;
  const output = run.status === "succeeded" ? run.output : run.error && { error: run.error };
  const result = {
    id: runId,
    status: run.status === "succeeded" ? "succeeded" : "failed",
    timestamp: run.ended_at.toISOString(),
    ...(output && { output }),
  };
  await Promise.all(
    claimed.map(async (callback) => {
      const outcome = await deliver(deps, callback, result);
      await sql`update callback set outcome = ${outcome} where run_id = ${runId} and position = ${callback.position}`;
    }),
  );
}

async function deliver(
  { http, encryption, logger }: CallbackDeliveryDeps,
  { url, token_encrypted, metadata }: ClaimedCallback,
  result: object,
): Promise<string> {
  try {
    const token = token_encrypted && encryption.open(token_encrypted, sealedFor(url));
    const { status } = await http.send(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": userAgent,
        ...(token && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ ...result, ...(metadata && { metadata }) }),
      signal: AbortSignal.timeout(deliveryTimeoutMs),
      responseBytesMax,
    });
    return `sent: ${status}`;
  } catch (err) {
    logger.info({ err }, "callback not delivered");
    return err instanceof AddressRefusedError ? "refused" : "failed";
  }
}
