import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Value } from "@sinclair/typebox/value";
import { type NewRunEvent, runEventDataSchemas } from "#contracts/run_event.ts";
import "#contracts/one_of.ts";
import type { WorkflowDefinition } from "#contracts/workflow.ts";
import { createGuardedHttp } from "#outbound/guarded_http.ts";
import type { LanguageModel } from "#outbound/models/language_model.ts";
import { appPolicyDefault } from "../app_policy.ts";
import type { NodeRunRow, RunOutcome } from "../run_rows.ts";
import type { AskedInput, InputRequestRow } from "./input_answers.ts";
import { NodeError } from "./node_kind.ts";
import type { RunWriter } from "./recorder.ts";
import { executeRun } from "./run_executor.ts";

const input = { id: "in", type: "input" };
const out = (inputs: Record<string, unknown>) => ({ id: "out", type: "output", inputs });
const chain = (...ids: string[]) => ids.slice(1).map((to, i) => ({ from: ids[i] ?? "", to }));

/** A run's life over any number of claims, with everything it wrote. */
function life(
  definition: Omit<WorkflowDefinition, "schema_version">,
  models: LanguageModel[] = [],
  versions: Record<string, WorkflowDefinition> = {},
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
          organization_id: "o",
          project_id: "p",
          app_id: "a",
          workflow_version_id: "v",
          input: { question: "Late check-out?" },
          metadata: {},
          session_id: null,
          user_id: null,
          timeout_s: 60,
          active_ms: 0,
          attempt: claims,
          epoch: claims,
          recoveries: 0,
          last_event_id: 1,
        },
        definition: { schema_version: 1, ...definition },
        policy: appPolicyDefault,
        nodes: [...nodes.values()],
        canceled: undefined,
      },
      writer,
      {
        nodeDeps: () => ({
          http,
          openModel: async () => models.shift() ?? assert.fail("no model is left"),
          callMcpTool: async () => assert.fail("no MCP tool is expected"),
          definitionOf: async (id) => versions[id],
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
    /** Answers the newest request. */
    answer: (response: NonNullable<InputRequestRow["response"]>) => {
      Object.assign(requests.at(-1) ?? {}, { status: "resolved", response });
    },
    types: () => events.map(({ type, node_id }) => (node_id ? `${type} ${node_id}` : type)),
    events,
    nodes,
    nodeOf: (nodeId: string) => [...nodes.values()].find(({ node_id }) => node_id === nodeId),
    asked,
    advance: (ms: number) => {
      offsetMs += ms;
    },
  };
}

const model = (...chunks: (string | Error)[]): LanguageModel => ({
  async *reply() {
    for (const chunk of chunks) {
      if (chunk instanceof Error) throw chunk;
      yield { kind: "text", text: chunk };
    }
    yield { kind: "usage", prompt: 3, completion: 2, cached: 0 };
  },
  close() {},
});
const ask = {
  id: "ask",
  type: "llm",
  config: { model: "m", messages: [{ role: "user", template: "{{q}}" }] },
  inputs: { q: "$.input.question" },
};

describe("a run", () => {
  it("goes from input to output and adds up usage", async () => {
    const run = life(
      { nodes: [input, ask, out({ answer: "$.nodes.ask.output.text" })], edges: chain("in", "ask", "out") },
      [model("Until ", "noon.")],
    );
    const outcome = await run.go();
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
    assert.deepEqual(outcome, { status: "succeeded", output: { answer: "Until noon." }, usage });
    assert.deepEqual(run.types(), [
      "run.started",
      "node.started in",
      "node.completed in",
      "node.started ask",
      "content.delta ask",
      "content.delta ask",
      "content.completed ask",
      "node.completed ask",
      "node.started out",
      "node.completed out",
      "run.succeeded",
    ]);
  });

  it("tries a failed node again, with the same id, as often as it may", async () => {
    const failing = () => model(new NodeError("unreachable", "no answer", { retryable: true }));
    const nodes = [input, { ...ask, retry: { max_attempts: 3, backoff_ms: 1 } }, out({})];
    const run = life({ nodes, edges: chain("in", "ask", "out") }, [failing(), failing(), model("ok")]);
    assert.equal((await run.go())?.status, "succeeded");
    const ofAsk = run.events.filter(({ node_id }) => node_id === "ask");
    assert.equal(ofAsk.filter(({ type }) => type === "node.retrying").length, 2);
    assert.equal(new Set(ofAsk.map(({ node_run_id }) => node_run_id)).size, 1);
    const hopeless = life({ nodes, edges: chain("in", "ask", "out") }, [failing(), failing(), failing()]);
    const outcome = await hopeless.go();
    assert.ok(outcome?.status === "failed" && outcome.error.code === "unreachable" && outcome.error.node_id === "ask");
  });

  it("goes on by the error edge of a node that failed", async () => {
    const sorry = {
      id: "sorry",
      type: "template",
      config: { template: "Sorry: {{e}}" },
      inputs: { e: "$.nodes.ask.output.error.code" },
    };
    const edges = [
      ...chain("in", "ask", "out"),
      { from: "ask", to: "sorry", handle: "error" },
      { from: "sorry", to: "out" },
    ];
    const nodes = [input, ask, sorry, out({ text: "$.nodes.sorry.output.text" })];
    const outcome = await life({ nodes, edges }, [model(new NodeError("http_status", "500"))]).go();
    assert.ok(outcome?.status === "succeeded");
    assert.deepEqual(outcome.output, { text: "Sorry: http_status" });
  });

  it("waits for a person without holding anything, and goes on with the answer", async () => {
    const ok = {
      id: "ok",
      type: "approval",
      config: { prompt: "Send?", editable_params: ["text"] },
      inputs: { text: "$.input.question" },
    };
    const edges = [
      { from: "in", to: "ok" },
      { from: "ok", to: "out", handle: "approved" },
    ];
    const run = life({ nodes: [input, ok, out({ sent: "$.nodes.ok.output.params.text" })], edges });
    const parked = await run.go();
    assert.equal(parked?.status, "awaiting_input");
    assert.deepEqual(run.types().slice(-2), ["input.requested ok", "run.awaiting_input"]);
    run.answer({ decision: "approve", params: { text: "Yes, until noon." }, responded_by: "ada" });
    const outcome = await run.go();
    assert.ok(outcome?.status === "succeeded");
    assert.deepEqual(outcome.output, { sent: "Yes, until noon." });
    const resumed = ["input.resolved ok", "run.resumed", "node.completed ok", "node.started out", "node.completed out"];
    assert.deepEqual(run.types().slice(6), [...resumed, "run.succeeded"]);
    assert.equal(run.types().filter((type) => type === "run.started").length, 1);
  });

  it("sleeps through a long delay outside memory", async () => {
    const rest = { id: "rest", type: "delay", config: { seconds: 3600 } };
    const run = life({ nodes: [input, rest, out({})], edges: chain("in", "rest", "out") });
    const parked = await run.go();
    assert.ok(parked?.status === "pending" && parked.wakeAt);
    run.advance(3_600_000);
    assert.equal((await run.go())?.status, "succeeded");
  });

  it("runs again only what was not finished when its worker died", async () => {
    const hanging: LanguageModel = {
      async *reply(_, signal) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        yield { kind: "text", text: "" };
      },
      close() {},
    };
    const first = { id: "first", type: "template", config: { template: "done" } };
    const run = life(
      { nodes: [input, first, ask, out({ a: "$.nodes.ask.output.text" })], edges: chain("in", "first", "ask", "out") },
      [hanging, model("again")],
    );
    const dying = run.claim();
    while (run.nodeOf("ask")?.status !== "running") await new Promise((resolve) => setImmediate(resolve));
    dying.stop("lost");
    await dying.done;
    const outcome = await run.go();
    assert.ok(outcome?.status === "succeeded");
    assert.deepEqual(outcome.output, { a: "again" });
    const types = run.types();
    assert.equal(types.filter((type) => type === "node.started first").length, 1);
    const recovered = run.events.find(({ type, data }) => type === "run.started" && "recovered" in data);
    assert.ok(recovered);
    assert.equal(types.filter((type) => type === "node.started ask").length, 2);
  });

  it("ends at once when it is canceled, and by its time-out", async () => {
    const hang: LanguageModel = {
      async *reply(_, signal) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        yield { kind: "text", text: "never seen" };
      },
      close() {},
    };
    const nodes = [input, ask, out({})];
    const run = life({ nodes, edges: chain("in", "ask", "out") }, [hang]);
    const executing = run.claim();
    while (!run.types().includes("node.started ask")) await new Promise((resolve) => setImmediate(resolve));
    executing.stop("canceled", { reason: "changed my mind", by: "ada" });
    await executing.done;
    const last = run.events.at(-1);
    assert.ok(last?.type === "run.canceled" && last.data.reason === "changed my mind" && last.data.by === "ada");
    const slow = life({ nodes: [input, { ...ask, timeout_s: 0.1 }, out({})], edges: chain("in", "ask", "out") }, [
      hang,
    ]);
    const outcome = await slow.go();
    assert.ok(outcome?.status === "failed" && outcome.error.code === "node_timeout");
  });

  it("names the pending requests when it awaits input", async () => {
    const ok = { id: "ok", type: "approval", config: { prompt: "Send?" } };
    const edges = [...chain("in", "ok"), { from: "ok", to: "out", handle: "approved" }];
    const run = life({ nodes: [input, ok, out({})], edges });
    await run.go();
    const last = run.events.at(-1);
    assert.ok(last?.type === "run.awaiting_input");
    assert.deepEqual(last.data.input_request_ids, [run.asked[0]?.id]);
  });

  it("ends a long delay in time while another branch still works", async () => {
    let speak: () => void = () => undefined;
    const slow: LanguageModel = {
      async *reply() {
        await new Promise<void>((resolve) => {
          speak = resolve;
        });
        yield { kind: "text", text: "late" };
      },
      close() {},
    };
    const rest = { id: "rest", type: "delay", config: { seconds: 2.1 } };
    const edges = [...chain("in", "rest", "out"), ...chain("in", "ask", "out")];
    const run = life({ nodes: [input, rest, ask, out({})], edges }, [slow]);
    const executing = run.claim();
    while (!run.types().includes("node.completed rest")) await new Promise((resolve) => setTimeout(resolve, 5));
    assert.ok(!run.types().includes("node.completed ask"));
    speak();
    await executing.done;
    assert.equal(run.events.at(-1)?.type, "run.succeeded");
  });
});
