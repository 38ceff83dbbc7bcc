/** The log of runs, read from the api; what the bus brings live is only its newest end. */
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Pool } from "undici";
import { type RunAnswerRequest, RunEventPage, RunPositions } from "#contracts/internal_runs.ts";

export interface RunLog {
  /** Events after one, ascending. Undefined for a run that does not exist. @throws when the api does not answer */
  read(runId: string, after: number, limit: number): Promise<RunEventPage | undefined>;
  /** The newest event of each run that exists. @throws when the api does not answer */
  positions(runIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** The client that the run was for is gone. @throws when the api does not answer */
  abandon(runId: string): Promise<void>;
  /** The answer that a request waited for, or another grant, by its content type. @throws when the api does not answer */
  answer(runId: string, request: RunAnswerRequest): Promise<RunAnswer>;
  close(): Promise<void>;
}

export interface RunAnswer {
  status: number;
  contentType: string;
  text: string;
}

const connectionsMax = 32;
const timeoutMs = 10_000;
const isPage = TypeCompiler.Compile(RunEventPage);
const isPositions = TypeCompiler.Compile(RunPositions);

export function createRunLog(options: { apiUrl: string; internalSecret: string }): RunLog {
  const pool = new Pool(options.apiUrl, { connections: connectionsMax, pipelining: 1 });

  async function send(method: "GET" | "POST", path: string, body?: unknown): Promise<RunAnswer> {
    const reply = await pool.request({
      method,
      path,
      headers: { authorization: `Bearer ${options.internalSecret}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const contentType = String(reply.headers["content-type"] ?? "");
    return { status: reply.statusCode, contentType, text: await reply.body.text() };
  }

  async function ask(method: "GET" | "POST", path: string, body?: unknown): Promise<{ status: number; json: unknown }> {
    const { status, text } = await send(method, path, body);
    return { status, json: text === "" ? undefined : JSON.parse(text) };
  }

  return {
    async read(runId, after, limit) {
      const { status, json } = await ask("GET", `/internal/runs/${runId}/events?after=${after}&limit=${limit}`);
      if (status === 404) return undefined;
      if (status !== 200 || !isPage.Check(json)) throw new Error(`Cannot read a run's log: the api answered ${status}`);
      return json;
    },
    async positions(runIds) {
      const { status, json } = await ask("POST", "/internal/runs/positions", { run_ids: runIds });
      if (status !== 200 || !isPositions.Check(json)) {
        throw new Error(`Cannot read runs' positions: the api answered ${status}`);
      }
      return new Map(json.positions.map(({ run_id, last_event_id }) => [run_id, last_event_id]));
    },
    async abandon(runId) {
      const { status } = await ask("POST", `/internal/runs/${runId}/abandon`);
      if (status >= 500) throw new Error(`Cannot abandon a run: the api answered ${status}`);
    },
    answer: (runId, request) => send("POST", `/internal/runs/${runId}/answer`, request),
    close: () => pool.destroy(),
  };
}
