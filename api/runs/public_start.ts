/** A run that is started without a key: what its starter may ask for, and the token by which the run is the starter's. */
import type { CalledApp, HostRouteDeps } from "#apps/hosted_app.ts";
import { ApiError } from "#contracts/errors.ts";
import { runTokenHeader } from "#contracts/internal_runs.ts";
import { callerTraceOf } from "#outbound/traced_http.ts";

export interface RunTokenField {
  run_token?: string;
}

/** The token of a run that was just started without a key; nothing where a key started it. */
export function tokenFor(
  { hostedApp }: Pick<HostRouteDeps, "hostedApp">,
  app: CalledApp,
  runId: string,
): RunTokenField {
  return app.by === "anybody" ? { run_token: hostedApp.runTokens.issue(runId) } : {};
}

export function tokenHeaders({ run_token }: RunTokenField): Record<string, string> {
  return run_token === undefined ? {} : { [runTokenHeader]: run_token };
}

/** @throws ApiError forbidden for `on_disconnect: cancel` where only a key may cancel, and for callbacks */
export function requirePublicRights(app: CalledApp, asked: { on_disconnect?: string; callbacks?: unknown }): void {
  if (app.by === "key") return;
  if (asked.on_disconnect === "cancel" && !app.publicMay.includes("cancel")) {
    throw new ApiError("forbidden", {
      details: { on_disconnect: "Expected an access key, or an app whose public_may has cancel" },
    });
  }
  if (asked.callbacks !== undefined) {
    throw new ApiError("forbidden", { details: { callbacks: "Expected an access key with callbacks" } });
  }
}

const keyCharsMax = 200;
/** Who repeats a start gets its run: without a credential the key itself has to be hard to guess. */
const publicKeyCharsMin = 16;

/** What makes a repeated request the same one. @throws ApiError bad_request */
export function idempotencyKeyOf(request: Request, app: CalledApp): { idempotencyKey?: string } {
  const key = request.headers.get("idempotency-key");
  if (key === null) return {};
  const charsMin = app.by === "key" ? 1 : publicKeyCharsMin;
  if (key.length < charsMin || key.length > keyCharsMax) {
    const expected = `Expected ${charsMin} to ${keyCharsMax} characters${app.by === "key" ? "" : " without an access key"}`;
    throw new ApiError("bad_request", { details: { "Idempotency-Key": expected } });
  }
  // No header has this character: what somebody starts without a key never repeats what was started with one.
  return { idempotencyKey: app.by === "key" ? key : `\u0001${key}` };
}

/** The span that asks, where the request tells. */
export function callerOf({ headers }: Request): { callerTrace?: { traceId: string; spanId: string } } {
  const callerTrace = callerTraceOf(headers);
  return callerTrace ? { callerTrace } : {};
}
