import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LanguageModel } from "#providers/language_model.ts";
import { ask, chain, eventually, hangingModel, input, life, model, out } from "#test/kit/runs/run_life.ts";
import { NodeError } from "#workflows/nodes/node_kind.ts";

/** What requests cost, each of them as much. */
const costOf = (requests: number) => ({ amount: requests / 4, currency: "USD", known: requests / 4, unknown: [] });

describe("a run", () => {
  it("goes from input to output and adds up usage", async () => {
    const run = life(
      { nodes: [input, ask, out({ answer: "$.nodes.ask.output.text" })], edges: chain("in", "ask", "out") },
      [model("Until ", "noon.")],
    );
    const outcome = await run.go();
    const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, cost: costOf(1) };
    assert.deepEqual(outcome, { status: "succeeded", output: { answer: "Until noon." }, usage });
    assert.deepEqual(run.types(), [
      "run.started",
      "node.started in",
      "node.completed in",
      "node.started ask",
      "content.delta ask",
      "content.delta ask",
      "content.completed ask",
      "model.completed ask",
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

  it("adds up what its models took, in attempts that failed too", async () => {
    const strict = { ...ask, config: { ...ask.config, output_schema: { type: "object" as const } } };
    const nodes = [input, { ...strict, retry: { max_attempts: 2, backoff_ms: 1 } }, out({})];
    const run = life({ nodes, edges: chain("in", "ask", "out") }, [model("no JSON"), model('{"a":1}')]);
    const outcome = await run.go();
    const usage = { prompt_tokens: 6, completion_tokens: 4, total_tokens: 10, cost: costOf(2) };
    assert.deepEqual([outcome?.status, outcome?.usage], ["succeeded", usage]);
    const requested = run.events.flatMap((event) => (event.type === "model.completed" ? [event.data] : []));
    assert.deepEqual(
      requested.map((data) => data.usage.total_tokens),
      [5, 5],
    );
    const completed = run.events.find(({ type, node_id }) => type === "node.completed" && node_id === "ask");
    assert.ok(completed?.type === "node.completed");
    assert.deepEqual(completed.data.usage, usage);
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
    const first = { id: "first", type: "template", config: { template: "done" } };
    const run = life(
      { nodes: [input, first, ask, out({ a: "$.nodes.ask.output.text" })], edges: chain("in", "first", "ask", "out") },
      [hangingModel, model("again")],
    );
    const dying = run.claim();
    await eventually(() => run.nodeOf("ask")?.status === "running");
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
    const nodes = [input, ask, out({})];
    const run = life({ nodes, edges: chain("in", "ask", "out") }, [hangingModel]);
    const executing = run.claim();
    await run.until("node.started ask");
    executing.stop("canceled", { reason: "changed my mind", by: "ada" });
    await executing.done;
    const last = run.events.at(-1);
    assert.ok(last?.type === "run.canceled" && last.data.reason === "changed my mind" && last.data.by === "ada");
    const slow = life({ nodes: [input, { ...ask, timeout_s: 0.1 }, out({})], edges: chain("in", "ask", "out") }, [
      hangingModel,
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

  it("asks no second time when its worker dies after an answer was taken", async () => {
    let calls = 0;
    const callMcpTool = async (_tool: unknown, _arguments: unknown, signal: AbortSignal) => {
      calls += 1;
      if (calls > 1) return "paid";
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
    };
    const pay = {
      id: "pay",
      type: "tool",
      config: { mcp: { url: "https://mcp.example", tool: "pay" }, requires_approval: true },
      inputs: { amount: 7 },
    };
    const nodes = [input, pay, out({ result: "$.nodes.pay.output.result" })];
    const run = life({ nodes, edges: chain("in", "pay", "out") }, [], { callMcpTool });
    assert.equal((await run.go())?.status, "awaiting_input");
    run.answer({ decision: "approve" });
    const dying = run.claim();
    await run.until("tool.called pay");
    dying.stop("lost");
    await dying.done;
    const outcome = await run.go();
    assert.ok(outcome?.status === "succeeded", JSON.stringify(outcome));
    assert.deepEqual([outcome.output, calls], [{ result: "paid" }, 2]);
    const types = run.types();
    assert.equal(types.filter((type) => type === "input.requested pay").length, 1);
    assert.equal(types.filter((type) => type === "input.resolved pay").length, 1);
    assert.equal(types.filter((type) => type === "node.started pay").length, 2);
  });

  it("adds up the usage of nodes that finished before its worker died", async () => {
    const again = { ...ask, id: "again" };
    const run = life({ nodes: [input, ask, again, out({})], edges: chain("in", "ask", "again", "out") }, [
      model("one"),
      hangingModel,
      model("two"),
    ]);
    const dying = run.claim();
    await run.until("node.started again");
    dying.stop("lost");
    await dying.done;
    const outcome = await run.go();
    assert.ok(outcome?.status === "succeeded");
    assert.deepEqual(outcome.usage, { prompt_tokens: 6, completion_tokens: 4, total_tokens: 10, cost: costOf(2) });
  });

  it("ends as canceled when it is claimed after somebody canceled it", async () => {
    const run = life({ nodes: [input, out({})], edges: chain("in", "out") }, [], { canceled: { by: "ada" } });
    assert.equal((await run.go())?.status, "canceled");
    assert.deepEqual(run.types(), ["run.canceled"]);
  });
});
