import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { runLimits } from "#contracts/run_event.ts";
import type { WorkflowDefinition, WorkflowNode } from "#contracts/workflow.ts";
import type { LanguageModel } from "#providers/language_model.ts";
import {
  ask,
  chain,
  eventually,
  hangingModel,
  input,
  type LifeOptions,
  life,
  model,
  out,
} from "#test/kit/runs/run_life.ts";
import { NodeError } from "#workflows/nodes/node_kind.ts";

const say: WorkflowNode = {
  id: "say",
  type: "llm",
  config: { model: "m", messages: [{ role: "user", template: "{{who}}" }] },
  inputs: { who: "$.item" },
};
const one = (inputs: Record<string, unknown>): WorkflowNode => ({ id: "one", type: "output", inputs });
const saying = { nodes: [say, one({ text: "$.nodes.say.output.text", n: "$.index" })], edges: chain("say", "one") };
const each = (config: Record<string, unknown> = {}, change: Partial<WorkflowNode> = {}): WorkflowNode => ({
  id: "each",
  type: "map",
  config: { items: "$.input.guests", body: saying, ...config },
  ...change,
});
const guests = (count: number) => ({ guests: Array.from({ length: count }, (_, i) => `guest ${i}`) });

/** A run of a map between input and output. */
const mapping = (map: WorkflowNode, models: LanguageModel[], options: LifeOptions = {}) =>
  life({ nodes: [input, map, out({ all: "$.nodes.each.output" })], edges: chain("in", "each", "out") }, models, {
    input: guests(5),
    ...options,
  });

/** A model that answers what it was asked, when it is let. */
function held() {
  const waiting = new Map<string, () => void>();
  let most = 0;
  const speaking: LanguageModel = {
    async *reply({ history }) {
      const text = history.at(-1)?.text ?? "";
      await new Promise<void>((resolve) => {
        waiting.set(text, resolve);
        most = Math.max(most, waiting.size);
      });
      yield { kind: "text", text: `Dear ${text}` };
    },
    close() {},
  };
  return {
    speaking,
    most: () => most,
    waiting: () => [...waiting.keys()],
    forget: () => waiting.clear(),
    async release(text: string) {
      await eventually(() => waiting.has(text));
      waiting.get(text)?.();
      waiting.delete(text);
    },
  };
}

