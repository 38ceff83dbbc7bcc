/**
 * Creates runs. One transaction holds everything that must not come apart: the key of a repeated
 * request, the limits of the app, the run, its first event, its callbacks and the job that starts it.
 */
import { createHash } from "node:crypto";
import type { CalledApp } from "#apps/hosted_app.ts";
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { type RunEvent, runLimits } from "#contracts/run_event.ts";
import { type AnySql, json, oneRow, type Sql } from "#store/sql.ts";
import { requireUnderLimit } from "#usage/limits.ts";
import { schemaProblems } from "#workflows/schema_node.ts";
import { type CanceledRuns, cancelRuns } from "./run_cancel.ts";
import { publishCanceled, publishEvents } from "./run_news.ts";
import { runJob } from "./run_queue.ts";
import type { Run } from "./run_reader.ts";

export interface NewRun {
  /** `run`: the Runs API; `invocation`: the app's root address. */
  origin: "run" | "invocation";
  input: Record<string, unknown>;
  sessionId?: string;
  userId?: string;
  metadata?: Record<string, unknown>;
  timeoutS?: number;
  idempotencyKey?: string;
  /** Who asked, as the request's `traceparent` says; the run's trace links to it. */
  callerTrace?: { traceId: string; spanId: string };
  callbacks?: readonly { url: string; tokenEncrypted: Uint8Array | null; metadata: Record<string, unknown> | null }[];
}

export interface RunCreationDeps {
  sql: Sql;
  bus: Bus;
  now(): Date;
}

/**
 * Creates the run, or answers the id of the one that the same key and body created before.
 * @throws ApiError bad_request for an input that does not fit the workflow's, conflict for a key with
 * another body or a session that is busy, too_many_requests for a full queue, usage_limit, payload_too_large
 */
export async function createRun(
  deps: RunCreationDeps,
  app: CalledApp,
  run: NewRun,
): Promise<{ id: string; created: Run | undefined; firstEvent: RunEvent | undefined }> {
  requireInput(app, run.input);
  const hash = run.idempotencyKey === undefined ? undefined : hashOf(run);
  const { id, event, canceled } = standsAlone(app, run)
    ? await insertAlone(deps, app, run)
    : await deps.sql.begin(async (transaction) => {
        // Creations with one key, or of one session, follow each other; those of one app do where its queue is nearly full.
        if (run.idempotencyKey !== undefined) await lock(transaction, `${app.id}:key:${run.idempotencyKey}`);
        if (run.sessionId !== undefined) await lock(transaction, `${app.id}:session:${run.sessionId}`);
        if (run.idempotencyKey !== undefined) {
          const before = await findRepeated(transaction, app, run.idempotencyKey, deps.now());
          if (before && before.idempotency_hash !== hash) {
            throw new ApiError("conflict", { details: { "Idempotency-Key": "Expected a new key for another body" } });
          }
          if (before) return { id: before.id, event: undefined, canceled: undefined };
        }
        await requireUsage(transaction, app, deps.now());
        await requirePlace(transaction, app);
        const followed = await followSession(transaction, app, run, deps.now());
        const first = await insertRun(transaction, app, run, hash, deps.now());
        return { id: first.run_id, event: first, canceled: followed };
      });
  if (event) publishEvents(deps.bus, [event]);
  if (canceled) publishCanceled(deps.bus, canceled);
  return { id, created: event && runAtFirst(app, run, event), firstEvent: event };
}

/** The run as it is read in the moment of its creation. */
function runAtFirst(app: CalledApp, run: NewRun, event: RunEvent): Run {
  if (event.type !== "run.created") throw new Error(`Expected a run to begin with run.created, got ${event.type}`);
  return {
    id: event.run_id,
    status: "pending",
    app_id: app.id,
    workflow_version_id: app.workflowVersionId,
    session_id: run.sessionId ?? null,
    user_id: run.userId ?? null,
    trace_id: event.data.trace_id,
    input: run.input,
    output: null,
    error: null,
    usage: null,
    metadata: run.metadata ?? {},
    input_requests: [],
    last_event_id: event.id,
    created_at: new Date(event.created_at),
    started_at: null,
    ended_at: null,
  };
}

