import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { createGuardedHttp } from "#outbound/guarded_http.ts";
import type { LanguageModel, LlmRequest } from "#providers/language_model.ts";
import { evaluationLimits, newBudget } from "../evaluation_budget.ts";
import { kindOf } from "./catalogue.ts";
import { compare } from "./condition/node.ts";
import { type NodeContext, type NodeDeps, NodeError, type NodeEvent } from "./node_kind.ts";

const http = createGuardedHttp({ allowPrivateAddresses: true });
const now = new Date("2026-01-01T00:00:00Z");
const priced = {
  provider: "test",
  currency: "USD",
  costOf: ({ total_tokens }: { total_tokens: number }) => total_tokens / 100,
};
const deps: NodeDeps = {
  http,
  openModel: async () => assert.fail("no model is expected"),
  callMcpTool: async () => assert.fail("no MCP tool is expected"),
  definitionOf: async () => undefined,
  now: () => now,
};

const budgetOf = () => newBudget("the test", evaluationLimits.nodeStepsMax);

/** Executes one node on its own; answers what came of it and what it emitted. */
async function execute(type: string, config: Record<string, unknown>, change: Partial<NodeContext> = {}) {
  const events: NodeEvent[] = [];
  const context = {
    input: { question: "Late check-out?" },
    nodes: { a: { output: { n: 7 } } },
    run: { id: "r", metadata: {} },
  };
  const node: NodeContext = {
    config,
    inputs: {},
    context,
    budget: budgetOf(),
    nodeRunId: "node-run-1",
    streams: true,
    answer: undefined,
    woken: false,
    emit: async (event) => {
      events.push(event);
    },
    deps,
    signal: new AbortController().signal,
    ...change,
  };
  const kind = kindOf({ type });
  assert.ok(kind, type);
  return { result: await kind.execute(node), events };
}

describe("template and transform", () => {
  it("fills a template without escaping, objects as JSON", async () => {
    const { result } = await execute(
      "template",
      { template: "{{q}} {{o}}{{#list}}-{{.}}{{/list}}" },
      { inputs: { q: "<a>", o: { b: 1 }, list: [1, 2] } },
    );
    assert.deepEqual(result, { is: "done", output: { text: '<a> {"b":1}-1-2' }, handle: "default" });
  });

  it("picks values by JSONPath, keeps literals, answers null for no match", async () => {
    const map = { n: "$.nodes.a.output.n", q: "$.input.question", literal: "x", escaped: "$$.x", none: "$.input.gone" };
    const { result } = await execute("transform", { map });
    const output = { n: 7, q: "Late check-out?", literal: "x", escaped: "$.x", none: null };
    assert.deepEqual(result, { is: "done", output, handle: "default" });
  });
});

describe("condition", () => {
  it("leaves by the first case that holds, else by else", async () => {
    const cases = [
      { handle: "big", all: [{ left: "$.nodes.a.output.n", op: "gt" as const, right: 10 }] },
      { handle: "late", any: [{ left: "$.input.question", op: "contains" as const, right: "Late" }] },
    ];
    assert.deepEqual((await execute("condition", { cases })).result, {
      is: "done",
      output: { handle: "late" },
      handle: "late",
    });
    assert.deepEqual((await execute("condition", { cases: cases.slice(0, 1) })).result, {
      is: "done",
      output: { handle: "else" },
      handle: "else",
    });
  });

  const table: [unknown, Parameters<typeof compare>[1], unknown, boolean][] = [
    [1, "eq", 1, true],
    [{ a: [1] }, "eq", { a: [1] }, true],
    ["1", "eq", 1, false],
    [1, "ne", 2, true],
    [2, "gt", 1, true],
    ["b", "gt", "a", true],
    ["2", "gt", 1, false],
    [undefined, "lt", 1, false],
    [1, "gte", 1, true],
    [1, "lte", 0, false],
    ["b", "in", ["a", "b"], true],
    ["b", "in", "abc", true],
    [[1, 2], "contains", 2, true],
    ["abc", "starts_with", "ab", true],
    ["room 12", "matches", "^room \\d+$", true],
    ["room", "matches", "\\d", false],
    [0, "exists", undefined, true],
    [null, "exists", undefined, false],
    ["", "empty", undefined, true],
    [[], "empty", undefined, true],
    [{}, "empty", undefined, true],
    [0, "empty", undefined, false],
  ];
  for (const [left, op, right, holds] of table) {
    it(`${JSON.stringify(left)} ${op} ${JSON.stringify(right)} is ${holds}`, () =>
      assert.equal(compare(left, op, right, budgetOf()), holds));
  }

  it("matches a hostile pattern in linear time", () => {
    assert.equal(compare(`${"a".repeat(50_000)}!`, "matches", "^(a+)+$", budgetOf()), false);
  });
});

