/** Runs an app for a call: over our own api, which is asked again where it is away for a while. */
import type { RunEventPage } from "#contracts/internal_runs.ts";
import type { RunEvent } from "#contracts/run_event.ts";
import type { GuardedHttp } from "#outbound/guarded_http.ts";
import type { RemoteRequest } from "./remote_tools.ts";
import { type AbortReason, ToolError, type ToolProgress } from "./tool.ts";

/** Where our own api is, and what it is shown. */
export interface OwnApi {
  url: string;
  secret: string;
}

const notStarted = "This cannot be started at the moment";
const answerBytesMax = 8 * 1024 * 1024;
/** The api may be away for so long when a run is to be started. */
const startMsMax = 60_000;
const firstWaitMs = 100;
const longestWaitMs = 2000;
/** A run that is given up is cancelled, if the api is there within so many attempts; a worker cancels those that end with the call. */
const cancelAttempts = 5;

export type AppRequest = Extract<RemoteRequest, { is: "app" }>;

/** @returns the run's output. @throws ToolError in words for the model */
export async function runApp(
  http: GuardedHttp,
  api: OwnApi | undefined,
  request: AppRequest,
  signal: AbortSignal,
  progress: (update: ToolProgress) => void,
): Promise<unknown> {
  if (!api) throw new ToolError("Apps are not available here");
  const runs = new CallRuns(http, api, request.callId);
  // Not under the signal: a run whose id is not known could not be cancelled.
  const runId = await runs.start(request, AbortSignal.timeout(startMsMax));
  try {
    signal.throwIfAborted();
    progress({ runId });
    return await follow(runs, runId, signal, progress);
  } finally {
    const reason = signal.aborted ? (signal.reason as AbortReason) : undefined;
    if (reason && (reason !== "call_ended" || request.endsWithCall)) void runs.cancel(runId);
  }
}

/** Event after event, until the last one. What is lost on the way is asked for again, by its number. */
async function follow(
  runs: CallRuns,
  runId: string,
  signal: AbortSignal,
  progress: (update: ToolProgress) => void,
): Promise<unknown> {
  for (let after = 0; ; ) {
    for (const { id, json } of (await runs.eventsAfter(runId, after, signal)).events) {
      after = id;
      const event = JSON.parse(json) as RunEvent;
      if (event.type === "run.succeeded") return event.data.output;
      if (event.type === "run.failed") throw new ToolError(event.data.error.message);
      if (event.type === "run.canceled") throw new ToolError("The run was cancelled");
      const update = progressOf(event);
      if (update) progress(update);
    }
  }
}

/** What a run tells of itself: the name of a node that begins, where its author gave it one, and what a node tells. */
function progressOf(event: RunEvent): ToolProgress | undefined {
  if (event.type === "node.started") return event.data.name === undefined ? undefined : { text: event.data.name };
  if (event.type === "run.awaiting_input") return { text: "Waiting for somebody's answer" };
  if (event.type !== "node.progress") return undefined;
  const { message, percent } = event.data;
  return { ...(message !== undefined && { text: message }), ...(percent !== undefined && { percent }) };
}

/** The runs of one call, as the api has them. */
class CallRuns {
  readonly #http: GuardedHttp;
  readonly #api: OwnApi;
  readonly #path: string;

  constructor(http: GuardedHttp, api: OwnApi, callId: string) {
    this.#http = http;
    this.#api = api;
    this.#path = `/internal/calls/${callId}/runs`;
  }

  /** The same call of the tool is the same run, however often it is asked for. */
  async start({ appId, toolCallId, given }: AppRequest, signal: AbortSignal): Promise<string> {
    const body = { app_id: appId, tool_call_id: toolCallId, input: given };
    try {
      const started = (await this.#askUntilAnswered("POST", "", signal, body)) as { run_id?: string; error?: string };
      if (started.run_id !== undefined) return started.run_id;
      throw new ToolError(started.error ?? notStarted);
    } catch (cause) {
      throw signal.aborted ? new ToolError(notStarted, { cause }) : cause;
    }
  }

  async eventsAfter(runId: string, after: number, signal: AbortSignal): Promise<RunEventPage> {
    return (await this.#askUntilAnswered("GET", `/${runId}/events?after=${after}`, signal)) as RunEventPage;
  }

  async cancel(runId: string): Promise<void> {
    for (let attempt = 1; attempt <= cancelAttempts; attempt += 1) {
      if (await this.#ask("POST", `/${runId}/cancel`).catch(() => undefined)) return;
      await pause(Math.min(longestWaitMs, firstWaitMs * 2 ** attempt));
    }
  }

  /** @throws ToolError where the api refuses; the signal's reason */
  async #askUntilAnswered(method: "GET" | "POST", path: string, signal: AbortSignal, body?: object): Promise<unknown> {
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(longestWaitMs, waitMs * 2)) {
      const answer = await this.#ask(method, path, signal, body).catch(() => undefined);
      signal.throwIfAborted();
      if (answer?.truncated) throw new ToolError("The run told something too large");
      if (answer?.status === 200) return JSON.parse(answer.body.toString("utf8"));
      if (answer && answer.status < 500 && answer.status !== 429) throw new ToolError("This is not available any more");
      await pause(waitMs, signal);
    }
  }

  #ask(method: "GET" | "POST", path: string, signal?: AbortSignal, body?: object) {
    return this.#http.send(`${this.#api.url}${this.#path}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#api.secret}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
      responseBytesMax: answerBytesMax,
    });
  }
}

/** @throws the signal's reason */
function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
