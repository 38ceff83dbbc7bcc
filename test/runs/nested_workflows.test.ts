/** Maps and subworkflows, from the management API to a run's end on a worker. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { RunEvent } from "#contracts/run_event.ts";
import { type ApiHarness, openApiHarness, startTestWorker } from "#test/kit/api_harness.ts";
import { type AppClient, answering, approving, openAppClient } from "#test/kit/app_client.ts";

const chain = (...ids: string[]) => ids.slice(1).map((to, i) => ({ from: ids[i], to }));

describe("nodes with others inside of them", () => {
  let api: ApiHarness;
  let client: AppClient;
  let worker: { close(): Promise<void> };

  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
    worker = await startTestWorker(api);
  });
  after(async () => {
    await worker.close();
    await api.close();
  });

  async function saveWorkflow(
    definition: unknown,
    project_id = api.projectId,
  ): Promise<{ workflow_id: string; version_id: string }> {
    const { status, body } = await client.manage("POST", "/v1/workflows", { name: "W", project_id, definition });
    assert.equal(status, 201, JSON.stringify(body));
    return { workflow_id: body.data.id, version_id: body.data.latest_version_id };
  }

  const using = (config: object, inputs: object = { question: "$.input.question" }) => ({
    ...answering,
    nodes: [
      { id: "in", type: "input" },
      { id: "sub", type: "subworkflow", config, inputs },
      { id: "out", type: "output", inputs: { said: "$.nodes.sub.output.answer" } },
    ],
    edges: chain("in", "sub", "out"),
  });

  /** Each guest gets an answer of the subworkflow. */
  const greeting = (config: object) => ({
    schema_version: 1,
    nodes: [
      { id: "in", type: "input" },
      {
        id: "each",
        type: "map",
        config: {
          items: "$.input.guests",
          concurrency: 3,
          body: {
            nodes: [
              { id: "sub", type: "subworkflow", config, inputs: { question: "$.item.name" } },
              { id: "one", type: "output", inputs: { said: "$.nodes.sub.output.answer", n: "$.index" } },
            ],
            edges: chain("sub", "one"),
          },
        },
      },
      { id: "out", type: "output", inputs: { all: "$.nodes.each.output.items" } },
    ],
    edges: chain("in", "each", "out"),
  });

  it("answer each item of a map by a subworkflow, told event by event without a gap", async () => {
    const { host } = await client.deploy(greeting(await saveWorkflow(answering)));
    const guests = Array.from({ length: 30 }, (_, n) => ({ name: `Guest ${n}` }));
    const { status, body } = await client.call(host, "POST", "/v1/runs", { body: { input: { guests } } });
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual(
      body.data.output.all,
      guests.map(({ name }, n) => ({ said: name, n })),
    );
    const events: RunEvent[] = [];
    for (let page = 1; events.length < body.data.last_event_id; page += 1) {
      const listed = await client.call(host, "GET", `/v1/runs/${body.data.id}/events?page=${page}&page_size=100`);
      events.push(...listed.body.data);
    }
    assert.deepEqual(
      events.map(({ id }) => id),
      events.map((_, i) => i + 1),
    );
    const subs = events.filter(({ type, node_id }) => type === "node.started" && node_id === "sub");
    assert.deepEqual(
      subs.map(({ iteration }) => iteration).sort((a = 0, b = 0) => a - b),
      guests.map((_, n) => n),
    );
    const map = events.find(({ node_id }) => node_id === "each");
    assert.ok(subs.every(({ parent_node_run_id }) => parent_node_run_id === map?.node_run_id));
    const asks = events.filter(({ type, node_id }) => type === "node.started" && node_id === "ask");
    const parents = new Set(subs.map(({ node_run_id }) => node_run_id));
    assert.ok(asks.length === 30 && asks.every((event) => parents.has(event.parent_node_run_id)));
  });

  it("wait for the person that a subworkflow asks", async () => {
    const { host } = await client.deploy(using(await saveWorkflow(approving)));
    const started = await client.call(host, "POST", "/v1/runs", { body: { input: { question: "Dear guest" } } });
    assert.equal(started.status, 202, JSON.stringify(started.body));
    const { id, input_requests } = started.body.data;
    const responses = [{ input_request_id: input_requests[0].id, decision: "approve", params: { text: "Hello" } }];
    const answered = await client.call(host, "POST", `/v1/runs/${id}/resume`, { body: { responses } });
    assert.equal(answered.status, 200, JSON.stringify(answered.body));
    const done = await client.until(host, id, "succeeded");
    assert.deepEqual(done.output, { said: null });
  });

  it("are refused at save with an error for each node that cannot be executed", async () => {
    const { workflow_id, version_id } = await saveWorkflow(answering);
    const refusal = async (definition: unknown, path = "/v1/workflows") => {
      const place = path === "/v1/workflows" ? { name: "W", project_id: api.projectId } : {};
      const { status, body } = await client.manage("POST", path, { ...place, definition });
      assert.equal(status, 400, JSON.stringify(body));
      return body.error.details as Record<string, string>;
    };
    const nobody = crypto.randomUUID();
    const unknown = await refusal(using({ workflow_id, version_id: nobody }));
    assert.match(unknown["definition.nodes.1.config.version_id"] ?? "", /of this project/);
    const other = await client.manage("POST", "/v1/projects", { name: "Other" });
    const foreign = await saveWorkflow(answering, other.body.data.id);
    assert.match(
      (await refusal(greeting(foreign)))["definition.nodes.1.config.body.nodes.0.config.version_id"] ?? "",
      /./,
    );
    assert.match(
      (await refusal(using({ workflow_id, version_id }, {})))["definition.nodes.1.inputs"] ?? "",
      /question/,
    );
    const user = await saveWorkflow(using({ workflow_id, version_id }));
    for (const used of [{ workflow_id, version_id }, user]) {
      const cycle = await refusal(using(used), `/v1/workflows/${workflow_id}/versions`);
      assert.match(cycle["definition.nodes.1.config.workflow_id"] ?? "", /no cycle/);
    }
    const patched = await client.manage("PATCH", `/v1/workflows/${workflow_id}`, { definition: using(user) });
    assert.equal(patched.status, 400);
  });

  it("are refused where they stand too deep in each other", async () => {
    let used = await saveWorkflow(answering);
    for (let depth = 1; depth <= 5; depth += 1) {
      used = await saveWorkflow(using(used));
    }
    const { status, body } = await client.manage("POST", "/v1/workflows", {
      name: "W",
      project_id: api.projectId,
      definition: using(used),
    });
    assert.equal(status, 400);
    assert.match(body.error.details["definition.nodes.1.config.version_id"], /at most 5/);
    const { host } = await client.deploy(greeting(await saveWorkflow(answering)));
    const deep = await client.call(host, "POST", "/v1/runs", { body: { input: { guests: [] } } });
    assert.deepEqual(deep.body.data.output, { all: [] });
  });

  it("keep the workflow that they use", async () => {
    const used = await saveWorkflow(answering);
    const user = await saveWorkflow(using(used));
    const kept = await client.manage("DELETE", `/v1/workflows/${used.workflow_id}`);
    assert.equal(kept.status, 409);
    assert.match(kept.body.error.details.workflow_id, /subworkflow/);
    assert.equal((await client.manage("DELETE", `/v1/workflows/${user.workflow_id}`)).status, 200);
    assert.equal((await client.manage("DELETE", `/v1/workflows/${used.workflow_id}`)).status, 200);
  });

  it("end with the run, also where it is canceled in the middle of a map", async () => {
    const hang = {
      id: "hang",
      type: "llm",
      config: { model: "echo", options: { hang_on: [1] }, messages: [{ role: "user", template: "x" }] },
    };
    const definition = {
      schema_version: 1,
      nodes: [
        { id: "in", type: "input" },
        {
          id: "each",
          type: "map",
          config: {
            items: [1, 2, 3],
            body: { nodes: [hang, { id: "one", type: "output" }], edges: chain("hang", "one") },
          },
        },
        { id: "out", type: "output" },
      ],
      edges: chain("in", "each", "out"),
    };
    const { host } = await client.deploy(definition);
    const { body } = await client.call(host, "POST", "/v1/runs", { body: { background: true } });
    await client.until(host, body.data.id, "running");
    const canceled = await client.call(host, "POST", `/v1/runs/${body.data.id}/cancel`, { body: {} });
    assert.equal(canceled.body.data.status, "canceled");
  });
});
