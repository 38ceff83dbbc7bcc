import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { destinationOf } from "#contracts/hosts.ts";
import { type ApiHarness, appConfig, openApiHarness } from "#test/kit/api_harness.ts";
import type { OpenApiDocument } from "#test/kit/open_api_examples.ts";

const workflow = {
  schema_version: 1,
  nodes: [
    { id: "in", type: "input" },
    { id: "out", type: "output", inputs: {} },
  ],
  edges: [{ from: "in", to: "out" }],
};

describe("hosts and path forms at the api", () => {
  let api: ApiHarness;
  let key: string;
  let app: { id: string; hostname: string };

  before(async () => {
    api = await openApiHarness();
    const make = async (path: string, body: object) => {
      const made = await api.call("POST", path, { token: api.owner.token, body });
      assert.equal(made.status, 201, JSON.stringify(made.body));
      return made.body.data;
    };
    const place = { name: "Desk", project_id: api.projectId };
    key = (await make("/v1/access-keys", place)).secret;
    const { id } = await make("/v1/workflows", { ...place, definition: workflow });
    app = await make("/v1/apps", { ...place, workflow_id: id });
  });
  after(() => api.close());

  const ask = async (url: string, init: RequestInit = {}) => {
    const host = new URL(url).host;
    const headers = { host, authorization: `Bearer ${key}`, "content-type": "application/json" };
    const response = await api.app.fetch(new Request(url, { headers, ...init }));
    return { status: response.status, body: (await response.json()) as { data?: { id: string } } };
  };

  it("serve an app alike, also where the host is api.*", async () => {
    const label = app.hostname.replace(`.${appConfig.appDomain}`, "");
    const post = { method: "POST", body: JSON.stringify({ background: true }) };
    const { status, body } = await ask(`http://127.0.0.1/-/apps/${label}/v1/runs`, post);
    assert.equal(status, 202, JSON.stringify(body));
    const id = body.data?.id;
    for (const base of [`http://${app.hostname}`, `http://api.desk.example/-/apps/${label}`]) {
      const read = await ask(`${base}/v1/runs/${id}`);
      assert.deepEqual([read.status, read.body.data?.id], [200, id], base);
    }
  });

  it("answer 404 in the platform's contract for what this version does not have", async () => {
    const absent = { "no router": [], "no knowledge bases": [] } as Record<string, string[]>;
    absent["no router"] = ["http://router.desk.example/v1/models", "http://127.0.0.1/-/router/v1/models"];
    absent["no knowledge bases"] = ["http://a.kb.desk.example/v1/search", "http://127.0.0.1/-/kb/a/v1/search"];
    for (const [what, urls] of Object.entries(absent)) {
      for (const url of urls) {
        const details = { host: `This version of Frontdesk has ${what}` };
        const body = { error: { code: "not_found", message: "Not Found", details } };
        assert.deepEqual(await ask(url), { status: 404, body }, url);
      }
    }
    const unknown = await ask("http://127.0.0.1/-/apps/nobody-000000/v1/runs");
    assert.deepEqual(unknown, { status: 404, body: { error: { code: "not_found", message: "Not Found" } } });
  });

  it("know every documented path of each service", async () => {
    const pathsOf = async (url: string) => {
      const response = await api.app.fetch(new Request(url));
      return Object.keys(((await response.json()) as OpenApiDocument).paths);
    };
    const serviceOf = (path: string) => destinationOf("127.0.0.1", path, appConfig.appDomain).service;
    const platform = await pathsOf("http://127.0.0.1/openapi.json");
    const tax = await pathsOf("http://127.0.0.1/openapi/tax.json");
    assert.ok(platform.length > 20 && tax.length > 20);
    assert.deepEqual(
      platform.filter((path) => serviceOf(path) !== "platform"),
      [],
    );
    assert.deepEqual(
      tax.filter((path) => !["accounts", "tax"].includes(serviceOf(path))),
      [],
    );
  });
});
