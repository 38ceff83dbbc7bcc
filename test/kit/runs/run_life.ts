/** A run's life over any number of claims, in memory: what it writes is kept as the database would, for tests of the executor. */
import assert from "node:assert/strict";
import { Value } from "@sinclair/typebox/value";
import { type NewRunEvent, runEventDataSchemas } from "#contracts/run_event.ts";
import "#contracts/one_of.ts";
import { type AppPolicy, appPolicyDefault } from "#apps/app_policy.ts";
import type { WorkflowDefinition } from "#contracts/workflow.ts";
import { createGuardedHttp } from "#outbound/guarded_http.ts";
import type { LanguageModel } from "#providers/language_model.ts";
import type { AskedInput, InputRequestRow } from "#runs/engine/input_answers.ts";
import type { RunWriter } from "#runs/engine/recorder.ts";
import type { ClaimedRun } from "#runs/engine/run_claim.ts";
import { executeRun } from "#runs/engine/run_executor.ts";
import type { NodeRunRow, RunOutcome } from "#runs/run_rows.ts";
import type { NodeDeps } from "#workflows/nodes/node_kind.ts";
import { patienceMs } from "../patience.ts";

export const input = { id: "in", type: "input" };
export const out = (inputs: Record<string, unknown>) => ({ id: "out", type: "output", inputs });
export const chain = (...ids: string[]) => ids.slice(1).map((to, i) => ({ from: ids[i] ?? "", to }));

export interface LifeOptions {
  input?: Record<string, unknown>;
  /** What subworkflow nodes find, by version id. */
  versions?: Record<string, WorkflowDefinition>;
  /** Fields of the run as it is claimed. */
  run?: Partial<ClaimedRun["run"]>;
  canceled?: ClaimedRun["canceled"];
  policy?: Partial<AppPolicy>;
  callMcpTool?: NodeDeps["callMcpTool"];
}

/** @param models what llm nodes talk to, in the order in which they open one; the last one serves all that follow */
export function life(
  definition: Omit<WorkflowDefinition, "schema_version">,
  models: LanguageModel[] = [],
  options: LifeOptions = {},
) {
  const events: NewRunEvent[] = [];
  const nodes = new Map<string, NodeRunRow>();
  const asked: AskedInput[] = [];
  const requests: InputRequestRow[] = [];
  let outcome: RunOutcome | undefined;
  let claims = 0;
  let offsetMs = 0;
  const now = () => new Date(Date.now() + offsetMs);
  const writer: RunWriter = {
    append: (event) => {
      assert.ok(
        Value.Check(runEventDataSchemas[event.type], event.data),
        `${event.type} ${JSON.stringify(event.data)}`,
      );
      events.push(structuredClone(event));
    },
    saveNode: (row) => nodes.set(row.id, structuredClone(row)),
    ask(question) {
      asked.push(question);
      const { id, nodeRunId, question: of } = question;
      requests.push({ id, node_run_id: nodeRunId, status: "pending", taken: false, params: of.params, response: null });
    },
    closeInput(id) {
      Object.assign(requests.find((request) => request.id === id) ?? {}, { taken: true });
    },
    leave: (left) => {
      outcome = left;
    },
    flush: async () => undefined,
    room: () => undefined,
  };
  const http = createGuardedHttp({ allowPrivateAddresses: false });
  const claim = () => {
    claims += 1;
    outcome = undefined;
    return executeRun(
      {
        run: {
          id: "00000000-0000-4000-8000-000000000001",
          created_at: new Date(0),
          organization_id: "o",
          project_id: "p",
          app_id: "a",
          workflow_version_id: "v",
          trace_id: "00000000-0000-4000-8000-000000000002",
          input: options.input ?? { question: "Late check-out?" },
          metadata: {},
          session_id: null,
          user_id: null,
          timeout_s: 60,
          active_ms: 0,
          attempt: claims,
          epoch: claims,
          recoveries: 0,
          last_event_id: 1,
          ...options.run,
        },
        definition: { schema_version: 1, ...definition },
        policy: { ...appPolicyDefault, ...options.policy },
        nodes: [...nodes.values()],
        canceled: options.canceled,
      },
      writer,
      {
        nodeDeps: () => ({
          http,
          openModel: async () => ({
            provider: "test",
            currency: "USD",
            costOf: () => 0.25,
            model: (models.length > 1 ? models.shift() : models[0]) ?? assert.fail("no model is left"),
          }),
          callMcpTool: options.callMcpTool ?? (async () => assert.fail("no MCP tool is expected")),
          definitionOf: async (id) => options.versions?.[id],
          now,
        }),
        inputRequests: async () =>
          requests.filter(({ node_run_id }) => ["running", "waiting"].includes(nodes.get(node_run_id)?.status ?? "")),
        now,
        newId: () => crypto.randomUUID(),
        workerId: "w1",
        onInternalError: (error) => assert.fail(String(error)),
      },
    );
  };
  return {
    claim,
    /** Claims it and waits until it ends or is parked. */
    async go() {
      await claim().done;
      return outcome;
    },
    /** Answers the newest request, or the one before it by so many. */
    answer: (response: NonNullable<InputRequestRow["response"]>, before = 0) => {
      Object.assign(requests.at(-1 - before) ?? {}, { status: "resolved", response });
    },
    /** Nobody answered the newest request in time. */
    expire: () => {
      Object.assign(requests.at(-1) ?? {}, { status: "expired", response: null });
    },
    types: () => events.map(({ type, node_id }) => (node_id ? `${type} ${node_id}` : type)),
    /** Resolves once the run has written an event of this type. */
    async until(type: string) {
      await eventually(() => events.some((event) => `${event.type} ${event.node_id}`.startsWith(type)));
    },
    events,
    nodes,
    requests,
    nodeOf: (nodeId: string) => [...nodes.values()].find(({ node_id }) => node_id === nodeId),
    asked,
    advance: (ms: number) => {
      offsetMs += ms;
    },
  };
}

/** Resolves once `holds` does, turn by turn of the event loop. @throws AssertionError when it never does */
export async function eventually(holds: () => boolean): Promise<void> {
  const untilMs = performance.now() + patienceMs;
  while (!holds()) {
    if (performance.now() > untilMs) assert.fail(`it never held: ${holds}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export const model = (...chunks: (string | Error)[]): LanguageModel => ({
  async *reply() {
    for (const chunk of chunks) {
      if (chunk instanceof Error) throw chunk;
      yield { kind: "text", text: chunk };
    }
    yield { kind: "usage", prompt: 3, completion: 2, cached: 0 };
  },
  close() {},
});
/** One that says nothing until its node is ended. */
export const hangingModel: LanguageModel = {
  async *reply(_, signal) {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    yield { kind: "text", text: "never heard" };
  },
  close() {},
};

export const ask = {
  id: "ask",
  type: "llm",
  config: { model: "m", messages: [{ role: "user", template: "{{q}}" }] },
  inputs: { q: "$.input.question" },
};
