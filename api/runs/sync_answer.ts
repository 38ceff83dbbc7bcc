/**
 * Answers of requests that wait for their run. Behind a gateway nobody waits here: the gateway is handed a
 * grant, waits by itself, and asks for the answer at `/internal/runs/{run_id}/answer`.
 */

import { type Static, Type } from "@sinclair/typebox";
import type { Bus } from "#bus/bus.ts";
import { errorCatalogue } from "#contracts/errors.ts";
import { RunAnswerRequest, type WaitGrant, waitGrantType } from "#contracts/internal_runs.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { isTerminal } from "#contracts/run_event.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { validatorFor } from "#http/validation.ts";
import type { Sql } from "#store/sql.ts";
import { tokenHeaders } from "./public_start.ts";
import { abandonRun } from "./run_abandonment.ts";
import { type Run, readRun } from "./run_reader.ts";
import { lookUntil } from "./run_wait.ts";
import { type GatewayKnowledge, isFromGateway } from "./through_gateway.ts";

const DueAnswer = named(
  "DueAnswer",
  Type.Object({
    app_id: Type.String({ format: "uuid" }),
    /** `run`: the run, when it rests; `invocation`: its output, likewise; `canceled`: the run, when it ends. */
    form: oneOf(["run", "invocation", "canceled"]),
    /** When the wait is over, in milliseconds since the epoch. */
    due_ms: Type.Integer(),
    /** Of a run that was started without a key. */
    run_token: Type.Optional(Type.String()),
    cancel_on_disconnect: Type.Optional(Type.Boolean()),
  }),
);
type DueAnswer = Static<typeof DueAnswer>;
export type AnswerForm = DueAnswer["form"];
const dueAnswer = validatorFor(DueAnswer);

export interface AnswerDeps extends GatewayKnowledge {
  sql: Sql;
  bus: Bus;
  now(): Date;
}

export interface Wait {
  appId: string;
  runId: string;
  form: AnswerForm;
  waitMs: number;
  /** Nothing that is waited for has happened up to this event; undefined where that has to be looked up. */
  after: number | undefined;
  /** Of a run that was started without a key: told with the answer. */
  run_token?: string;
  /** Cancel the run when the client goes away while it waits. */
  cancelOnDisconnect?: boolean;
}

/** The answer when the run is as far, at the latest after `waitMs`; behind a gateway the grant to wait for it. */
export async function answerWhenDue(deps: AnswerDeps, request: Request, wait: Wait): Promise<Response> {
  const { appId, runId, form, waitMs, after, run_token, cancelOnDisconnect } = wait;
  const due: DueAnswer = {
    app_id: appId,
    form,
    due_ms: deps.now().getTime() + waitMs,
    ...(run_token !== undefined && { run_token }),
    ...(cancelOnDisconnect && { cancel_on_disconnect: true }),
  };
  if (waitMs === 0 || !isFromGateway(request, deps)) {
    const run = await waitForRun(deps, wait, request.signal);
    if (cancelOnDisconnect && request.signal.aborted) await abandonRun(deps, runId);
    return answerFor(run, due);
  }
  if (after !== undefined) return grant(due, runId, after, waitMs);
  const run = await readRun(deps.sql, appId, runId);
  return isDue(run, form) ? answerFor(run, due) : grant(due, runId, run.last_event_id, waitMs);
}

export function runAnswerRoute({
  sql,
  now,
  guard,
}: Pick<AnswerDeps, "sql" | "now"> & { guard: Guard<undefined> }): Route {
  return route({
    method: "POST",
    path: "/internal/runs/{run_id}/answer",
    summary: "The answer of a request that waited for a run, or another grant to wait",
    guard,
    body: named("RunAnswerRequest", RunAnswerRequest),
    reply: { status: 200, body: named("DueAnswered", Type.Unknown()) },
    handle: async ({ params, body }) => {
      const due = dueAnswer.parse(body.answer);
      const run = await readRun(sql, due.app_id, params.run_id);
      const leftMs = due.due_ms - now().getTime();
      if (body.is_late || leftMs <= 0 || isDue(run, due.form)) return answerFor(run, due);
      return grant(due, run.id, run.last_event_id, leftMs);
    },
  });
}

function grant(due: DueAnswer, runId: string, after: number, waitMs: number): Response {
  const until = due.form === "canceled" ? "end" : "rest";
  const cancel = due.cancel_on_disconnect ? { cancel_on_disconnect: true } : {};
  const granted: WaitGrant = { run_id: runId, after, until, wait_ms: waitMs, answer: due, ...cancel };
  return new Response(JSON.stringify(granted), { headers: { "content-type": waitGrantType, ...tokenHeaders(due) } });
}

/** Over, or, unless a cancel waits for the end, it goes no further without an answer. */
function isDue(run: Run, form: AnswerForm): boolean {
  return isTerminal(run.status) || (form !== "canceled" && run.status === "awaiting_input");
}

/** The header of a run's token goes with every form: an output that is answered bare has no other place for it. */
function answerFor(run: Run, due: Pick<DueAnswer, "form" | "run_token">): Response {
  const headers = tokenHeaders(due);
  const token = due.run_token === undefined ? {} : { run_token: due.run_token };
  if (due.form === "canceled") return Response.json({ data: run });
  if (due.form === "run") {
    return Response.json({ data: { ...run, ...token } }, { status: isTerminal(run.status) ? 200 : 202, headers });
  }
  if (run.status === "succeeded") return Response.json(run.output ?? {}, { headers });
  if (run.status === "failed") return failed(run.error?.message ?? "The run failed", headers);
  if (run.status === "canceled") return failed("The run was canceled", headers);
  return Response.json({ data: { ...run, ...token } }, { status: 202, headers });
}

/** The envelope of a failure that is the workflow's own, with what it says. */
function failed(message: string, headers: Record<string, string>): Response {
  const { status, message: text } = errorCatalogue.internal_error;
  const error = { code: "internal_error", message: text, details: { run: message } };
  return Response.json({ error }, { status, headers });
}

/** The run as soon as it is due, at the latest after `waitMs`. */
function waitForRun({ sql, bus }: AnswerDeps, { appId, runId, form, waitMs }: Wait, signal: AbortSignal): Promise<Run> {
  const look = () => readRun(sql, appId, runId);
  return lookUntil(bus, { runId, waitMs, signal, look, isEnough: (run) => isDue(run, form) });
}
