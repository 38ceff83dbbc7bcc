/** Apps on an api of the tests' own: deployed through the management API, called at their hosts. */
import assert from "node:assert/strict";
import type { Answer, ApiHarness } from "./api_harness.ts";
import { patienceMs } from "./patience.ts";

/** `in → ask (echo) → out`: answers the question with itself. */
export const answering = {
  schema_version: 1,
  input: { type: "object", properties: { question: { type: "string", required: true } } },
  nodes: [
    { id: "in", type: "input" },
    {
      id: "ask",
      type: "llm",
      config: { model: "echo", messages: [{ role: "user", template: "{{q}}" }] },
      inputs: { q: "$.input.question" },
    },
    { id: "out", type: "output", inputs: { answer: "$.nodes.ask.output.text" } },
  ],
  edges: [
    { from: "in", to: "ask" },
    { from: "ask", to: "out" },
  ],
};

/** `in → ok (approval) → out`: asks whether to send the question; its text may be changed, the addressee not. */
export const approving = {
  ...answering,
  nodes: [
    { id: "in", type: "input" },
    {
      id: "ok",
      type: "approval",
      config: { prompt: "Send it?", editable_params: ["text"] },
      inputs: { text: "$.input.question", to: "guest" },
    },
    { id: "out", type: "output", inputs: { sent: "$.nodes.ok.output.params.text" } },
  ],
  edges: [
    { from: "in", to: "ok" },
    { from: "ok", to: "out", handle: "approved" },
  ],
};

export interface DeployedApp {
  id: string;
  host: string;
  workflowId: string;
}

export interface AppRequest {
  body?: unknown;
  /** Instead of the client's own access key; empty for none. */
  token?: string;
  headers?: Record<string, string>;
}

export interface AppClient {
  /** Of the project. */
  accessKey: string;
  manage(method: string, path: string, body?: unknown): Promise<Answer>;
  deploy(definition: unknown, change?: object): Promise<DeployedApp>;
  /** A request to an app's own host. */
  call(host: string, method: string, path: string, request?: AppRequest): Promise<Answer>;
  /** Polls the run, as a client does, until it has this status. */
  until(host: string, runId: string, status: string): Promise<Answer["body"]>;
}

const pollMs = 20;

/** Asks again and again, as a client does that has no stream. */
export async function eventually(fact: () => Promise<boolean>, what: string): Promise<void> {
  const untilMs = performance.now() + patienceMs;
  while (!(await fact())) {
    if (performance.now() > untilMs) assert.fail(`Expected within ${patienceMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

export async function openAppClient(api: ApiHarness): Promise<AppClient> {
  const manage: AppClient["manage"] = (method, path, body) => api.call(method, path, { token: api.owner.token, body });
  const key = await manage("POST", "/v1/access-keys", { name: "test", project_id: api.projectId });
  const accessKey: string = key.body.data.secret;

  const call: AppClient["call"] = async (host, method, path, { body, token = accessKey, headers } = {}) => {
    const response = await api.app.fetch(
      new Request(`http://${host}:8080${path}`, {
        method,
        headers: {
          host: `${host}:8080`,
          "content-type": "application/json",
          ...(token && { authorization: `Bearer ${token}` }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      }),
    );
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };

  return {
    accessKey,
    manage,
    call,
    async deploy(definition, change = {}) {
      const place = { name: "Front désk", project_id: api.projectId };
      const workflow = await manage("POST", "/v1/workflows", { ...place, definition });
      assert.equal(workflow.status, 201, JSON.stringify(workflow.body));
      const workflowId: string = workflow.body.data.id;
      const app = await manage("POST", "/v1/apps", { ...place, workflow_id: workflowId, ...change });
      assert.equal(app.status, 201, JSON.stringify(app.body));
      return { id: app.body.data.id, host: app.body.data.hostname, workflowId };
    },
    async until(host, runId, status) {
      let run: Answer["body"];
      await eventually(async () => {
        run = (await call(host, "GET", `/v1/runs/${runId}`)).body.data;
        return run.status === status;
      }, `the run is ${status}`);
      return run;
    },
  };
}
