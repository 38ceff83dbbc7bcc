/**
 * An app as one function: `POST /` on its host. A body with `input`, `execution_mode` or `callbacks`
 * is the envelope, any other object is the workflow's input as it is. It answers the output, bare; or
 * 202 at once, with the result going to callbacks.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { runLimits } from "#contracts/run_event.ts";
import { type Route, route } from "#http/route.ts";
import { validatorFor } from "#http/validation.ts";
import { type CallbackRules, Callbacks, prepareCallbacks } from "./callbacks.ts";
import { callerOf, idempotencyKeyOf, requirePublicRights, tokenFor, tokenHeaders } from "./public_start.ts";
import { createRun } from "./run_creation.ts";
import { name, type RunRouteDeps } from "./runs.ts";
import { answerWhenDue } from "./sync_answer.ts";

const Envelope = Type.Object(
  {
    input: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    execution_mode: Type.Optional(oneOf(["sync", "async"])),
    callbacks: Type.Optional(Callbacks),
    session_id: Type.Optional(name("groups runs")),
    user_id: Type.Optional(name("the end user")),
    metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  { additionalProperties: false },
);
const envelope = validatorFor(Envelope);
const Invocation = named("Invocation", Type.Record(Type.String(), Type.Unknown()));
const Output = named("Output", Type.Record(Type.String(), Type.Unknown()));

export interface InvocationDeps extends RunRouteDeps {
  callbackRules: CallbackRules;
}

export function invocationRoutes(deps: InvocationDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/",
      waitsMs: deps.syncWaitMs,
      summary: "Invoke the app: its output, or 202 with callbacks later",
      guard: deps.hostedApp.starts,
      body: Invocation,
      bodyOptions: { bytesMax: runLimits.inputBytesMax + 64 * 1024 },
      reply: { status: 200, body: Output },
      errors: ["usage_limit", "forbidden", "not_found", "conflict", "too_many_requests"],
      otherReplies: { 202: "Accepted: the result goes to the callbacks, or the run waits for somebody" },
      examples: { later: { body: { input: { guest: "Ms Rossi" }, execution_mode: "async" } } },
      handle: async ({ principal: app, body, request }) => {
        const { input = {}, execution_mode, callbacks, session_id, user_id, metadata } = envelopeOf(body);
        if (callbacks !== undefined && execution_mode !== "async") {
          throw new ApiError("bad_request", { details: { callbacks: "Expected execution_mode async with callbacks" } });
        }
        requirePublicRights(app, { callbacks });
        const prepared = callbacks ? await prepareCallbacks(callbacks, deps.callbackRules) : undefined;
        const { id, created } = await createRun(deps, app, {
          origin: "invocation",
          input,
          ...(session_id !== undefined && { sessionId: session_id }),
          ...(user_id !== undefined && { userId: user_id }),
          ...(metadata !== undefined && { metadata }),
          ...(prepared && { callbacks: prepared }),
          ...idempotencyKeyOf(request, app),
          ...callerOf(request),
        });
        const token = tokenFor(deps, app, id);
        if (execution_mode === "async")
          return Response.json({ id, status: "accepted" }, { status: 202, headers: tokenHeaders(token) });
        return answerWhenDue(deps, request, {
          appId: app.id,
          runId: id,
          form: "invocation",
          waitMs: deps.syncWaitMs,
          after: created?.last_event_id,
          ...token,
        });
      },
    }),
  ];
}

function envelopeOf(body: Record<string, unknown>): Static<typeof Envelope> {
  const { input } = body;
  const isObject = input !== null && typeof input === "object" && !Array.isArray(input);
  const isEnvelope = "execution_mode" in body || "callbacks" in body || isObject;
  return isEnvelope ? envelope.parse(body) : { input: body };
}
