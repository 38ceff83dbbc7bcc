import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { createSignInLink } from "#identity/sign_in_links.ts";
import { type ApiHarness, openApiHarness, startTestWorker } from "#test/kit/api_harness.ts";
import {
  answerChecker,
  exampleNamesOf,
  gapsIn,
  type OpenApiDocument,
  operationsOf,
  type Sender,
  sendExample,
  senderOf,
  shownIn,
} from "#test/kit/open_api_examples.ts";
import { madeHead, madeSpan } from "#test/kit/traces/made_spans.ts";
import { openSpanStore } from "#traces/open_span_store.ts";

/** What needs a server that is not here: MCP, LiveKit, our gateway for streams. Shown, and not sent. */
const needsOthers = /\/(rooms|sessions|(mcp|\{connection_id\})\/test|rooms\/webhook|stream)$/;

const approving = {
  schema_version: 1,
  input: { type: "object", properties: { guest: { type: "string" } } },
  nodes: [
    { id: "in", type: "input" },
    { id: "ok", type: "approval", config: { prompt: "Send it?" }, inputs: { to: "guest" } },
    { id: "out", type: "output", inputs: { guest: "$.input.guest" } },
  ],
  edges: [
    { from: "in", to: "ok" },
    { from: "ok", to: "out", handle: "approved" },
  ],
};

describe("the platform's OpenAPI documents", () => {
  let api: ApiHarness;
  let worker: { close(): Promise<void> };
  let host: string;
  let key: string;
  let management: OpenApiDocument;
  let ofApp: OpenApiDocument;
  let ofCollector: OpenApiDocument;

  before(async () => {
    api = await openApiHarness();
    worker = await startTestWorker(api);
    const created = await manage("POST", "/v1/access-keys", { name: "test", project_id: api.projectId });
    key = created.body.data.secret;
    ({ host } = await deploy(await workflow()));
    management = (await api.call("GET", "/openapi.json")).body;
    ofCollector = (await api.call("GET", "/-/collector/openapi.json")).body;
    ofApp = (await (await toHost("GET", "/openapi.json")).json()) as OpenApiDocument;
  });
  after(async () => {
    await worker.close();
    await api.close();
  });

  const manage = (method: string, path: string, body?: unknown) =>
    api.call(method, path, { token: api.owner.token, body });
  const toHost = (method: string, path: string, body?: unknown, at = host) =>
    api.app.fetch(
      new Request(`http://${at}${path}`, {
        method,
        headers: { host: at, authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );

  async function workflow(definition?: object): Promise<string> {
    const example = management?.paths["/v1/workflows"]?.post?.requestBody?.content["application/json"]?.examples;
    const shown = Object.values(example ?? {})[0]?.value as { definition: object } | undefined;
    const plain = { ...approving, nodes: [approving.nodes[0], approving.nodes[2]], edges: [{ from: "in", to: "out" }] };
    const body = { name: "W", project_id: api.projectId, definition: definition ?? shown?.definition ?? plain };
    const created = await manage("POST", "/v1/workflows", body);
    assert.equal(created.status, 201, JSON.stringify(created.body));
    return created.body.data.id;
  }
  async function deploy(workflow_id: string): Promise<{ host: string }> {
    const created = await manage("POST", "/v1/apps", { name: "App", project_id: api.projectId, workflow_id });
    assert.equal(created.status, 201, JSON.stringify(created.body));
    return { host: created.body.data.hostname };
  }
  /** A run that waits for an approval, on an app of its own. */
  async function waitingRun() {
    const { host: at } = await deploy(await workflow(approving));
    const run = (await (await toHost("POST", "/v1/runs", { input: { guest: "A" } }, at)).json()) as {
      data: { id: string; status: string };
    };
    assert.equal(run.data.status, "awaiting_input");
    const [request] = await api.sql<{ id: string }[]>`select id from input_request where run_id = ${run.data.id}`;
    return { at, runId: run.data.id, requestId: request?.id ?? "" };
  }

  /** A trace of the newest project, and of the newest app. */
  async function newestTrace(): Promise<string> {
    const [project] = await api.sql<{ id: string }[]>`select id from project order by created_at desc limit 1`;
    const [app] = await api.sql<{ id: string; project_id: string }[]>`
      select id, project_id from app order by created_at desc limit 1`;
    const id = crypto.randomUUID();
    const store = openSpanStore(api);
    const spans = [madeSpan({ span_id: "00f067aa0ba902b7", started_at: api.now() })];
    const organization_id = api.owner.organizationId;
    for (const { project_id, app_id } of [
      { project_id: project?.id ?? "", app_id: null },
      { project_id: app?.project_id ?? "", app_id: app?.id ?? null },
    ]) {
      await store.writeSpans([{ trace: madeHead({ organization_id, project_id }, { id, app_id }), spans }]);
    }
    return id;
  }

  const openManager = async () =>
    senderOf(api, api.owner.token, {
      project_id: async () => api.projectId,
      workflow_id: workflow,
      trace_id: newestTrace,
      agent_id: async () => "0b7f9a52-2f3c-4c58-9a3e-0f1d5c7b9e01",
      sign_in_code: () => createSignInLink(api.sql, api.owner.userId),
    });

  async function problemsOfExamples(document: OpenApiDocument, senderFor: () => Promise<Sender>): Promise<string[]> {
    const check = answerChecker(document);
    const problems: string[] = [];
    for (const operation of operationsOf(document).filter(({ path }) => !needsOthers.test(path))) {
      for (const name of exampleNamesOf(operation)) {
        const where = `${operation.method} ${operation.path} ${name}`;
        try {
          const sent = await sendExample(document, operation, name, await senderFor());
          if (sent.status !== sent.expectedStatus) problems.push(`${where}: ${shownIn(sent)}`);
          for (const problem of check(operation, sent)) problems.push(`${where}: ${problem}`);
        } catch (error) {
          problems.push(`${where}: ${(error as Error).message}`);
        }
      }
    }
    return problems;
  }

  it("are valid by OpenAPI's own schema of 3.1", async () => {
    for (const document of [management, ofApp, ofCollector]) {
      const result = await new Validator().validate(structuredClone(document) as unknown as Record<string, unknown>);
      assert.deepEqual(result.errors ?? [], []);
      assert.equal(result.valid, true);
    }
  });

  it("show an example of every route", () => {
    const isSigned = (gap: string) => gap.startsWith("POST /v1/agents/voice/rooms/webhook");
    assert.deepEqual(
      gapsIn(management).filter((gap) => !isSigned(gap)),
      [],
    );
    assert.deepEqual([...gapsIn(ofApp), ...gapsIn(ofCollector)], []);
  });

  it("have examples that all work, with answers as documented", async () => {
    assert.deepEqual(await problemsOfExamples(management, openManager), []);
    let waiting: Awaited<ReturnType<typeof waitingRun>> | undefined;
    const ofRuns: Sender = {
      standIn: async (name) => {
        waiting ??= await waitingRun();
        return name === "waiting_run_id" ? waiting.runId : waiting.requestId;
      },
      send: ({ method, path, body }) =>
        toHost(method, path, body ?? undefined, path.endsWith("/resume") ? waiting?.at : host),
    };
    assert.deepEqual(await problemsOfExamples(ofApp, async () => ofRuns), []);
    const exporter: Sender = {
      ...senderOf(api, key, {}),
      send: ({ method, path, body }) => toHost(method, path, body, "collector.test"),
    };
    assert.deepEqual(await problemsOfExamples(ofCollector, async () => exporter), []);
  });
});
