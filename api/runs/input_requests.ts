/**
 * Answers to what a run asks: approvals and feedback. All answers of one call are taken or none; of
 * two that race for one request the first wins, and the same answer once more is no error.
 */

import { isDeepStrictEqual } from "node:util";
import { type Static, Type } from "@sinclair/typebox";
import type { CalledApp } from "#apps/hosted_app.ts";
import { ApiError, type ErrorDetails } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type InputAudience, inputDecisions, runLimits } from "#contracts/run_event.ts";
import type { SchemaNode } from "#contracts/workflow.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { type AnySql, json } from "#store/sql.ts";
import { schemaProblems } from "#workflows/schema_node.ts";
import { tellHolder } from "./run_news.ts";
import { unparkRuns } from "./run_queue.ts";
import { Run, readRun } from "./run_reader.ts";
import type { RunRouteDeps } from "./runs.ts";

const Answer = named(
  "InputAnswer",
  Type.Object(
    {
      input_request_id: Type.String({ format: "uuid" }),
      decision: oneOf(inputDecisions),
      params: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      feedback: Type.Optional(Type.Unknown()),
      comment: Type.Optional(Type.String({ maxLength: 10_000 })),
      responded_by: Type.Optional(Type.String({ maxLength: 200 })),
    },
    { additionalProperties: false },
  ),
  {
    input_request_id: "what is answered",
    decision: "approve or reject an approval; respond to a request for feedback",
    params: "params with other values than proposed",
    feedback: "what was asked for",
    comment: "for the record",
    responded_by: "who answers, in your own words",
  },
);
type Answer = Static<typeof Answer>;

interface AskedRow {
  id: string;
  type: "approval_request" | "feedback_request";
  status: "pending" | "resolved" | "expired" | "canceled";
  audience: InputAudience;
  params: Record<string, unknown>;
  editable_params: string[];
  params_schema: SchemaNode | null;
  response_schema: SchemaNode | null;
  response: Omit<Answer, "input_request_id"> | null;
}

export function inputRequestRoutes({ sql, bus, now, hostedApp }: RunRouteDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/runs/{run_id}/resume",
      summary: "Answer input requests of a run; it goes on as soon as nothing that blocks it is pending",
      guard: hostedApp.responds,
      body: named(
        "InputAnswers",
        Type.Object({ responses: Type.Array(Answer, { minItems: 1, maxItems: 100 }) }, { additionalProperties: false }),
        {
          responses: "answers to one or more of what the run waits for",
        },
      ),
      reply: { status: 200, body: dataOf(Run) },
      errors: ["forbidden"],
      examples: {
        approved: {
          params: { run_id: "{{waiting_run_id}}" },
          body: { responses: [{ input_request_id: "{{input_request_id}}", decision: "approve" }] },
        },
      },
      handle: async ({ principal: app, params, body }) => {
        await readRun(sql, app.id, params.run_id);
        await sql.begin((transaction) =>
          answer(transaction, { runId: params.run_id, by: app.by }, body.responses, now()),
        );
        tellHolder(bus, { run_id: params.run_id, is: "answered" });
        return { data: await readRun(sql, app.id, params.run_id) };
      },
    }),
  ];
}

/**
 * Under the run's row lock: answers of one run follow each other. The requests are locked too, or one
 * could expire between the look and the answer. @throws ApiError bad_request with details by response
 */
