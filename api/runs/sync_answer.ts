/**
 * Answers of requests that wait for their run. Behind a gateway nobody waits here: the gateway is handed a
 * grant, waits by itself, and asks for the answer at `/internal/runs/{run_id}/answer`.
 */
import { type Static, Type } from "@sinclair/typebox";
import type { Bus } from "#bus/bus.ts";
import { errorCatalogue } from "#contracts/errors.ts";
import { RunAnswerRequest, runTopic, type WaitGrant, waitGrantType } from "#contracts/internal_runs.ts";
import { oneOf } from "#contracts/one_of.ts";
import { isTerminal } from "#contracts/run_event.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { validatorFor } from "#http/validation.ts";
import type { Sql } from "#store/sql.ts";
import { type Run, readRun } from "./run_reader.ts";
import { type GatewayKnowledge, isFromGateway } from "./through_gateway.ts";

const DueAnswer = Type.Object({
  app_id: Type.String({ format: "uuid" }),
  /** `run`: the run, when it rests; `invocation`: its output, likewise; `canceled`: the run, when it ends. */
  form: oneOf(["run", "invocation", "canceled"]),
  /** When the wait is over, in milliseconds since the epoch. */
  due_ms: Type.Integer(),
});
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
}

/** The answer when the run is as far, at the latest after `waitMs`; behind a gateway the grant to wait for it. */
export async function answerWhenDue(deps: AnswerDeps, request: Request, wait: Wait): Promise<Response> {
  const { appId, runId, form, waitMs, after } = wait;
  const due: DueAnswer = { app_id: appId, form, due_ms: deps.now().getTime() + waitMs };
  if (waitMs === 0 || !isFromGateway(request, deps)) {
    return answerFor(await waitForRun(deps, wait, request.signal), form);
  }
  if (after !== undefined) return grant(due, runId, after, waitMs);
  const run = await readRun(deps.sql, appId, runId);
  return isDue(run, form) ? answerFor(run, form) : grant(due, runId, run.last_event_id, waitMs);
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
    body: RunAnswerRequest,
    reply: { status: 200, body: Type.Unknown() },
    handle: async ({ params, body }) => {
      const due = dueAnswer.parse(body.answer);
      const run = await readRun(sql, due.app_id, params.run_id);
      const leftMs = due.due_ms - now().getTime();
      if (body.is_late || leftMs <= 0 || isDue(run, due.form)) return answerFor(run, due.form);
      return grant(due, run.id, run.last_event_id, leftMs);
    },
  });
}

function grant(due: DueAnswer, runId: string, after: number, waitMs: number): Response {
  const until = due.form === "canceled" ? "end" : "rest";
  const granted: WaitGrant = { run_id: runId, after, until, wait_ms: waitMs, answer: due };
  return new Response(JSON.stringify(granted), { headers: { "content-type": waitGrantType } });
}

/** Over, or, unless a cancel waits for the end, it goes no further without an answer. */
function isDue(run: Run, form: AnswerForm): boolean {
  return isTerminal(run.status) || (form !== "canceled" && run.status === "awaiting_input");
}

function answerFor(run: Run, form: AnswerForm): Response {
  if (form === "canceled") return Response.json({ data: run });
  if (form === "run") return Response.json({ data: run }, { status: isTerminal(run.status) ? 200 : 202 });
  if (run.status === "succeeded") return Response.json(run.output ?? {});
  if (run.status === "failed") return failed(run.error?.message ?? "The run failed");
  if (run.status === "canceled") return failed("The run was canceled");
  return Response.json({ data: run }, { status: 202 });
}

/** The envelope of a failure that is the workflow's own, with what it says. */
function failed(message: string): Response {
  const { status, message: text } = errorCatalogue.internal_error;
  return Response.json({ error: { code: "internal_error", message: text, details: { run: message } } }, { status });
}

/**
 * The run as soon as it is due, at the latest after `waitMs`. It listens before it looks, so that nothing
 * falls between; while the bus is away it looks again now and then.
 */
async function waitForRun({ sql, bus }: AnswerDeps, wait: Wait, signal: AbortSignal): Promise<Run> {
  const { appId, runId, form, waitMs } = wait;
  if (waitMs === 0) return readRun(sql, appId, runId);
  let heard: () => void = () => undefined;
  const untilMs = performance.now() + waitMs;
  const left = aborted(signal);
  const subscribed = bus.subscribe(runTopic(runId), () => heard()).catch(() => undefined);
  await Promise.race([subscribed, timeout(lookAgainMs)]);
  try {
    for (;;) {
      const news = new Promise<void>((resolve) => {
        heard = resolve;
      });
      const run = await readRun(sql, appId, runId);
      const leftMs = untilMs - performance.now();
      if (isDue(run, form) || leftMs <= 0 || signal.aborted) return run;
      await Promise.race([news, timeout(Math.min(leftMs, lookAgainMs)), left]);
    }
  } finally {
    void subscribed.then((unsubscribe) => unsubscribe?.()).catch(() => undefined);
  }
}

/** Messages over the bus may get lost. */
const lookAgainMs = 1000;

function timeout(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