describe("a map", () => {
  it("does its body for each item, so many at once, and keeps their order", async () => {
    const { speaking, most, waiting, release } = held();
    const run = mapping(each({ concurrency: 2 }), [speaking]);
    const done = run.go();
    await release("guest 1");
    await release("guest 2");
    await eventually(() => waiting().includes("guest 3"));
    assert.deepEqual(waiting(), ["guest 0", "guest 3"]);
    for (const n of [3, 0, 4]) await release(`guest ${n}`);
    const outcome = await done;
    assert.ok(outcome?.status === "succeeded", JSON.stringify(outcome));
    const items = [0, 1, 2, 3, 4].map((n) => ({ text: `Dear guest ${n}`, n }));
    assert.deepEqual(outcome.output, { all: { items, errors: [] } });
    assert.equal(most(), 2);
  });

  it("tells of each item which one it is, and how far the map is", async () => {
    const run = mapping(each(), [model("ok")], { input: guests(2) });
    await run.go();
    const map = run.nodeOf("each");
    const inside = run.events.filter(({ parent_node_run_id }) => parent_node_run_id !== undefined);
    assert.ok(inside.every(({ parent_node_run_id, node_run_id }) => parent_node_run_id === map?.id && node_run_id));
    const started = inside.filter(({ type, node_id }) => type === "node.started" && node_id === "say");
    assert.deepEqual(
      started.map(({ iteration }) => iteration),
      [0, 1],
    );
    const progress = run.events.filter(({ type }) => type === "node.progress");
    assert.deepEqual(
      progress.map(({ node_id, node_run_id, iteration, data }) => ({ node_id, node_run_id, iteration, data })),
      [1, 2].map((current) => ({
        node_id: "each",
        node_run_id: map?.id,
        iteration: undefined,
        data: { current, total: 2 },
      })),
    );
    const cost = { amount: 0.5, currency: "USD", known: 0.5, unknown: [] };
    const usage = { prompt_tokens: 6, completion_tokens: 4, total_tokens: 10, cost };
    const last = run.events.at(-1);
    assert.ok(last?.type === "run.succeeded");
    assert.deepEqual(last.data.usage, usage);
  });

  it("of nothing is over at once", async () => {
    const outcome = await mapping(each(), [], { input: { guests: [] } }).go();
    assert.ok(outcome?.status === "succeeded");
    assert.deepEqual(outcome.output, { all: { items: [], errors: [] } });
  });

  it("fails over something that is no list, and over one that is too long", async () => {
    const none = await mapping(each(), [], { input: {} }).go();
    assert.ok(none?.status === "failed" && none.error.code === "bad_items" && none.error.node_id === "each");
    const long = await mapping(each({ max_items: 4 }), []).go();
    assert.ok(long?.status === "failed" && long.error.code === "too_many_items");
  });

  it("fails with the first item that fails, ends the others, and goes on by its error edge", async () => {
    const models = [hangingModel, model(new NodeError("http_status", "500")), hangingModel];
    const sorry: WorkflowNode = {
      id: "sorry",
      type: "output",
      inputs: { code: "$.nodes.each.output.error.code", message: "$.nodes.each.output.error.message" },
    };
    const edges = [...chain("in", "each", "out"), { from: "each", to: "sorry", handle: "error" }];
    const run = life({ nodes: [input, each(), out({}), sorry], edges }, models, { input: guests(3) });
    const outcome = await run.go();
    assert.ok(outcome?.status === "succeeded", JSON.stringify(outcome));
    assert.deepEqual(outcome.output, { code: "http_status", message: "Item 1: 500" });
    const failed = run.events.flatMap((event) => (event.type === "node.failed" ? [event] : []));
    assert.deepEqual(
      failed.map(({ node_id, iteration, data }) => [node_id, iteration, data.error.code]),
      [
        ["say", 1, "http_status"],
        ["say", 0, "abandoned"],
        ["say", 2, "abandoned"],
        ["each", undefined, "http_status"],
      ],
    );
    assert.ok([...run.nodes.values()].every(({ status }) => status !== "running"));
  });

  it("goes on after items that fail where it may, and says which they were", async () => {
    const models = [model("a"), model(new NodeError("http_status", "500")), model("c")];
    const outcome = await mapping(each({ on_item_error: "continue" }), models, { input: guests(3) }).go();
    assert.ok(outcome?.status === "succeeded");
    const error = { code: "http_status", message: "500", node_id: "say" };
    assert.deepEqual(outcome.output, {
      all: { items: [{ text: "a", n: 0 }, null, { text: "c", n: 2 }], errors: [{ index: 1, error }] },
    });
  });

  it("tries nodes of an item again by themselves", async () => {
    const body = {
      ...saying,
      nodes: [{ ...say, retry: { max_attempts: 2, backoff_ms: 1 } }, ...saying.nodes.slice(1)],
    };
    const models = [model("a"), model(new NodeError("unreachable", "-", { retryable: true })), model("c")];
    const run = mapping(each({ body }), models, { input: guests(2) });
    assert.equal((await run.go())?.status, "succeeded");
    const retrying = run.events.filter(({ type }) => type === "node.retrying");
    assert.deepEqual(
      retrying.map(({ iteration }) => iteration),
      [1],
    );
  });

  it("does after a crash only the items, and of them only the nodes, that had not finished", async () => {
    const { speaking, release, waiting, forget } = held();
    const run = mapping(each({ concurrency: 2 }), [speaking]);
    const dying = run.claim();
    await release("guest 0");
    await release("guest 1");
    await eventually(() => waiting().length === 2);
    dying.stop("lost");
    await dying.done;
    forget();
    const before = run.events.length;
    const done = run.go();
    for (const n of [2, 3, 4]) await release(`guest ${n}`);
    const outcome = await done;
    assert.ok(outcome?.status === "succeeded");
    assert.deepEqual(
      (outcome.output.all as { items: { text: string }[] }).items.map(({ text }) => text),
      [0, 1, 2, 3, 4].map((n) => `Dear guest ${n}`),
    );
    const started = run.events.slice(before).filter(({ type }) => type === "node.started");
    assert.deepEqual(
      started.filter(({ node_id }) => node_id === "say").map(({ iteration, attempt }) => [iteration, attempt]),
      [
        [2, 2],
        [3, 2],
        [4, undefined],
      ],
    );
    assert.ok(
      started.every(({ node_id }) => node_id !== "each"),
      "the map itself had begun before",
    );
    assert.equal(run.nodeOf("each")?.attempt, 1);
  });

  it("ends all of its items when the run is canceled", async () => {
    const run = mapping(each(), [hangingModel]);
    const executing = run.claim();
    await run.until("node.started say");
    executing.stop("canceled");
    await executing.done;
    assert.equal(run.events.at(-1)?.type, "run.canceled");
  });

  it("fails when all of it takes too long", async () => {
    const outcome = await mapping(each({}, { timeout_s: 0.1 }), [hangingModel]).go();
    assert.ok(
      outcome?.status === "failed" && outcome.error.code === "node_timeout" && outcome.error.node_id === "each",
    );
  });

  const ok: WorkflowNode = { id: "ok", type: "approval", config: { prompt: "{{who}}?" }, inputs: { who: "$.item" } };
  const approving = {
    nodes: [ok, one({ who: "$.nodes.ok.output.params.who" }), { id: "no", type: "output", inputs: { who: null } }],
    edges: [
      { from: "ok", to: "one", handle: "approved" },
      { from: "ok", to: "no", handle: "rejected" },
    ],
  };

  it("asks for its items side by side, and is parked until each is answered", async () => {
    const run = mapping(each({ body: approving, concurrency: 2 }), [], { input: guests(3) });
    const parked = await run.go();
    assert.equal(parked?.status, "awaiting_input");
    const last = run.events.at(-1);
    assert.ok(last?.type === "run.awaiting_input");
    assert.deepEqual(
      last.data.input_request_ids,
      run.asked.map(({ id }) => id),
    );
    assert.deepEqual(
      run.asked.map(({ question }) => question.prompt),
      ["guest 0?", "guest 1?"],
    );
    run.answer({ decision: "reject" }, 1);
    assert.equal((await run.go())?.status, "awaiting_input");
    assert.equal(run.asked.length, 3);
    run.answer({ decision: "approve" }, 1);
    run.answer({ decision: "approve" });
    const outcome = await run.go();
    assert.ok(outcome?.status === "succeeded", JSON.stringify(outcome));
    const items = [{ who: null }, { who: "guest 1" }, { who: "guest 2" }];
    assert.deepEqual(outcome.output, { all: { items, errors: [] } });
    assert.equal(run.types().filter((type) => type === "input.resolved ok").length, 3);
    assert.equal(run.types().filter((type) => type === "run.started").length, 1);
    assert.equal(run.types().filter((type) => type === "run.resumed").length, 2);
  });

  it("takes its questions back when it fails", async () => {
    const failing: WorkflowNode = { ...say, inputs: { who: "$.nodes.gate.output" } };
    const gate: WorkflowNode = {
      id: "gate",
      type: "condition",
      config: { cases: [{ handle: "ask", all: [{ left: "$.index", op: "eq", right: 0 }] }] },
    };
    const body = {
      nodes: [gate, ok, failing, one({})],
      edges: [
        { from: "gate", to: "ok", handle: "ask" },
        { from: "gate", to: "say", handle: "else" },
        { from: "ok", to: "one", handle: "approved" },
        { from: "say", to: "one" },
      ],
    };
    const { speaking, release } = held();
    const broken: LanguageModel = {
      ...speaking,
      async *reply(request, signal) {
        yield* speaking.reply(request, signal);
        throw new NodeError("http_status", "500");
      },
    };
    const run = mapping(each({ body }), [broken], { input: guests(2) });
    const done = run.go();
    await run.until("input.requested ok");
    await release('{"handle":"else"}');
    const outcome = await done;
    assert.ok(outcome?.status === "failed" && outcome.error.message === "Item 1: 500");
    const resolved = run.events.find(({ type }) => type === "input.resolved");
    assert.ok(resolved?.type === "input.resolved" && resolved.data.decision === "canceled");
    assert.equal(resolved.data.input_request_id, run.asked[0]?.id);
  });

  it("sleeps through delays of its items outside memory", async () => {
    const body = {
      nodes: [{ id: "rest", type: "delay", config: { seconds: 60 } }, one({ n: "$.index" })],
      edges: chain("rest", "one"),
    };
    const run = mapping(each({ body }), [], { input: guests(2) });
    const parked = await run.go();
    assert.ok(parked?.status === "pending" && parked.wakeAt);
    run.advance(60_000);
    const outcome = await run.go();
    assert.ok(outcome?.status === "succeeded");
    assert.deepEqual(outcome.output, { all: { items: [{ n: 0 }, { n: 1 }], errors: [] } });
  });

  it("may stand in a map, each with its own item", async () => {
    const inner: WorkflowNode = {
      id: "inner",
      type: "map",
      config: {
        items: "$.item",
        body: { nodes: [{ id: "leaf", type: "output", inputs: { item: "$.item", index: "$.index" } }], edges: [] },
      },
    };
    const body = { nodes: [inner, one({ in: "$.nodes.inner.output.items" })], edges: chain("inner", "one") };
    const outcome = await mapping(each({ body }), [], { input: { guests: [["a", "b"], []] } }).go();
    assert.ok(outcome?.status === "succeeded", JSON.stringify(outcome));
    const items = [
      {
        in: [
          { item: "a", index: 0 },
          { item: "b", index: 1 },
        ],
      },
      { in: [] },
    ];
    assert.deepEqual(outcome.output, { all: { items, errors: [] } });
  });

  it("is heard, with all inside of it, where stream_from names it, and else is not", async () => {
    const heard = async (from: string) => {
      const nodes = [input, ask, each(), { ...out({}), config: { stream_from: from } }];
      const edges = [...chain("in", "ask", "out"), ...chain("in", "each", "out")];
      const run = life({ nodes, edges }, [model("x")], { input: guests(1) });
      await run.go();
      return run.types().filter((type) => type.startsWith("content.delta"));
    };
    assert.deepEqual(await heard("each"), ["content.delta say"]);
    assert.deepEqual(await heard("ask"), ["content.delta ask"]);
  });

  it("ends a run that has become too large", async () => {
    const run = mapping(each(), [model("ok")]);
    const nothing = { attempt: 1, output: null, error: null, usage: null, handle: null, wake_at: null };
    for (let n = 0; n < runLimits.nodeRunsMax; n += 1) {
      run.nodes.set(`${n}`, {
        id: `${n}`,
        node_id: "x",
        parent_id: "of another",
        iteration: n,
        status: "skipped",
        ...nothing,
      });
    }
    const outcome = await run.go();
    assert.ok(outcome?.status === "failed" && outcome.error.code === "too_many_node_runs", JSON.stringify(outcome));
  });
});