/** Nothing else is to hold of it than that it is there: one statement makes it, without a transaction around it. */
function standsAlone(app: CalledApp, { idempotencyKey, sessionId, callbacks }: NewRun): boolean {
  const isRoomy = app.policy.max_queued_runs > roomyPlaces && (roomyUntilMs.get(app.id) ?? 0) > performance.now();
  return isRoomy && idempotencyKey === undefined && sessionId === undefined && (callbacks ?? []).length === 0;
}

async function insertAlone({ sql, now }: RunCreationDeps, app: CalledApp, run: NewRun) {
  await requireUsage(sql, app, now());
  const event = await insertRun(sql, app, run, undefined, now());
  return { id: event.run_id, event, canceled: undefined };
}

async function requireUsage(sql: AnySql, app: CalledApp, now: Date): Promise<void> {
  if (app.hasLimits) await requireUnderLimit(sql, { organizationId: app.organizationId, subjectId: app.id }, now);
}

/** The first event tells the input, and the input node hands it on: it may be as large as an event. */
const inputBytesMax = runLimits.eventBytesMax;

function requireInput(app: CalledApp, input: Record<string, unknown>): void {
  if (Buffer.byteLength(JSON.stringify(input)) > inputBytesMax) {
    throw new ApiError("payload_too_large", { details: { input: `Expected at most ${inputBytesMax} bytes` } });
  }
  const schema = app.definition.input;
  if (!schema) return;
  const details = schemaProblems(schema, input, "input");
  if (Object.keys(details).length > 0) throw new ApiError("bad_request", { details });
}

/** What the client asked for, apart from the key: equal for equal requests, whatever their fields' order. */
function hashOf(run: NewRun): string {
  const { idempotencyKey: _key, callerTrace: _trace, callbacks, ...rest } = run;
  const asked = { ...rest, callbacks: callbacks?.map(({ url, metadata }) => ({ url, metadata })) };
  return createHash("sha256")
    .update(JSON.stringify(sorted(asked)))
    .digest("hex");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, item]) => [name, sorted(item)]));
}

async function findRepeated(sql: AnySql, app: CalledApp, key: string, now: Date) {
  const oldest = new Date(now.getTime() - runLimits.idempotencyKeyHours * 3_600_000);
  await sql`
    update run set idempotency_key = null, idempotency_hash = null
    where app_id = ${app.id} and idempotency_key = ${key} and created_at < ${oldest}`;
  const [row] = await sql<{ id: string; idempotency_hash: string }[]>`
    select id, idempotency_hash from run where app_id = ${app.id} and idempotency_key = ${key}`;
  return row;
}