describe("approval and feedback", () => {
  const inputs = { text: "Dear guest", to: "a@example.com" };

  it("asks first, with the inputs as params, and leaves by the answer", async () => {
    const config = { prompt: "Send to {{to}}?", editable_params: ["text"] };
    const asked = await execute("approval", config, { inputs });
    assert.deepEqual(asked.result, {
      is: "asking",
      question: {
        type: "approval_request",
        prompt: "Send to a@example.com?",
        params: inputs,
        editable_params: ["text"],
      },
    });
    const changed = { ...inputs, text: "Hello" };
    const answered = await execute("approval", config, { inputs, answer: { decision: "approve", params: changed } });
    assert.deepEqual(answered.result, {
      is: "done",
      output: { decision: "approve", params: changed },
      handle: "approved",
    });
  });

  const expired = { decision: "expired", params: inputs } as const;
  it("follows its rule when nobody answers", async () => {
    const handle = async (on_timeout: "reject" | "branch") => {
      const { result } = await execute("approval", { prompt: "?", on_timeout }, { inputs, answer: expired });
      return result.is === "done" && result.handle;
    };
    assert.deepEqual([await handle("reject"), await handle("branch")], ["rejected", "expired"]);
    const failing = execute("approval", { prompt: "?", on_timeout: "fail" }, { inputs, answer: expired });
    await assert.rejects(failing, (error) => error instanceof NodeError && error.code === "input_expired");
    await assert.rejects(execute("feedback", { prompt: "?" }, { inputs, answer: expired }), NodeError);
  });

  it("hands feedback on", async () => {
    const { result } = await execute(
      "feedback",
      { prompt: "?" },
      { answer: { decision: "respond", params: {}, feedback: { stars: 5 } } },
    );
    assert.deepEqual(result, { is: "done", output: { feedback: { stars: 5 } }, handle: "default" });
  });
});

describe("delay", () => {
  it("sleeps until its moment and then goes on", async () => {
    assert.deepEqual((await execute("delay", { seconds: 90 })).result, {
      is: "sleeping",
      until: new Date("2026-01-01T00:01:30Z"),
    });
    assert.deepEqual((await execute("delay", { until: "2026-02-01T00:00:00Z" })).result, {
      is: "sleeping",
      until: new Date("2026-02-01T00:00:00Z"),
    });
    assert.deepEqual((await execute("delay", { seconds: 90 }, { woken: true })).result, {
      is: "done",
      output: {},
      handle: "default",
    });
    await assert.rejects(execute("delay", { until: "soon" }), /RFC 3339/);
  });
});