describe("a subworkflow", () => {
  const version: WorkflowDefinition = {
    schema_version: 1,
    input: { type: "object", properties: { who: { type: "string", required: true } } },
    nodes: [
      { id: "in", type: "input" },
      { ...say, inputs: { who: "$.input.who" } },
      out({ text: "$.nodes.say.output.text", session: "$.run.id" }),
    ],
    edges: chain("in", "say", "out"),
  };
  const sub = (inputs: Record<string, unknown>): WorkflowNode => ({
    id: "sub",
    type: "subworkflow",
    config: { workflow_id: "w", version_id: "v1" },
    inputs,
  });
  const using = (inputs: Record<string, unknown>, models: LanguageModel[], options: LifeOptions = {}) =>
    life(
      {
        nodes: [input, sub(inputs), out({ said: "$.nodes.sub.output.text", run: "$.nodes.sub.output.session" })],
        edges: chain("in", "sub", "out"),
      },
      models,
      { versions: { v1: version }, ...options },
    );

  it("gets its node's inputs, and its output is the node's", async () => {
    const run = using({ who: "$.input.question" }, [model("Dear guest")]);
    const outcome = await run.go();
    assert.ok(outcome?.status === "succeeded", JSON.stringify(outcome));
    assert.deepEqual(outcome.output, { said: "Dear guest", run: "00000000-0000-4000-8000-000000000001" });
    const inside = run.events.filter(({ node_id }) => node_id === "say");
    const parent = [...run.nodes.values()].find(({ node_id }) => node_id === "sub")?.id;
    assert.ok(inside.length > 0 && inside.every(({ parent_node_run_id }) => parent_node_run_id === parent));
    assert.ok(inside.every((event) => event.iteration === undefined));
    assert.ok(!run.types().includes("node.progress sub"));
  });

  it("fails its node with its own error, by an error edge where there is one", async () => {
    const outcome = await using({ who: "x" }, [model(new NodeError("http_status", "500"))]).go();
    assert.ok(outcome?.status === "failed" && outcome.error.code === "http_status");
  });

  it("fails when its version is gone, and over an input that it does not take", async () => {
    const gone = await using({ who: "x" }, [], { versions: {} }).go();
    assert.ok(gone?.status === "failed" && gone.error.code === "unknown_version");
    const bad = await using({ who: 7 }, []).go();
    assert.ok(bad?.status === "failed" && bad.error.code === "bad_input" && /inputs.who/.test(bad.error.message));
  });

  it("goes on after a crash where it was", async () => {
    const run = using({ who: "x" }, [hangingModel, model("again")]);
    const dying = run.claim();
    await run.until("node.started say");
    dying.stop("lost");
    await dying.done;
    const outcome = await run.go();
    assert.ok(outcome?.status === "succeeded");
    assert.equal(outcome.output.said, "again");
    assert.equal(run.types().filter((type) => type === "node.started in").length, 2);
    assert.equal(run.types().filter((type) => type === "node.started sub").length, 1);
  });

  it("may stand in a map", async () => {
    const body = {
      nodes: [sub({ who: "$.item" }), one({ said: "$.nodes.sub.output.text" })],
      edges: chain("sub", "one"),
    };
    const run = mapping(each({ body }), [model("hello")], { input: guests(3), versions: { v1: version } });
    const outcome = await run.go();
    assert.ok(outcome?.status === "succeeded", JSON.stringify(outcome));
    assert.deepEqual(outcome.output.all, { items: [1, 2, 3].map(() => ({ said: "hello" })), errors: [] });
  });
});
