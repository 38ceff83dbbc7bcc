/** Who may do what on an app's host: every operation with every credential, on private and on public apps. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createRunTokens } from "#apps/run_tokens.ts";
import { gatewayHeader, streamGrantType } from "#contracts/internal_runs.ts";
import { type ApiHarness, internalSecret, openApiHarness, sessions, startTestWorker } from "../kit/api_harness.ts";
import { type AppClient, answering, approving, openAppClient } from "../kit/app_client.ts";

const input = { question: "When is breakfast?" };
const nobody = "00000000-0000-4000-8000-000000000000";
const unlimited = { public_requests_per_minute: 100_000 };

interface Operation {
  act: "start" | "follow" | "respond" | "cancel" | "anything";
  body?: object;
  /** What it answers whom it lets in. */
  answers: number;
}
const operations: Record<string, Operation> = {
  "POST /": { act: "start", body: { input, execution_mode: "async" }, answers: 202 },
  "POST /v1/runs": { act: "start", body: { input, background: true }, answers: 202 },
  "GET /v1/runs": { act: "anything", answers: 200 },
  "GET /v1/runs/{run_id}": { act: "follow", answers: 200 },
  "GET /v1/runs/{run_id}/stream": { act: "follow", answers: 200 },
  "GET /v1/runs/{run_id}/events": { act: "follow", answers: 200 },
  // Let in, it is told that the run asks nothing of the kind.
  "POST /v1/runs/{run_id}/resume": {
    act: "respond",
    body: { responses: [{ input_request_id: nobody, decision: "approve" }] },
    answers: 400,
  },
  "POST /v1/runs/{run_id}/cancel": { act: "cancel", body: {}, answers: 200 },
  "POST /v1/connect/tokens": { act: "anything", body: { user_id: "guest-17" }, answers: 201 },
};

const accessControls = {
  private: { access_type: "private", public_may: [] as string[] },
  public: { access_type: "public", public_may: [] as string[] },
  "public, may respond": { access_type: "public", public_may: ["respond"] },
  "public, may respond and cancel": { access_type: "public", public_may: ["respond", "cancel"] },
};
type Access = keyof typeof accessControls;

const credentials = [
  "none",
  "key of the project",
  "key of the organization",
  "key of another project",
  "key of another organization",
  "revoked key",
  "personal access token",
  "rubbish",
  "token of the run",
  "token of the run as a bearer",
  "token of another run",
  "token that is over",
  "token of another house",
] as const;
type Credential = (typeof credentials)[number];

/** The matrix of docs/public-apps.md; undefined where the operation is let in. */
function refusal(access: Access, { act }: Operation, credential: Credential): number | undefined {
  switch (credential) {
    case "key of the project":
    case "key of the organization":
      return undefined;
    case "key of another project":
      return 403;
    case "key of another organization":
      return 404;
    case "none":
      return access !== "private" && act === "start" ? undefined : 401;
    case "token of the run":
    case "token of the run as a bearer":
    case "token of another run": {
      if (access === "private") return 401;
      if (act === "start" || act === "anything") return 403;
      if (credential === "token of another run") return 404;
      const may = accessControls[access].public_may;
      return act === "follow" || may.includes(act) ? undefined : 403;
    }
    default:
      return 401;
  }
}