async function answer(
  sql: AnySql,
  { runId, by }: { runId: string; by: CalledApp["by"] },
  answers: readonly Answer[],
  now: Date,
): Promise<void> {
  await sql`select 1 from run where id = ${runId} for update`;
  const asked = await sql<AskedRow[]>`
    select id, type, status, audience, params, editable_params, params_schema, response_schema, response
    from input_request where run_id = ${runId}
    order by id for update`;
  if (by !== "key") requireForCaller(asked, answers);
  const details: Record<string, string> = {};
  for (const [index, given] of answers.entries()) {
    const at = `responses.${index}`;
    const request = asked.find(({ id }) => id === given.input_request_id);
    Object.assign(
      details,
      request
        ? problemsOf(request, given, at)
        : { [`${at}.input_request_id`]: "Expected an input request of this run" },
    );
    if (answers.findIndex(({ input_request_id }) => input_request_id === given.input_request_id) < index) {
      details[`${at}.input_request_id`] = "Expected each input request once";
    }
  }
  if (Object.keys(details).length > 0) throw new ApiError("bad_request", { details });
  requireSizes(asked, answers);
  for (const { input_request_id, ...response } of answers) {
    await sql`
      update input_request set status = 'resolved', response = ${json(sql, response)}, resolved_at = ${now}
      where id = ${input_request_id} and status = 'pending'`;
  }
  await unparkRuns(sql, [runId]);
}

/** Without a key: requests that are meant for whoever started the run, and in nobody's name. @throws ApiError forbidden */
function requireForCaller(asked: readonly AskedRow[], answers: readonly Answer[]): void {
  const details: Record<string, string> = {};
  for (const [index, { input_request_id, responded_by }] of answers.entries()) {
    const request = asked.find(({ id }) => id === input_request_id);
    if (request?.audience === "staff") {
      details[`responses.${index}.input_request_id`] = "Expected an access key: this is for the app's staff to answer";
    }
    if (responded_by !== undefined)
      details[`responses.${index}.responded_by`] = "Expected an access key with responded_by";
  }
  if (Object.keys(details).length > 0) throw new ApiError("forbidden", { details });
}

/** An answer becomes its node's output: what an event cannot hold would fail the run. @throws ApiError payload_too_large */
function requireSizes(asked: readonly AskedRow[], answers: readonly Answer[]): void {
  for (const [index, { input_request_id, params, ...rest }] of answers.entries()) {
    const proposed = asked.find(({ id }) => id === input_request_id)?.params;
    const bytes = Buffer.byteLength(JSON.stringify({ ...rest, params: { ...proposed, ...params } }));
    if (bytes <= runLimits.eventBytesMax) continue;
    const details = { [`responses.${index}`]: `Expected at most ${runLimits.eventBytesMax} bytes` };
    throw new ApiError("payload_too_large", { details });
  }
}

function problemsOf(request: AskedRow, { input_request_id: _, ...response }: Answer, at: string): ErrorDetails {
  if (request.status === "resolved" && isDeepStrictEqual(request.response, response)) return {};
  if (request.status !== "pending") {
    return { [`${at}.input_request_id`]: `Expected a pending input request: it is ${request.status}` };
  }
  const isApproval = request.type === "approval_request";
  if (isApproval === (response.decision === "respond")) {
    return { [`${at}.decision`]: `Expected ${isApproval ? "approve or reject" : "respond"}` };
  }
  if (!isApproval) return feedbackProblems(request, response, at);
  if (response.feedback !== undefined) return { [`${at}.feedback`]: "Expected no feedback on an approval request" };
  return paramProblems(request, response.params ?? {}, at);
}

function paramProblems(request: AskedRow, params: Record<string, unknown>, at: string): ErrorDetails {
  const fixed = Object.keys(params).filter((name) => !request.editable_params.includes(name));
  if (fixed.length > 0) {
    return Object.fromEntries(fixed.map((name) => [name, `Expected an editable param: ${name} cannot be changed`]));
  }
  if (!request.params_schema) return {};
  return schemaProblems(request.params_schema, { ...request.params, ...params }, `${at}.params`);
}

function feedbackProblems(request: AskedRow, response: Omit<Answer, "input_request_id">, at: string): ErrorDetails {
  if (response.params !== undefined) return { [`${at}.params`]: "Expected no params on a feedback request" };
  if (response.feedback === undefined) return { [`${at}.feedback`]: "Expected a value: the field is required" };
  return request.response_schema ? schemaProblems(request.response_schema, response.feedback, `${at}.feedback`) : {};
}