describe("nodes that call out", () => {
  let base = "";
  const seen: {
    method: string | undefined;
    url: string | undefined;
    headers: IncomingMessage["headers"];
    body: string;
  }[] = [];
  const answers: ((response: ServerResponse) => void)[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    seen.push({ method: request.method, url: request.url, headers: request.headers, body });
    const answer = answers.shift() ?? ((r) => r.setHeader("content-type", "application/json").end('{"ok":true}'));
    answer(response);
  });
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await http.close();
  });

  it("http: fills URL, query, headers and body, and names the call by its node run", async () => {
    const config = {
      method: "POST" as const,
      url: `${base}/rooms/{{room}}`,
      headers: [{ key: "X-Hotel", value: "{{hotel}}" }],
      query: [{ key: "q", value: "{{hotel}}" }],
      body: { n: "$.nodes.a.output.n", fixed: [1] },
    };
    const { result } = await execute("http", config, { inputs: { room: "1/2", hotel: "Grand & Co" } });
    const sent = seen.at(-1);
    assert.deepEqual(
      [sent?.method, sent?.url, sent?.body],
      ["POST", "/rooms/1%2F2?q=Grand+%26+Co", '{"n":7,"fixed":[1]}'],
    );
    assert.deepEqual([sent?.headers["x-hotel"], sent?.headers["idempotency-key"]], ["Grand & Co", "node-run-1"]);
    assert.ok(result.is === "done" && (result.output as { status: number }).status === 200);
  });

  it("http: a status of 400 and above fails; 5xx may be tried again", async () => {
    for (const [status, retryable] of [
      [404, false],
      [429, true],
      [503, true],
    ] as const) {
      answers.push((response) => response.writeHead(status).end());
      const failing = execute("http", { url: base });
      await assert.rejects(
        failing,
        (error) => error instanceof NodeError && error.code === "http_status" && error.retryable === retryable,
      );
    }
  });

  it("http: dials no private address", async () => {
    const guarded = createGuardedHttp({ allowPrivateAddresses: false });
    const failing = execute("http", { url: base }, { deps: { ...deps, http: guarded } });
    await assert.rejects(failing, (error) => error instanceof NodeError && error.code === "address_refused");
    await guarded.close();
  });

  const bookRoom = () => ({
    name: "book_room",
    method: "POST" as const,
    url: `${base}/book/{room}`,
    params: [
      { name: "room", in: "path" as const, required: true },
      { name: "guest" },
      { name: "when", in: "query" as const },
    ],
  });

  it("tool: puts each param where it belongs", async () => {
    const { result, events } = await execute(
      "tool",
      { http: bookRoom() },
      { inputs: { room: "7 a", guest: "Ada", when: "today" } },
    );
    assert.deepEqual([seen.at(-1)?.url, seen.at(-1)?.body], ["/book/7%20a?when=today", '{"guest":"Ada"}']);
    assert.deepEqual(result, { is: "done", output: { result: { ok: true } }, handle: "default" });
    assert.deepEqual(
      events.map(({ type }) => type),
      ["tool.called", "tool.completed"],
    );
    await assert.rejects(execute("tool", { http: bookRoom() }), /room is required/);
  });

  it("tool: asks first where an approval is required, and calls nothing when it is refused", async () => {
    const config = { http: bookRoom(), requires_approval: true };
    const calls = seen.length;
    assert.equal((await execute("tool", config, { inputs: { room: "7" } })).result.is, "asking");
    const { result } = await execute("tool", config, { answer: { decision: "reject", params: {} } });
    assert.ok(result.is === "done" && result.handle === "rejected");
    assert.equal(seen.length, calls);
  });

  it("llm: streams text, calls tools in between and adds up what was used", async () => {
    const requests: LlmRequest[] = [];
    const model: LanguageModel = {
      async *reply(request) {
        requests.push({ ...request, history: [...request.history] });
        if (requests.length === 1) yield { kind: "tool_call", id: "c1", name: "book_room", arguments: { room: "9" } };
        else for (const text of ["Room ", "9 is yours."]) yield { kind: "text", text };
        yield { kind: "usage", prompt: 10, completion: 2, cached: 0 };
      },
      close() {},
    };
    const messages = [
      { role: "system" as const, template: "Be kind." },
      { role: "user" as const, template: "{{q}}" },
    ];
    const config = { model: "scripted", messages, tools: [bookRoom()] };
    const { result, events } = await execute("llm", config, {
      inputs: { q: "Book 9" },
      deps: { ...deps, openModel: async () => ({ ...priced, model }) },
    });
    assert.deepEqual(result, { is: "done", output: { text: "Room 9 is yours." }, handle: "default" });
    assert.deepEqual(
      events.map(({ type }) => type),
      [
        "model.completed",
        "tool.called",
        "tool.completed",
        "content.delta",
        "content.delta",
        "content.completed",
        "model.completed",
      ],
    );
    const requested = events.flatMap((event) => (event.type === "model.completed" ? [event.data] : []));
    const own = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
    assert.deepEqual(
      requested.map(({ index, provider, model, usage, cost }) => ({ index, provider, model, usage, cost })),
      [0, 1].map((index) => ({ index, provider: "test", model: "scripted", usage: own, cost: 0.12 })),
    );
    assert.equal(requests[0]?.instructions, "Be kind.");
    assert.deepEqual(requests[1]?.history.at(-1), {
      role: "tool",
      call: { id: "c1", name: "book_room", arguments: { room: "9" } },
      text: '{"ok":true}',
    });
  });

  it("llm: holds structured output to its schema", async () => {
    const saying = (text: string): LanguageModel => ({
      async *reply() {
        yield { kind: "text", text };
      },
      close() {},
    });
    const config = {
      model: "m",
      messages: [{ role: "user" as const, template: "x" }],
      output_schema: { type: "object" as const, properties: { nights: { type: "integer" as const, required: true } } },
    };
    const run = (text: string) =>
      execute("llm", config, { deps: { ...deps, openModel: async () => ({ ...priced, model: saying(text) }) } });
    const { result } = await run('{"nights":2}');
    assert.ok(result.is === "done");
    assert.deepEqual(result.output, { text: '{"nights":2}', json: { nights: 2 } });
    for (const bad of ["two", '{"nights":"2"}'])
      await assert.rejects(run(bad), (error) => error instanceof NodeError && error.code === "bad_output");
  });
});
