/**
 * What every endpoint of the platform answers to requests that it cannot take: who is not let in, what is not
 * there, what does not fit. The endpoints are those of the OpenAPI documents, so a new one is asked too.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type ErrorCode, errorCatalogue } from "#contracts/errors.ts";
import { gatewayHeader } from "#contracts/internal_runs.ts";
import { createPersonalAccessToken } from "#identity/personal_access_tokens.ts";
import { type Answer, type ApiHarness, internalSecret, openApiHarness } from "#test/kit/api_harness.ts";
import { type AppClient, answering, approving, type DeployedApp, openAppClient } from "#test/kit/app_client.ts";

interface Operation {
  method: string;
  /** With `{run_id}` and the like. */
  path: string;
  needsCredential: boolean;
  /** What it takes, where it takes anything. */
  body: { additionalProperties?: boolean } | undefined;
}

describe("a request that cannot be taken", () => {
  let api: ApiHarness;
  let client: AppClient;
  let app: DeployedApp;
  let management: Operation[];
  let onHost: Operation[];
  /** An id of ours for each path parameter. */
  let ids: Record<string, string>;
  let runId: string;
  let connectToken: string;

  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
    app = await client.deploy(approving);
    const created = async (path: string, body: object) => {
      const { status, body: answer } = await client.manage("POST", path, body);
      assert.equal(status, 201, `${path}: ${JSON.stringify(answer)}`);
      return answer.data;
    };
    const { projectId: project_id } = api;
    const agent = await created("/v1/agents/voice/agents", { name: "A", project_id, config: {} });
    const call = await created(`/v1/agents/voice/agents/${agent.id}/calls/websocket`, {});
    const connection = await created("/v1/connections", { name: "C", project_id, provider: "bearer", secret: "s" });
    const key = await created("/v1/access-keys", { name: "K" });
    const workflow = await client.manage("GET", `/v1/workflows/${app.workflowId}`);
    const run = await client.call(app.host, "POST", "/v1/runs", {
      body: { input: { question: "?" }, background: true },
    });
    runId = run.body.data.id;
    const limit = await client.manage("PUT", "/v1/usage/limits", { minutes_per_day: 600 });
    const subject = await client.manage("POST", "/v1/data-subjects/export", { user_id: "nobody" });
    ids = {
      project_id,
      agent_id: agent.id,
      call_id: call.call_id,
      connection_id: connection.id,
      access_key_id: key.id,
      app_id: app.id,
      workflow_id: app.workflowId,
      version_id: workflow.body.data.latest_version_id,
      run_id: runId,
      limit_id: limit.body.data.id,
      request_id: subject.body.data.id,
      trace_id: crypto.randomUUID(),
      session_id: crypto.randomUUID(),
    };
    const token = await client.call(app.host, "POST", "/v1/connect/tokens", { body: { user_id: "guest" } });
    connectToken = token.body.data.token;
    management = operationsOf((await api.call("GET", "/openapi.json")).body);
    onHost = operationsOf((await client.call(app.host, "GET", "/openapi.json")).body);
  });
  after(() => api.close());

  interface Document {
    paths: Record<string, Record<string, Record<string, unknown>>>;
    components: { schemas: Record<string, object> };
  }

  function operationsOf(document: Document): Operation[] {
    return Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { security, requestBody }]) => {
        const content = (requestBody as { content?: Record<string, { schema: { $ref?: string } }> } | undefined)
          ?.content;
        const schema = content?.["application/json"]?.schema;
        const body = schema?.$ref ? document.components.schemas[schema.$ref.split("/").at(-1) ?? ""] : schema;
        return { method: method.toUpperCase(), path, needsCredential: (security as object[]).length > 0, body };
      }),
    );
  }

  const named = ({ method, path }: Operation) => `${method} ${path}`;
  const hasIds = ({ path }: Operation) => path.includes("{");
  const pathOf = ({ path }: Operation, idOf: (name: string) => string | undefined = (name) => ids[name]) =>
    path.replaceAll(/\{(\w+)\}/g, (_, name) => idOf(name) ?? assert.fail(`The test knows no ${name}`));

  function assertRefused({ status, headers, body }: Answer, code: ErrorCode, what: string): void {
    const expected = errorCatalogue[code];
    assert.equal(status, expected.status, `${what}: ${JSON.stringify(body).slice(0, 300)}`);
    assert.deepEqual(
      { ...body.error, details: undefined },
      { code, message: expected.message, details: undefined },
      what,
    );
    for (const text of Object.values(body.error.details ?? {})) assert.equal(typeof text, "string", what);
    if (code === "unauthorized") assert.equal(headers.get("www-authenticate"), "Bearer", what);
  }

  describe("without the right credential", () => {
    it("is a 401 at the management API for everything but a living personal access token", async () => {
      const now = new Date();
      const { userId, organizationId } = api.owner;
      const expired = await createPersonalAccessToken(api.sql, { userId, organizationId, name: "old", now });
      await api.sql`update personal_access_token set revoked_at = now() where name = 'old'`;
      for (const operation of management.filter(({ needsCredential }) => needsCredential)) {
        for (const [kind, token] of Object.entries({
          none: "",
          unknown: "svc_pat_unknown",
          revoked: expired,
          "access key": client.accessKey,
          "connect token": connectToken,
        })) {
          const answer = await api.call(operation.method, pathOf(operation), { token });
          assertRefused(answer, "unauthorized", `${named(operation)} with ${kind}`);
        }
      }
    });

    it("is refused at an app's host for everything but an access key of its place", async () => {
      const keyOf = async (token: string, body: object) =>
        (await api.call("POST", "/v1/access-keys", { token, body: { name: "k", ...body } })).body.data;
      const otherProject = (await client.manage("POST", "/v1/projects", { name: "Other" })).body.data.id;
      const revoked = await keyOf(api.owner.token, {});
      await client.manage("DELETE", `/v1/access-keys/${revoked.id}`);
      const refusals: [string, string, ErrorCode][] = [
        ["none", "", "unauthorized"],
        ["an unknown key", "svc_acc_unknown", "unauthorized"],
        ["a revoked key", revoked.secret, "unauthorized"],
        ["a personal access token", api.owner.token, "unauthorized"],
        ["a connect token", connectToken, "unauthorized"],
        ["a key of another organization", (await keyOf(api.stranger.token, {})).secret, "not_found"],
        ["a key of another project", (await keyOf(api.owner.token, { project_id: otherProject })).secret, "forbidden"],
      ];
      for (const operation of onHost) {
        for (const [kind, token, code] of refusals) {
          const answer = await client.call(app.host, operation.method, pathOf(operation), { token });
          assertRefused(answer, code, `${named(operation)} with ${kind}`);
        }
      }
    });
  });

  describe("for what is not there", () => {
    it("is a 404 at the management API, whether it is unknown, no id at all or another organization's", async () => {
      for (const operation of management.filter(hasIds)) {
        const token = api.owner.token;
        const body = bodyFor(operation);
        const unknown = pathOf(operation, () => crypto.randomUUID());
        assertRefused(await api.call(operation.method, unknown, { token, body }), "not_found", named(operation));
        const noId = pathOf(operation, () => "1");
        assertRefused(await api.call(operation.method, noId, { token, body }), "not_found", named(operation));
        const strangers = await api.call(operation.method, pathOf(operation), { token: api.stranger.token, body });
        assertRefused(strangers, "not_found", `${named(operation)} of a stranger`);
      }
    });

    it("is a 404 at an app's host: unknown runs, other apps' runs, other hosts, other paths", async () => {
      const other = await client.deploy(answering);
      for (const operation of onHost.filter(hasIds)) {
        const headers = { [gatewayHeader]: internalSecret };
        const ask = (host: string, path: string) =>
          client.call(host, operation.method, path, { body: bodyFor(operation), headers });
        assertRefused(
          await ask(
            app.host,
            pathOf(operation, () => crypto.randomUUID()),
          ),
          "not_found",
          named(operation),
        );
        assertRefused(
          await ask(
            app.host,
            pathOf(operation, () => "latest"),
          ),
          "not_found",
          named(operation),
        );
        assertRefused(await ask(other.host, pathOf(operation)), "not_found", `${named(operation)} of another app`);
      }
      for (const operation of onHost) {
        for (const host of ["nobody.apps.test", `a.${app.host}`, "apps.test.apps.test"]) {
          const answer = await client.call(host, operation.method, pathOf(operation), { body: bodyFor(operation) });
          assertRefused(answer, "not_found", `${named(operation)} at ${host}`);
        }
      }
      for (const path of ["/v1/apps", "/v1/nothing", "/internal/runs/positions", "/healthz", "/v1/runs/"]) {
        assertRefused(await client.call(app.host, "GET", path), "not_found", path);
      }
      assertRefused(await client.call(app.host, "DELETE", `/v1/runs/${runId}`), "method_not_allowed", "another method");
      assertRefused(await client.manage("GET", `/v1/runs/${runId}`), "not_found", "a run at the management API");
    });

    it("is nobody else's list", async () => {
      const lists = management.filter((operation) => operation.method === "GET" && !hasIds(operation));
      for (const operation of lists) {
        const { status, body } = await api.call("GET", operation.path, { token: api.stranger.token });
        assert.equal(status, 200, named(operation));
        for (const id of Object.values(ids)) assert.ok(!JSON.stringify(body).includes(id), named(operation));
      }
    });
  });

  /** Something of the right form where an endpoint takes a body; `{}` where that is enough. */
  function bodyFor({ method, path, body }: Operation): object | undefined {
    if (!body) return undefined;
    if (path.endsWith("/resume")) {
      return { responses: [{ input_request_id: crypto.randomUUID(), decision: "approve" }] };
    }
    if (method === "POST" && path.endsWith("/versions")) return { definition: answering };
    if (path.endsWith("/bulk/delete")) return { ids: [crypto.randomUUID()] };
    if (path.endsWith("/control")) return { type: "interrupt" };
    return {};
  }

  describe("whose body does not fit", () => {
    const everywhere = () => [
      ...management.map((operation) => ({
        operation,
        send: (body: string) => api.call(operation.method, pathOf(operation), { token: api.owner.token, body }),
      })),
      ...onHost.map((operation) => ({
        operation,
        send: (body: string) => client.call(app.host, operation.method, pathOf(operation), { body }),
      })),
    ];
    const taking = () => everywhere().filter(({ operation }) => operation.body !== undefined);

    it("is a 400 for what is no JSON object", async () => {
      for (const { operation, send } of taking()) {
        for (const body of ["{", '{"a":1,}', "null", "[]", '"text"', "1", "\u0000"]) {
          assertRefused(await send(body), "bad_request", `${named(operation)} with ${body}`);
        }
      }
    });

    it("is a 400 that names a field which is not known", async () => {
      const open: string[] = [];
      for (const { operation, send } of taking()) {
        if (operation.body?.additionalProperties !== false) {
          open.push(named(operation));
          continue;
        }
        const answer = await send('{"surprise":1}');
        assertRefused(answer, "bad_request", named(operation));
        assert.ok("surprise" in answer.body.error.details, `${named(operation)}: ${JSON.stringify(answer.body)}`);
      }
      // A message of the voice protocol, whose fields follow from its type; and the workflow's input.
      assert.deepEqual(open, ["POST /v1/agents/voice/calls/{call_id}/control", "POST /"]);
    });

    it("is a 413 above the bound, in a body of 10 MB", async () => {
      const body = `{"name":"${"x".repeat(10_000_000)}"}`;
      for (const { operation, send } of taking()) {
        const answer = await send(body);
        assertRefused(answer, "payload_too_large", named(operation));
        assert.match(answer.body.error.details.body, /^Expected at most \d+ bytes$/, named(operation));
      }
    });
  });

  describe("whose query does not fit", () => {
    it("is a 400 that names the parameter; pages are clamped", async () => {
      // Answered whole; and what is below a trace or a session, of which there is none here.
      const isOther = /^\/v1\/(workflow-node-kinds|usage\/limits|.*\/\{(request|trace|session)_id\}\/\w+)$/;
      const lists = [...management, ...onHost].filter(
        ({ method, path }) => method === "GET" && /s$/.test(path) && !isOther.test(path),
      );
      assert.ok(lists.length >= 8, lists.map(named).join());
      for (const operation of lists) {
        const get = (query: string) =>
          onHost.includes(operation)
            ? client.call(app.host, "GET", `${pathOf(operation)}${query}`)
            : client.manage("GET", `${pathOf(operation)}${query}`);
        const { body } = await get("?page=0&page_size=100000");
        assert.deepEqual([body.pagination?.page, body.pagination?.page_size], [1, 100], named(operation));
        for (const [query, name] of [
          ["?page=one", "page"],
          ["?page_size=1.5", "page_size"],
          ["?surprise=1", "surprise"],
        ] as const) {
          const refused = await get(query);
          assertRefused(refused, "bad_request", `${named(operation)}${query}`);
          assert.deepEqual(Object.keys(refused.body.error.details), [name], named(operation));
        }
      }
    });

    it("is a 400 for filters and orders that do not exist", async () => {
      for (const [query, name] of [
        ["status=done", "status"],
        ["sort=secret", "sort"],
        ["sort=status,status", "sort"],
      ] as const) {
        const { status, body } = await client.call(app.host, "GET", `/v1/runs?${query}`);
        assert.deepEqual([status, Object.keys(body.error.details)], [400, [name]]);
      }
    });

    it("is a 400 for an event that the run does not have", async () => {
      const { last_event_id } = (await client.call(app.host, "GET", `/v1/runs/${runId}`)).body.data;
      const headers = { [gatewayHeader]: internalSecret };
      for (const cursor of [String(last_event_id + 1), "-1", "1.5", "soon", "99999999999999999999"]) {
        for (const [path, more] of [
          [`stream?starting_after=${cursor}`, {}],
          ["stream", { "last-event-id": cursor }],
          [`events?starting_after=${cursor}`, {}],
        ] as const) {
          const answer = await client.call(app.host, "GET", `/v1/runs/${runId}/${path}`, {
            headers: { ...headers, ...more },
          });
          assertRefused(answer, "bad_request", `${path} ${cursor}`);
          assert.ok("starting_after" in answer.body.error.details || cursor.length > 20, JSON.stringify(answer.body));
        }
      }
      for (const path of ["stream", "events"]) {
        const { status, body } = await client.call(app.host, "GET", `/v1/runs/${runId}/${path}?types=run.done`, {
          headers,
        });
        assert.deepEqual([status, Object.keys(body.error.details)], [400, ["types"]]);
      }
    });
  });

  describe("whose header does not fit", () => {
    it("is a 400 for a key of no length or too long, at both ways to start a run", async () => {
      for (const path of ["/", "/v1/runs"]) {
        for (const key of ["", "k".repeat(201)]) {
          const answer = await client.call(app.host, "POST", path, {
            body: { input: { question: "?" } },
            headers: { "idempotency-key": key },
          });
          assertRefused(answer, "bad_request", `${path} ${key.length}`);
          assert.deepEqual(Object.keys(answer.body.error.details), ["Idempotency-Key"]);
        }
      }
    });
  });

  describe("in the wrong state", () => {
    it("is a 400 with what it is, or changes nothing where nothing is left to change", async () => {
      const { body } = await client.call(app.host, "POST", "/v1/runs", {
        body: { input: { question: "?" }, background: true },
      });
      const path = `/v1/runs/${body.data.id}`;
      const first = await client.call(app.host, "POST", `${path}/cancel`, { body: { reason: "over" } });
      assert.equal(first.body.data.status, "canceled");
      const again = await client.call(app.host, "POST", `${path}/cancel`, { body: { reason: "again" } });
      assert.deepEqual(again.body.data, first.body.data);
      const resumed = await client.call(app.host, "POST", `${path}/resume`, {
        body: { responses: [{ input_request_id: crypto.randomUUID(), decision: "approve" }] },
      });
      assertRefused(resumed, "bad_request", "resume");
    });
  });
});