describe("an app's host", () => {
  let api: ApiHarness;
  let client: AppClient;
  const keys: Partial<Record<Credential, string>> = {};
  const house = () => createRunTokens({ jwtSecret: sessions.jwtSecret, now: () => api.now() });

  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
    const keyOf = async (token: string, body: object): Promise<string> =>
      (await api.call("POST", "/v1/access-keys", { token, body: { name: "k", ...body } })).body.data.secret;
    const other = (await client.manage("POST", "/v1/projects", { name: "Other" })).body.data.id;
    const revoked = (await client.manage("POST", "/v1/access-keys", { name: "k" })).body.data;
    await client.manage("DELETE", `/v1/access-keys/${revoked.id}`);
    Object.assign(keys, {
      "key of the project": client.accessKey,
      "key of the organization": await keyOf(api.owner.token, {}),
      "key of another project": await keyOf(api.owner.token, { project_id: other }),
      "key of another organization": await keyOf(api.stranger.token, {}),
      "revoked key": revoked.secret,
      "personal access token": api.owner.token,
      rubbish: "svc_run_rubbish",
    });
  });
  after(() => api.close());

  function headersOf(credential: Credential, runId: string): Record<string, string> {
    const key = keys[credential];
    if (key !== undefined) return { authorization: `Bearer ${key}` };
    const yesterday = new Date(api.now().getTime() - 86_400_000);
    switch (credential) {
      case "token of the run":
        return { "run-token": house().issue(runId) };
      case "token of the run as a bearer":
        return { authorization: `Bearer ${house().issue(runId)}` };
      case "token of another run":
        return { "run-token": house().issue(crypto.randomUUID()) };
      case "token that is over":
        return { "run-token": createRunTokens({ jwtSecret: sessions.jwtSecret, now: () => yesterday }).issue(runId) };
      case "token of another house":
        return { "run-token": createRunTokens({ jwtSecret: "another secret", now: () => api.now() }).issue(runId) };
      default:
        return {};
    }
  }

  it("has no operation that the matrix leaves out", async () => {
    const { host } = await client.deploy(answering);
    const { paths } = (await client.call(host, "GET", "/openapi.json")).body;
    const found = Object.entries(paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    assert.deepEqual(found.sort(), Object.keys(operations).sort());
  });

  for (const access of Object.keys(accessControls) as Access[]) {
    it(`that is ${access} lets in whom the matrix says, operation by operation`, async () => {
      const { host } = await client.deploy(answering, { access_control: accessControls[access], policy: unlimited });
      for (const [operation, { body, answers, act }] of Object.entries(operations)) {
        const [method = "", path = ""] = operation.split(" ");
        for (const credential of credentials) {
          const started = await client.call(host, "POST", "/v1/runs", { body: { input, background: true } });
          const runId: string = started.body.data.id;
          const answer = await client.call(host, method, path.replace("{run_id}", runId), {
            token: "",
            headers: { ...headersOf(credential, runId), [gatewayHeader]: internalSecret },
            ...(body && { body }),
          });
          const expected = refusal(access, { act, answers }, credential) ?? answers;
          assert.equal(answer.status, expected, `${operation} with ${credential}: ${JSON.stringify(answer.body)}`);
        }
      }
    });
  }

  const deployPublic = async (definition: unknown, may: string[] = [], policy: object = {}) =>
    client.deploy(definition, {
      access_control: { access_type: "public", public_may: may },
      policy: { ...unlimited, ...policy },
    });
  const anybody = (host: string, method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
    client.call(host, method, path, { token: "", headers, ...(body && { body }) });

  it("tells the run's token in every answer to a start without a key, and in none to one with a key", async () => {
    const { host } = await deployPublic(answering);
    const worker = await startTestWorker(api);
    try {
      const starts: [string, object, Record<string, string>][] = [
        ["/v1/runs", { input, background: true }, {}],
        ["/v1/runs", { input }, {}],
        ["/v1/runs", { input, stream: true }, { [gatewayHeader]: internalSecret }],
        ["/", { input, execution_mode: "async" }, {}],
        ["/", input, {}],
      ];
      for (const [path, body, headers] of starts) {
        const answer = await anybody(host, "POST", path, body, headers);
        const isGrant = answer.headers.get("content-type") === streamGrantType;
        const token = isGrant ? answer.body.run_token : answer.headers.get("run-token");
        const runId = house().runOf(token ?? "");
        assert.ok(runId, `${path} ${JSON.stringify(body)}: ${answer.status} ${JSON.stringify(answer.body)}`);
        if (path === "/v1/runs" && !isGrant) assert.equal(answer.body.data.run_token, token);
        assert.equal((await anybody(host, "GET", `/v1/runs/${runId}`, undefined, { "run-token": token })).status, 200);
        const streamed = await anybody(host, "GET", `/v1/runs/${runId}/stream?run_token=${token}`, undefined, {
          [gatewayHeader]: internalSecret,
        });
        assert.equal(streamed.status, 200);
        assert.equal((await anybody(host, "GET", `/v1/runs/${runId}?run_token=${token}`)).status >= 400, true);

        const known = await client.call(host, "POST", path, { body, headers });
        assert.ok(known.status < 300);
        assert.equal(known.headers.get("run-token"), null);
        assert.ok(!JSON.stringify(known.body).includes("svc_run_"));
      }
    } finally {
      await worker.close();
    }
  });

  it("lets a run's token answer what the caller is asked, and not what staff is asked", async () => {
    const asking = (audience: object) => ({
      ...approving,
      nodes: approving.nodes.map((node) =>
        node.id === "ok" ? { ...node, config: { ...node.config, ...audience } } : node,
      ),
    });
    const worker = await startTestWorker(api);
    try {
      for (const [audience, allowed] of [
        [{ audience: "caller" }, true],
        [{ audience: "staff" }, false],
        [{}, false],
      ] as const) {
        const { host } = await deployPublic(asking(audience), ["respond"]);
        const started = await anybody(host, "POST", "/v1/runs", { input });
        const { id, run_token, input_requests } = started.body.data;
        assert.equal(input_requests[0].audience, allowed ? "caller" : "staff");
        const answer = { input_request_id: input_requests[0].id, decision: "approve" };
        const headers = { "run-token": run_token };
        const resume = (response: object) =>
          anybody(host, "POST", `/v1/runs/${id}/resume`, { responses: [response] }, headers);
        const named = await resume({ ...answer, responded_by: "the manager" });
        assert.equal(named.status, 403);
        assert.match(JSON.stringify(named.body.error.details), /responded_by/);
        const resumed = await resume(answer);
        assert.equal(resumed.status, allowed ? 200 : 403, JSON.stringify(resumed.body));
        if (allowed) await client.until(host, id, "succeeded");
        else assert.equal((await client.call(host, "GET", `/v1/runs/${id}`)).body.data.status, "awaiting_input");
      }
    } finally {
      await worker.close();
    }
  });

  it("never answers one starter with another's run", async () => {
    const { host } = await deployPublic(answering);
    const body = { input, background: true };
    const key = "0123456789abcdef";
    const headers = { "idempotency-key": key };
    const short = await anybody(host, "POST", "/v1/runs", body, { "idempotency-key": "order-1" });
    assert.equal(short.status, 400);
    const staffs = await client.call(host, "POST", "/v1/runs", { body, headers });
    const first = await anybody(host, "POST", "/v1/runs", body, headers);
    const again = await anybody(host, "POST", "/v1/runs", body, headers);
    assert.notEqual(first.body.data.id, staffs.body.data.id);
    assert.equal(again.body.data.id, first.body.data.id);
    assert.equal((await client.call(host, "POST", "/v1/runs", { body, headers })).body.data.id, staffs.body.data.id);
  });

  it("lets nobody cancel a session's run by starting another one in it, unless public_may has cancel", async () => {
    const body = { input, background: true, session_id: "guest-17" };
    for (const may of [[], ["cancel"]]) {
      const { host } = await deployPublic(answering, may, { session_policy: "cancel_previous" });
      const staffs = (await client.call(host, "POST", "/v1/runs", { body })).body.data.id;
      assert.equal((await anybody(host, "POST", "/v1/runs", body)).status, may.length > 0 ? 202 : 409);
      const { status } = (await client.call(host, "GET", `/v1/runs/${staffs}`)).body.data;
      assert.equal(status, may.length > 0 ? "canceled" : "pending");
    }
  });

  it("takes callbacks, and a cancel by disconnecting, from key holders alone", async () => {
    const { host } = await deployPublic(answering);
    const callbacks = [{ url: "https://hook.example/" }];
    const refused = await anybody(host, "POST", "/", { input, execution_mode: "async", callbacks });
    assert.deepEqual([refused.status, Object.keys(refused.body.error.details)], [403, ["callbacks"]]);
    const body = { input, stream: true, on_disconnect: "cancel" };
    const streamed = await anybody(host, "POST", "/v1/runs", body, { [gatewayHeader]: internalSecret });
    assert.deepEqual([streamed.status, Object.keys(streamed.body.error.details)], [403, ["on_disconnect"]]);
  });

  it("forgets its tokens after a day, and when the app needs a key again", async () => {
    const { host, id } = await deployPublic(answering, ["respond", "cancel"]);
    const started = await anybody(host, "POST", "/v1/runs", { input, background: true });
    const { id: runId, run_token } = started.body.data;
    const read = async () =>
      (await anybody(host, "GET", `/v1/runs/${runId}`, undefined, { "run-token": run_token })).status;
    assert.equal(await read(), 200);
    const shut = await client.manage("PATCH", `/v1/apps/${id}`, { access_control: { access_type: "private" } });
    assert.deepEqual(shut.body.data.access_control, { access_type: "private", public_may: [] });
    assert.equal(await read(), 401);
    await client.manage("PATCH", `/v1/apps/${id}`, { access_control: { access_type: "public" } });
    assert.equal(await read(), 200);
    api.advance(24 * 3_600_000);
    assert.equal(await read(), 401);
  });

  it("refuses public_may on an app that is private, and rights that there are not", async () => {
    const { id } = await client.deploy(answering);
    for (const access_control of [
      { access_type: "private", public_may: ["cancel"] },
      { access_type: "public", public_may: ["list"] },
      { access_type: "public", public_may: ["cancel", "cancel"] },
    ]) {
      assert.equal((await client.manage("PATCH", `/v1/apps/${id}`, { access_control })).status, 400);
    }
    const kept = await client.manage("PATCH", `/v1/apps/${id}`, {
      access_control: { access_type: "public", public_may: ["cancel"] },
    });
    assert.deepEqual(kept.body.data.access_control, { access_type: "public", public_may: ["cancel"] });
  });

  it("counts requests without a key by address, with a token too", async () => {
    const { host } = await deployPublic(answering, [], { public_requests_per_minute: 2 });
    const started = await anybody(host, "POST", "/v1/runs", { input, background: true });
    const { id, run_token } = started.body.data;
    const read = () => anybody(host, "GET", `/v1/runs/${id}`, undefined, { "run-token": run_token });
    assert.deepEqual([(await read()).status, (await read()).status], [200, 429]);
    assert.equal((await client.call(host, "GET", `/v1/runs/${id}`)).status, 200);
  });
});

describe("a run token", () => {
  const tokens = createRunTokens({ jwtSecret: "secret", now: () => new Date(0) });
  const runId = crypto.randomUUID();

  it("is for one run", () => assert.equal(tokens.runOf(tokens.issue(runId)), runId));

  it("is no token any more with any letter of it changed, left out or added", () => {
    const token = tokens.issue(runId);
    const mutants = Array.from({ length: token.length }, (_, i) => [
      `${token.slice(0, i)}${token[i] === "A" ? "B" : "A"}${token.slice(i + 1)}`,
      token.slice(0, i) + token.slice(i + 1),
      `${token.slice(0, i)}A${token.slice(i)}`,
    ]).flat();
    for (const mutant of mutants) if (mutant !== token) assert.equal(tokens.runOf(mutant), undefined, mutant);
  });
});
