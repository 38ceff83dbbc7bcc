/** The Runs API of an app, by its hostname: connections are kept, so that what is measured is the request. */
import { Pool } from "undici";

export interface LoadedRun {
  id: string;
  status: string;
  last_event_id: number;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  input_requests: { id: string }[];
}

export interface AppClient {
  /** Starts a run in the background. */
  start(host: string, input: Record<string, unknown>): Promise<LoadedRun>;
  read(host: string, runId: string): Promise<LoadedRun>;
  /** A page of runs, the newest first, and how many there are. */
  list(host: string, query: string): Promise<{ runs: LoadedRun[]; total: number }>;
  /** Approves what the run asks for. */
  approve(host: string, run: LoadedRun): Promise<void>;
  close(): Promise<void>;
}

export function createAppClient(options: { url: string; accessKey: string; connections: number }): AppClient {
  const pool = new Pool(options.url, { connections: options.connections });

  async function request(host: string, method: "GET" | "POST", path: string, body?: unknown): Promise<unknown> {
    const reply = await pool.request({
      method,
      path,
      headers: { host, authorization: `Bearer ${options.accessKey}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await reply.body.text();
    if (reply.statusCode >= 300)
      throw new Error(`Cannot ${method} ${path}: the answer was ${reply.statusCode} ${text}`);
    return JSON.parse(text);
  }
  const one = async (...asked: Parameters<typeof request>) => ((await request(...asked)) as { data: LoadedRun }).data;

  return {
    start: (host, input) => one(host, "POST", "/v1/runs", { input, background: true }),
    read: (host, runId) => one(host, "GET", `/v1/runs/${runId}`),
    async list(host, query) {
      const page = (await request(host, "GET", `/v1/runs?${query}`)) as {
        data: LoadedRun[];
        pagination: { total_count: number };
      };
      return { runs: page.data, total: page.pagination.total_count };
    },
    async approve(host, run) {
      const responses = run.input_requests.map(({ id }) => ({ input_request_id: id, decision: "approve" }));
      await request(host, "POST", `/v1/runs/${run.id}/resume`, { responses });
    },
    close: () => pool.close(),
  };
}