/** Until the end of the transaction. */
async function lock(sql: AnySql, name: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`;
}

/** Creations that may be under way at once, in all processes: with fewer places left they are counted one by one. */
const creationsAtOnce = 200;

/** An app that has this many places left cannot be full before `roomyMs` have gone by, whoever creates runs. */
const roomyPlaces = 10 * creationsAtOnce;
const roomyMs = 250;
const roomyAppsMax = 1000;
/** Apps that were counted not long ago, with when they are to be counted again. */
const roomyUntilMs = new Map<string, number>();

async function requirePlace(sql: AnySql, app: CalledApp): Promise<void> {
  const free = await freePlaces(sql, app);
  if (free > roomyPlaces) {
    roomyUntilMs.set(app.id, performance.now() + roomyMs);
    if (roomyUntilMs.size > roomyAppsMax) roomyUntilMs.delete(roomyUntilMs.keys().next().value ?? "");
  }
  if (free > creationsAtOnce) return;
  // A lock for everybody would let one commit after the other happen, each with its own wait for the disk.
  await lock(sql, `${app.id}:create`);
  if ((await freePlaces(sql, app)) > 0) return;
  const { max_queued_runs: queued, max_concurrent_runs: concurrent } = app.policy;
  const expected = queued === 0 ? `${concurrent} runs under way, as none may wait` : `${queued} queued runs`;
  throw new ApiError("too_many_requests", { details: { app: `Expected fewer than ${expected}` }, retryAfterS: 1 });
}

/** In the app's queue; where nothing may wait, among its concurrent runs. */
async function freePlaces(sql: AnySql, app: CalledApp): Promise<number> {
  const { max_queued_runs, max_concurrent_runs } = app.policy;
  const taken = max_queued_runs > 0 ? sql`status = 'pending'` : sql`status in ('pending', 'running')`;
  const counted = await sql<{ count: number }[]>`
    select count(*)::integer as count from run where app_id = ${app.id} and ${taken} and wake_at is null`;
  return (max_queued_runs > 0 ? max_queued_runs : max_concurrent_runs) - oneRow(counted).count;
}

/** What happens to the session's runs that this one follows. */
async function followSession(sql: AnySql, app: CalledApp, run: NewRun, now: Date): Promise<CanceledRuns | undefined> {
  if (run.sessionId === undefined || app.policy.session_policy === "enqueue") return undefined;
  const ofSession = sql`app_id = ${app.id} and session_id = ${run.sessionId}`;
  // Who may not cancel does not cancel by starting either: the session's name may be somebody else's.
  const mayCancel = app.by === "key" || app.publicMay.includes("cancel");
  if (app.policy.session_policy === "cancel_previous" && mayCancel) {
    return cancelRuns(sql, ofSession, { reason: "A newer run of the session began" }, now);
  }
  const busy = await sql`
    select 1 from run where ${ofSession} and status in ('pending', 'running', 'awaiting_input') limit 1`;
  if (busy.length === 0) return undefined;
  throw new ApiError("conflict", { details: { session_id: "Expected a session without a run under way" } });
}

async function insertRun(
  sql: AnySql,
  app: CalledApp,
  run: NewRun,
  hash: string | undefined,
  now: Date,
): Promise<RunEvent> {
  const id = crypto.randomUUID();
  const traceId = crypto.randomUUID();
  const event: RunEvent = {
    id: 1,
    type: "run.created",
    run_id: id,
    created_at: now.toISOString(),
    data: {
      id,
      status: "pending",
      input: run.input,
      app_id: app.id,
      workflow_version_id: app.workflowVersionId,
      ...(run.sessionId !== undefined && { session_id: run.sessionId }),
      trace_id: traceId,
    },
  };
  const inserted = sql`
    with created as (
      insert into run
        (id, organization_id, project_id, app_id, workflow_version_id, status, origin, input, metadata, session_id, user_id,
         trace_id, caller_span, idempotency_key, idempotency_hash, timeout_s, created_at, last_event_id)
      values
        (${id}, ${app.organizationId}, ${app.projectId}, ${app.id}, ${app.workflowVersionId}, 'pending', ${run.origin},
         ${json(sql, run.input)}, ${json(sql, run.metadata ?? {})}, ${run.sessionId ?? null}, ${run.userId ?? null},
         ${traceId}, ${run.callerTrace ? `${run.callerTrace.traceId}-${run.callerTrace.spanId}` : null},
         ${run.idempotencyKey ?? null}, ${hash ?? null},
         ${Math.min(run.timeoutS ?? app.policy.run_timeout_s, app.policy.run_timeout_s)}, ${now}, 1)
      returning id, generation),
    logged as (
      insert into run_event (run_id, id, type, body, created_at)
      values (${id}, 1, ${event.type}, ${JSON.stringify(event)}, ${now}))
    select ${runJob(sql)} from created`;
  const callbacks = (run.callbacks ?? []).map((callback, position) => {
    const metadata = callback.metadata === null ? null : json(sql, callback.metadata);
    return sql`
      insert into callback (run_id, position, url, token_encrypted, metadata)
      values (${id}, ${position}, ${callback.url}, ${callback.tokenEncrypted}, ${metadata})`;
  });
  // One connection, one after the other, but without a wait for each answer.
  await Promise.all([inserted, ...callbacks]);
  return event;
}
