/**
 * Sends callbacks: one POST to each address when the run is over. At most one attempt, also across a
 * crash: the row is claimed, and the claim committed, before anything is sent.
 *
 * A job ends as soon as its requests are on their way, so that addresses which do not answer hold up no
 * other job.
 */

import type { RunError, RunStatus } from "#contracts/run_event.ts";
import type { Logger } from "#http/logger.ts";
import { AddressRefusedError } from "#outbound/address_guard.ts";
import type { GuardedHttp } from "#outbound/guarded_http.ts";
import { tracedHttp, traceparentOf } from "#outbound/traced_http.ts";
import type { Encryption } from "#store/encryption.ts";
import type { Sql } from "#store/sql.ts";
import { sealedFor } from "./callbacks.ts";
import { deliverCallbacksTask } from "./run_queue.ts";
import { rootSpanIdOf } from "./run_spans.ts";

const userAgent = "Frontdesk-Callbacks/1";
const deliveryTimeoutMs = 30_000;
const responseBytesMax = 64 * 1024;
/** Requests on their way at once, of one worker. With more the job comes back after `fullDelayS`. */
const sendingMaxDefault = 256;
const fullDelayS = 1;
/** A job is held for the moment of its claim; one held longer belongs to a worker that died. */
const heldMsMax = 10_000;

export interface CallbackDeliveryDeps {
  sql: Sql;
  http: GuardedHttp;
  encryption: Encryption;
  logger: Logger;
  now(): Date;
  sendingMax?: number;
}

export interface CallbackDelivery {
  /** Claims the run's callbacks that nobody has tried yet and begins to send them, side by side. */
  deliver(runId: string): Promise<void>;
  /** Waits for what is on its way; every request ends within `deliveryTimeoutMs`. */
  close(): Promise<void>;
}

interface ClaimedCallback {
  position: number;
  url: string;
  token_encrypted: Buffer | null;
  metadata: Record<string, unknown> | null;
}

export function createCallbackDelivery(deps: CallbackDeliveryDeps): CallbackDelivery {
  const { sql, logger, now, sendingMax = sendingMaxDefault } = deps;
  const sending = new Set<Promise<void>>();

  async function send(runId: string, callback: ClaimedCallback, result: object, traceparent: string): Promise<void> {
    const outcome = await attempt({ ...deps, http: tracedHttp(deps.http, traceparent) }, callback, result);
    await sql`update callback set outcome = ${outcome} where run_id = ${runId} and position = ${callback.position}`;
  }

  return {
    async deliver(runId) {
      if (sending.size >= sendingMax) return addJob(sql, runId, fullDelayS);
      const [run] = await sql<EndedRun[]>`
        select status, output, error, ended_at, trace_id from run where id = ${runId} and ended_at is not null`;
      if (!run) return;
      const claimed = await sql<ClaimedCallback[]>`
        update callback set attempted_at = ${now()} where run_id = ${runId} and attempted_at is null
        returning position, url, token_encrypted, metadata`;
      const result = resultOf(runId, run);
      const traceparent = traceparentOf(run.trace_id, rootSpanIdOf(runId));
      for (const callback of claimed) {
        const sent: Promise<void> = send(runId, callback, result, traceparent)
          .catch((err: unknown) => logger.warn({ err }, "what became of a callback is not noted"))
          .finally(() => sending.delete(sent));
        sending.add(sent);
      }
    },
    async close() {
      await Promise.all(sending);
    },
  };
}

/** Adds the jobs again of workers that died between taking one and claiming its callbacks. */
export async function rescueCallbacks(sql: Sql, now: Date): Promise<void> {
  const heldBefore = new Date(now.getTime() - heldMsMax);
  const held = await sql<{ run_id: string }[]>`
    with held as materialized (
      select substr(key, length('callbacks:') + 1)::uuid as run_id from graphile_worker.jobs
      where task_identifier = ${deliverCallbacksTask} and locked_at < ${heldBefore} and key is not null)
    select run_id from held
    where exists (select 1 from callback where callback.run_id = held.run_id and attempted_at is null)`;
  await Promise.all(held.map(({ run_id }) => addJob(sql, run_id, 0)));
}

/** A job of this key that somebody holds stays with its holder; a new one takes over the key. */
async function addJob(sql: Sql, runId: string, delayS: number): Promise<void> {
  await sql`
    select graphile_worker.add_job(
      ${deliverCallbacksTask}, json_build_object('run_id', ${runId}::uuid), job_key := 'callbacks:' || ${runId}::uuid,
      run_at := now() + make_interval(secs => ${delayS}))`;
}

interface EndedRun {
  status: RunStatus;
  output: object | null;
  error: RunError | null;
  ended_at: Date;
  trace_id: string;
}

/** What every address of a run is told, in the interface document's order. Pure. */
function resultOf(runId: string, { status, output, error, ended_at }: EndedRun): object {
  const told = status === "succeeded" ? output : error && { error };
  return {
    id: runId,
    status: status === "succeeded" ? "succeeded" : "failed",
    timestamp: ended_at.toISOString(),
    ...(told && { output: told }),
  };
}

async function attempt(
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
