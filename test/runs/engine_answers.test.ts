/** What a run asks of people: answered, expired by a moved clock, canceled in the meantime; and nobody holds it while it waits. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { answering, approving, eventually } from "#test/kit/app_client.ts";
import { type EngineHarness, type EngineOptions, openEngineHarness } from "#test/kit/runs/engine_harness.ts";

const day = 86_400;
const edges = (...ends: [string, string, string?][]) =>
  ends.map(([from, to, handle]) => ({ from, to, ...(handle && { handle }) }));
const out = (id: string, inputs: object) => ({ id, type: "output", inputs });

/** `in → ask → out`, with an output for each way out of the asking node. */
const asking = (type: "approval" | "feedback", config: object, handles: readonly string[]) => ({
  schema_version: 1,
  nodes: [
    { id: "in", type: "input" },
    { id: "ask", type, config: { prompt: "{{q}}?", timeout_s: day, ...config }, inputs: { q: "$.input.question" } },
    ...handles.map((handle) => out(`out_${handle}`, { way: handle, answer: "$.nodes.ask.output" })),
  ],
  edges: edges(["in", "ask"], ...handles.map((handle): [string, string, string] => ["ask", `out_${handle}`, handle])),
});

describe("a run that asks", () => {
  let house: EngineHarness;
  before(async () => {
    house = await openEngineHarness();
  });
  after(() => house.close());

  /** A run that has asked, and the engine that let go of it. */
  async function ask(definition: unknown, options: EngineOptions = {}) {
    const engine = await house.start(options);
    const { host } = await house.client.deploy(definition);
    const { body } = await house.client.call(host, "POST", "/v1/runs", {
      body: { input: { question: "Late check-out" }, background: true },
    });
    await house.dispatch(engine);
    const run = await house.client.until(host, body.data.id, "awaiting_input");
    const answer = (response: object) =>
      house.client.call(host, "POST", `/v1/runs/${run.id}/resume`, {
        body: { responses: [{ input_request_id: run.input_requests[0].id, ...response }] },
      });
    /** Takes up what was answered or has expired. */
    const goOn = async (status: string) => {
      await house.dispatch(engine);
      return house.client.until(host, run.id, status);
    };
    return { engine, host, run, answer, goOn };
  }

  it("is held by no worker until it is answered", async () => {
    const { engine, answer, goOn, run } = await ask(approving);
    await eventually(async () => engine.running() === 0, "nobody holds it");
    const [row] = await house.api.sql`select lease_until, status from run where id = ${run.id}`;
    assert.deepEqual({ ...row }, { lease_until: null, status: "awaiting_input" });
    await answer({ decision: "approve" });
    assert.deepEqual((await goOn("succeeded")).output, { sent: "Late check-out" });
  });

  const approvals = ["approved", "rejected", "expired"];
  const rules: [string, "approval" | "feedback", object, readonly string[], object][] = [
    ["an approval, by default", "approval", {}, approvals, { way: "rejected" }],
    ["an approval with reject", "approval", { on_timeout: "reject" }, approvals, { way: "rejected" }],
    ["an approval with branch", "approval", { on_timeout: "branch" }, approvals, { way: "expired" }],
    ["feedback with branch", "feedback", { on_timeout: "branch" }, ["default", "expired"], { way: "expired" }],
  ];
  for (const [what, type, config, handles, expected] of rules) {
    it(`goes on by its node's rule when nobody answers in time: ${what}`, async () => {
      const { goOn, answer, run } = await ask(asking(type, config, handles));
      house.api.advance((day - 60) * 1000);
      await house.sweep();
      assert.equal(await house.dispatch(), 0);
      house.api.advance(120_000);
      await house.sweep();
      const done = await goOn("succeeded");
      const { way } = done.output as { way: string };
      assert.deepEqual({ way }, expected);
      assert.ok((await house.told(run.id)).includes("input.resolved ask"));
      const late = await answer(type === "approval" ? { decision: "approve" } : { decision: "respond", feedback: 1 });
      assert.equal(late.status, 400);
      assert.match(JSON.stringify(late.body.error.details), /it is expired/);
    });
  }

  for (const [type, config] of [
    ["approval", { on_timeout: "fail" }],
    ["feedback", { on_timeout: "fail" }],
    ["feedback", {}],
  ] as const) {
    it(`fails when nobody answers in time: ${type} ${JSON.stringify(config)}`, async () => {
      const handles = type === "approval" ? approvals : ["default"];
      const { goOn } = await ask(asking(type, config, handles));
      house.api.advance((day + 60) * 1000);
      await house.sweep();
      const { error } = await goOn("failed");
      assert.deepEqual([error.code, error.node_id], ["input_expired", "ask"]);
    });
  }

  it("takes feedback that fits the node's schema, and names what does not", async () => {
    const response_schema = {
      type: "object",
      properties: { stars: { type: "integer", required: true }, words: { type: "string" } },
    };
    const { answer, goOn } = await ask(asking("feedback", { response_schema }, ["default"]));
    const refusals: [object, RegExp][] = [
      [{ decision: "respond", feedback: { words: "Nice" } }, /feedback\.stars/],
      [{ decision: "respond", feedback: { stars: "five" } }, /feedback\.stars/],
      [{ decision: "respond", feedback: "five" }, /feedback/],
      [{ decision: "respond" }, /feedback/],
      [{ decision: "approve", feedback: { stars: 5 } }, /decision/],
      [{ decision: "respond", feedback: { stars: 5 }, params: {} }, /params/],
    ];
    for (const [response, named] of refusals) {
      const { status, body } = await answer(response);
      assert.equal(status, 400, JSON.stringify(response));
      assert.match(Object.keys(body.error.details).join(" "), named);
    }
    const given = { decision: "respond", feedback: { stars: 5 }, responded_by: "ada", comment: "thanks" };
    assert.equal((await answer(given)).status, 200);
    const { output } = await goOn("succeeded");
    assert.deepEqual(output.answer, { feedback: { stars: 5 }, responded_by: "ada", comment: "thanks" });
  });

  it("keeps U+0000 of a model out of what Postgres cannot keep, and in what it can", async () => {
    const definition = {
      ...answering,
      nodes: [
        ...answering.nodes.slice(0, 2),
        { id: "ok", type: "approval", config: { prompt: "{{text}}?" }, inputs: { text: "$.nodes.ask.output.text" } },
        out("out", { text: "$.nodes.ok.output.params.text" }),
      ],
      edges: edges(["in", "ask"], ["ask", "ok"], ["ok", "out", "approved"]),
    };
    const model = {
      async *reply() {
        yield { kind: "text" as const, text: "a\0b" };
      },
      close() {},
    };
    const { run, answer, goOn } = await ask(definition, { model });
    const [request] = run.input_requests;
    assert.deepEqual([request.prompt, request.params.text], ["ab?", "a\0b"]);
    assert.equal((await answer({ decision: "approve" })).status, 200);
    assert.deepEqual((await goOn("succeeded")).output, { text: "a\0b" });
  });

  it("is canceled although the request for it came while it was being parked", async () => {
    let speak: () => void = () => undefined;
    const engine = await house.start({
      model: {
        async *reply() {
          await new Promise<void>((resolve) => {
            speak = resolve;
          });
          yield { kind: "text", text: "x" };
        },
        close() {},
      },
    });
    const { host } = await house.client.deploy({
      ...answering,
      nodes: [...answering.nodes.slice(0, 2), { id: "ok", type: "approval", config: { prompt: "?" } }, out("out", {})],
      edges: edges(["in", "ask"], ["ask", "ok"], ["ok", "out", "approved"]),
    });
    const { body } = await house.client.call(host, "POST", "/v1/runs", {
      body: { input: { question: "?" }, background: true },
    });
    await house.dispatch(engine);
    await eventually(async () => (await house.told(body.data.id)).includes("node.started ask"), "it works");
    // As if the holder had not heard of it: no message tells.
    await house.api.sql`
      update run set cancel_requested_at = now(), cancel_reason = 'no', cancel_by = 'ada' where id = ${body.data.id}`;
    speak();
    const run = await house.client.until(host, body.data.id, "canceled");
    assert.deepEqual(run.input_requests, []);
    const told = await house.told(run.id);
    assert.equal(told.at(-1), "run.canceled");
    const [request] = await house.api.sql`select status from input_request where run_id = ${run.id}`;
    assert.equal(request?.status, "canceled");
  });

  it("is taken up although the answer came while it was being parked", async () => {
    const { run, answer, goOn } = await ask(approving);
    await answer({ decision: "approve" });
    // As if the answer had found it running: nobody made it pending.
    await house.api.sql`update run set status = 'awaiting_input' where id = ${run.id}`;
    await house.api.sql`delete from graphile_worker._private_jobs`;
    await house.sweep();
    assert.deepEqual((await goOn("succeeded")).output, { sent: "Late check-out" });
  });

  it("is answered at its creation as it is read afterwards", async () => {
    const { host } = await house.client.deploy(approving);
    const bodies = [
      { input: { question: "?" } },
      { input: { question: "é\u{1F600}" }, session_id: "s", user_id: "u", metadata: { room: 12, tags: ["late"] } },
    ];
    for (const body of bodies) {
      for (let n = 0; n < 2; n += 1) {
        const answer = await house.client.call(host, "POST", "/v1/runs", { body: { ...body, background: true } });
        assert.equal(answer.status, 202);
        const read = await house.client.call(host, "GET", `/v1/runs/${answer.body.data.id}`);
        assert.deepEqual(answer.body, read.body);
        assert.deepEqual(await house.told(answer.body.data.id), ["run.created"]);
      }
    }
    // One job for each, as for the ones that are made with a count and a transaction around them.
    assert.equal(await house.dispatch(await house.start()), 4);
  });
});
