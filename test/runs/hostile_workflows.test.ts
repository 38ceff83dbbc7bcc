/** Workflows that are written to hold up a worker: each fails with a clear word, and nobody else notices. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isTerminal } from "#contracts/run_event.ts";
import { type Answer, type ApiHarness, openApiHarness, startTestWorker } from "../kit/api_harness.ts";
import { type AppClient, answering, eventually, openAppClient } from "../kit/app_client.ts";

/** In which a run is to be refused or to have failed, whatever else goes on. */
const patienceMs = 10_000;

const inputNode = { id: "in", type: "input" };
const outputNode = { id: "out", type: "output" };
/** `in → node → out`. */
const around = (node: object) => ({
  schema_version: 1,
  nodes: [inputNode, { id: "node", ...node }, outputNode],
  edges: [
    { from: "in", to: "node" },
    { from: "node", to: "out" },
  ],
});
const template = (text: string, inputs: object = { a: "$.input.list" }) =>
  around({ type: "template", config: { template: text }, inputs });
const condition = (...tests: object[]) =>
  around({ type: "condition", config: { cases: [{ handle: "yes", any: tests }] } });

const hostile: Record<string, object> = {
  "descents in each other": template("{{a}}", { a: "$.input..*..*..*..*" }),
  "a filter that counts everything for each value": template("{{a}}", { a: "$.input..[?count($.input.list[*])>1]" }),
  "sections in sections over a list": template("{{#a}}{{#a}}{{#a}}{{#a}}x{{/a}}{{/a}}{{/a}}{{/a}}"),
  "the whole input over and over": template(
    "x",
    Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`a${i}`, "$.input"])),
  ),
  "a pattern on a long text": condition({ left: "$.input.text", op: "matches", right: "(?:a?){100}a{100}b$" }),
  "a repetitive text in another": condition({ left: "$.input.text", op: "contains", right: "$.input.part" }),
  "one large value against many": condition(
    ...Array.from({ length: 50 }, () => ({ left: "$.input.list", op: "in", right: "$.input.lists" })),
  ),
};
const input = {
  deep: JSON.parse(`${"[".repeat(60)}${"]".repeat(60)}`),
  question: "When is breakfast?",
  text: "a".repeat(100_000),
  part: `${"a".repeat(20_000)}b${"a".repeat(20_000)}`,
  list: Array.from({ length: 2000 }, (_, i) => i),
  lists: Array.from({ length: 10 }, () => [...Array.from({ length: 1999 }, (_, i) => i), -1]),
};

describe("a hostile workflow", () => {
  let api: ApiHarness;
  let client: AppClient;
  let worker: Awaited<ReturnType<typeof startTestWorker>>;
  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
    worker = await startTestWorker(api);
  });
  after(async () => {
    await worker?.close();
    await api?.close();
  });

  /** As it was deployed before it would have been refused. */
  async function deploy(definition: object): Promise<string> {
    const { host, workflowId } = await client.deploy(answering);
    await api.sql`update workflow_version set definition = ${api.sql.json(definition as never)} where workflow_id = ${workflowId}`;
    return host;
  }
  const start = async (host: string, body: object): Promise<string> => {
    const { status, body: answer } = await client.call(host, "POST", "/v1/runs", {
      body: { background: true, ...body },
    });
    assert.equal(status, 202, JSON.stringify(answer));
    return answer.data.id;
  };

  async function ended(host: string, id: string): Promise<Answer["body"]> {
    let run: Answer["body"];
    await eventually(async () => {
      run = (await client.call(host, "GET", `/v1/runs/${id}`)).body.data;
      return isTerminal(run.status);
    }, "the run ends");
    return run;
  }

  it("fails within 10 s, while the runs of others finish beside it and the worker's health answers", async (t) => {
    const innocent = (await client.deploy(answering)).host;
    const hosts = await Promise.all(
      Object.entries(hostile).map(async ([what, definition]) => ({ what, host: await deploy(definition) })),
    );
    let watching = true;
    const healthy = (async () => {
      let answers = 0;
      for (; watching; answers += 1) {
        const { status } = await fetch(`${worker.url}/healthz`, { signal: AbortSignal.timeout(patienceMs) });
        assert.equal(status, 200);
      }
      return answers;
    })();
    const begun = await Promise.all(
      hosts.flatMap(({ what, host }) => [
        start(host, { input }).then((id) => ({ what, host, id, ends: "failed" })),
        start(innocent, { input: { question: what } }).then((id) => ({ what, host: innocent, id, ends: "succeeded" })),
      ]),
    );
    let tookMsMax = 0;
    for (const { what, host, id, ends } of begun) {
      const run = await ended(host, id);
      assert.equal(run.status, ends, `${what}: ${JSON.stringify(run.error)}`);
      const tookMs = Date.parse(run.ended_at) - Date.parse(run.started_at);
      assert.ok(tookMs <= patienceMs, `${what}: ${ends} after ${tookMs} ms`);
      tookMsMax = Math.max(tookMsMax, tookMs);
      if (ends === "failed") assert.equal(run.error.code, "evaluation_too_expensive", `${what}: ${run.error.message}`);
      else assert.equal(run.output.answer, what);
    }
    watching = false;
    assert.ok((await healthy) > 0);
    t.diagnostic(`the last one after ${tookMsMax} ms`);
  });

  it("that is a list of choices for each of many items fails its caller's request, not the api", async () => {
    const enumeration = Array.from({ length: 1000 }, (_, i) => [i]);
    const schema = {
      type: "object",
      properties: { list: { type: "array", items: { type: "any", enum: enumeration } } },
    };
    const host = await deploy({ ...answering, input: schema });
    const body = { input: { list: Array.from({ length: 20_000 }, () => [999]) } };
    const refused = await client.call(host, "POST", "/v1/runs", { body });
    assert.equal(refused.status, 400);
    assert.match(refused.body.error.details.input, /at most 1000000 steps/);
  });

  it("is refused when it is deployed, where it can be told by looking", async () => {
    const definition = hostile["descents in each other"];
    const refused = await client.manage("POST", "/v1/workflows", {
      name: "Hostile",
      project_id: api.projectId,
      definition,
    });
    assert.equal(refused.status, 400);
    assert.match(refused.body.error.details["definition.nodes.1.inputs"], /second one at position 10/);
  });
});
