/**
 * Engines on a database of their own, with a clock that tests move and jobs that tests hand out: no
 * worker and no sweeper does anything by itself.
 */
import { silentLogger } from "#http/logger.ts";
import { createGuardedHttp } from "#outbound/guarded_http.ts";
import type { LanguageModel } from "#providers/language_model.ts";
import type { Deadline } from "#runs/engine/deadline.ts";
import { type RunEngine, startRunEngine } from "#runs/engine/run_engine.ts";
import { executeRunTask } from "#runs/run_queue.ts";
import { sweepRuns } from "#runs/run_sweeper.ts";
import type { Sql } from "#store/sql.ts";
import type { NodeDeps } from "#workflows/nodes/node_kind.ts";
import { type ApiHarness, openApiHarness } from "../api_harness.ts";
import { type AppClient, openAppClient } from "../app_client.ts";

export interface EngineOptions {
  workerId?: string;
  /** What llm nodes talk to. */
  model?: LanguageModel;
  /** Another way to the same database. */
  sql?: Sql;
  commitDeadline?: Deadline;
}

export interface EngineHarness {
  api: ApiHarness;
  client: AppClient;
  start(options?: EngineOptions): Promise<RunEngine>;
  /** Hands every job that waits to one of the engines, in turn. @returns how many there were */
  dispatch(...engines: RunEngine[]): Promise<number>;
  sweep(): Promise<void>;
  /** Types of the run's events, with the node they are of. */
  told(runId: string): Promise<string[]>;
  close(): Promise<void>;
}

export async function openEngineHarness(): Promise<EngineHarness> {
  const api = await openApiHarness();
  const client = await openAppClient(api);
  const { sql, bus, now } = api;
  const http = createGuardedHttp({ allowPrivateAddresses: false });
  const started: RunEngine[] = [];

  const nodeDeps = (model: LanguageModel | undefined): NodeDeps => ({
    http,
    now,
    async openModel() {
      if (!model) throw new Error("Expected no llm node, or an engine with a model");
      return { provider: "test", model, currency: "USD", costOf: () => 0.25 };
    },
    async callMcpTool() {
      throw new Error("Expected no MCP tool");
    },
    definitionOf: async () => undefined,
  });

  return {
    api,
    client,
    async start({ workerId = `worker-${started.length + 1}`, model, ...own } = {}) {
      const engine = await startRunEngine({
        sql: own.sql ?? api.productSql,
        bus,
        logger: silentLogger,
        now,
        newId: () => crypto.randomUUID(),
        workerId,
        ...(own.commitDeadline && { commitDeadline: own.commitDeadline }),
        nodeDeps: () => nodeDeps(model),
      });
      started.push(engine);
      return engine;
    },
    async dispatch(...engines) {
      const jobs = await sql<{ payload: { run_id: string } }[]>`
        delete from graphile_worker._private_jobs job using graphile_worker._private_tasks task
        where task.id = job.task_id and task.identifier = ${executeRunTask}
        returning job.payload`;
      for (const [i, { payload }] of jobs.entries()) await engines[i % engines.length]?.take(payload.run_id);
      return jobs.length;
    },
    async sweep() {
      await sweepRuns({ sql, bus, now });
    },
    async told(runId) {
      const rows = await sql<{ type: string; node_id: string | null }[]>`
        select type, body::json ->> 'node_id' as node_id from run_event where run_id = ${runId} order by id`;
      return rows.map(({ type, node_id }) => (node_id === null ? type : `${type} ${node_id}`));
    },
    async close() {
      for (const engine of started) await engine.stop();
      await http.close();
      await api.close();
    },
  };
}
