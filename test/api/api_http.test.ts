import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { type App, createApp } from "#api/app.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import { errorCatalogue } from "#contracts/errors.ts";
import type { Logger } from "#http/logger.ts";
import { openSql } from "#store/sql.ts";
import { type ApiHarness, appConfig, openApiHarness } from "#test/kit/api_harness.ts";
import { createTestDatabase } from "#test/kit/database.ts";

const logged: { level: string; fields: object }[] = [];
const note = (level: string) => (fields: object) => void logged.push({ level, fields });
const logger: Logger = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };

describe("every request", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness(logger);
  });
  after(() => api.close());

  const post = (body: unknown) => api.call("POST", "/v1/projects", { token: api.owner.token, body });

  it("to an unknown path is a 404 in the forms of both services", async () => {
    const notFound = { detail: "Not Found", error: { code: "not_found", message: "Not Found" } };
    for (const path of ["/", "/v1/nothing", "/v1/projects/", "/v1/bookings/1/2/3", "/v1/taxes", "/v1/tax/nothing"]) {
      const answer = await api.call("GET", path, { token: api.owner.token });
      assert.deepEqual([answer.status, answer.body], [404, notFound], path);
    }
  });

  it("with a method that its path does not have is a 405 in its service's form, and says which it has", async () => {
    const id = crypto.randomUUID();
    for (const [method, path, allow, key] of [
      ["PUT", "/v1/projects", "GET, HEAD, POST", "error"],
      ["POST", `/v1/projects/${id}`, "DELETE, GET, HEAD, PATCH", "error"],
      ["POST", "/openapi.json", "GET, HEAD", "error"],
      ["OPTIONS", "/healthz", "GET, HEAD", "error"],
      ["DELETE", "/v1/tax/calculate", "POST", "detail"],
      ["PUT", `/v1/bookings/${id}`, "GET, HEAD", "detail"],
      ["POST", "/openapi/tax.json", "GET, HEAD", "detail"],
    ] as const) {
      const answer = await api.call(method, path, { token: api.owner.token });
      assert.deepEqual([answer.status, answer.headers.get("allow")], [405, allow], `${method} ${path}`);
      assert.deepEqual(Object.keys(answer.body), [key], `${method} ${path}`);
      if (key === "error") assert.equal(answer.body.error.code, "method_not_allowed");
    }
  });

  it("with a body that says it is no JSON is a 415, and of JSON by any of its names it is read", async () => {
    const send = async (contentType: string | undefined, path: string) => {
      const request = new Request(`http://api.test${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${api.owner.token}`, ...(contentType && { "content-type": contentType }) },
        body: new TextEncoder().encode('{"name":7}'),
      });
      const answer = await api.app.fetch(request);
      return { status: answer.status, body: (await answer.json()) as Record<string, { code?: string }> };
    };
    const others = [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/jsonp",
      "application/json; charset=utf-16",
    ];
    for (const type of others) {
      const answer = await send(type, "/v1/projects");
      assert.deepEqual([answer.status, answer.body.error?.code], [415, "unsupported_media_type"], type);
    }
    const ofTax = await send("text/plain", "/v1/auth/login");
    assert.deepEqual([ofTax.status, Object.keys(ofTax.body)], [415, ["detail"]]);
    const json = [undefined, "application/json", "Application/JSON;charset=UTF-8", "application/problem+json"];
    for (const type of json) assert.equal((await send(type, "/v1/projects")).status, 400, type);
  });

  it("carries an id of its own in the answer", async () => {
    const ids = await Promise.all(
      [1, 2].map(async () => (await api.call("GET", "/healthz")).headers.get("x-request-id")),
    );
    assert.ok(ids[0] && ids[1] && ids[0] !== ids[1]);
  });

  it("with a body that is no JSON, or no object, is a 400 that says so", async () => {
    for (const body of ["{", "nonsense", "[1,", "[]", "7", '"text"', "null"]) {
      const answer = await post(body);
      assert.equal(answer.status, 400, body);
      assert.ok(answer.body.error.details.body, JSON.stringify(answer.body));
    }
    const latin1 = new Request("http://api.test/v1/projects", {
      method: "POST",
      headers: { authorization: `Bearer ${api.owner.token}` },
      body: new Uint8Array([0x7b, 0x22, 0xe4, 0x22, 0x3a, 0x31, 0x7d]),
    });
    assert.equal((await api.app.fetch(latin1)).status, 400);
  });

  it("above a megabyte is a 413, whether or not it tells its length", async () => {
    const text = JSON.stringify({ name: "x".repeat(1024 * 1024) });
    const told = await post(text);
    assert.deepEqual([told.status, told.body.error.code], [413, "payload_too_large"]);
    const chunk = new TextEncoder().encode(text.slice(0, 64 * 1024));
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += chunk.length;
        controller.enqueue(chunk);
      },
    });
    const request = new Request("http://api.test/v1/projects", {
      method: "POST",
      headers: { authorization: `Bearer ${api.owner.token}` },
      body: endless,
      duplex: "half",
    } as RequestInit);
    assert.equal((await api.app.fetch(request)).status, 413);
    assert.ok(sent <= 1024 * 1024 + 4 * chunk.length, `read ${sent} bytes`);
  });

  it("nested beyond reason is a 400", async () => {
    const deep = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
    assert.equal((await post(deep)).status, 400);
  });

  it("is authenticated before anything of it is read", async () => {
    assert.equal((await api.call("POST", "/v1/projects", { body: "{" })).status, 401);
  });

  it("of whatever JSON gets an answer of the catalogue, never a 500", async () => {
    const name = fc.constantFrom(
      "name",
      "description",
      "project_id",
      "config",
      "allowed_origins",
      "__proto__",
      "metadata",
    );
    await fc.assert(
      fc.asyncProperty(fc.dictionary(name, fc.jsonValue()), async (body) => {
        for (const path of ["/v1/projects", "/v1/agents/voice/agents", "/v1/access-keys"]) {
          const answer = await api.call("POST", path, { token: api.owner.token, body });
          assert.ok([201, 400, 404].includes(answer.status), `${path} answered ${answer.status}`);
        }
      }),
      { numRuns: 150 },
    );
  });

  it("that meets a fault of ours is a 500 that tells nothing, and a line in the log that tells all", async () => {
    await api.sql`alter table project rename to hidden_project`;
    try {
      const answer = await api.call("GET", "/v1/projects", { token: api.owner.token });
      assert.deepEqual(
        [answer.status, answer.body],
        [500, { error: { code: "internal_error", message: "Internal Server Error" } }],
      );
      const line = logged.findLast(({ level }) => level === "error")?.fields as { err: Error; request_id: string };
      assert.match(String(line.err), /relation "project" does not exist/);
      assert.equal(line.request_id, answer.headers.get("x-request-id"));
      assert.equal(JSON.stringify(logged).includes(api.owner.token), false);
    } finally {
      await api.sql`alter table hidden_project rename to project`;
    }
  });

  it("is described by OpenAPI 3.1: every public route, its credential and its errors", async () => {
    const { status, body } = await api.call("GET", "/openapi.json");
    assert.equal(status, 200);
    assert.equal(body.openapi, "3.1.0");
    assert.equal(
      Object.keys(body.paths).some((path) => path.startsWith("/internal")),
      false,
    );
    const operation = body.paths["/v1/agents/voice/agents/{agent_id}/calls/websocket"].post;
    assert.deepEqual(operation.security, [{ personal_access_token: [] }]);
    for (const expected of ["201", "400", "401", "403", "404", "410", "413", "429"])
      assert.ok(operation.responses[expected], expected);
    assert.equal(operation.parameters[0].name, "agent_id");
    const codes = body.components.schemas.Error.properties.error.properties.code.enum;
    assert.deepEqual(codes, Object.keys(errorCatalogue));
  });

  it("is counted by its route as declared", async () => {
    await api.call("GET", `/v1/projects/${api.projectId}`, { token: api.owner.token });
    const body = await api.metrics.registry.metrics();
    assert.match(body, /route="GET \/v1\/projects\/\{project_id\}",method="GET",status="200"/);
    assert.equal(body.includes(api.projectId), false);
    assert.equal((await api.call("GET", "/metrics")).status, 404);
  });
});

describe("health", () => {
  it("is ready while the stores answer", async () => {
    const api = await openApiHarness();
    assert.deepEqual((await api.call("GET", "/readyz")).body, { status: "ready" });
    await api.close();
  });

  it("is not ready while Postgres commits nothing, as on a full disk, and asks it at most every 5 s", async () => {
    const api = await openApiHarness();
    const statusOf = async () => (await api.call("GET", "/readyz")).status;
    assert.equal(await statusOf(), 200);
    await api.sql`
      create function refuse_writes() returns trigger language plpgsql as $$
      begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$`;
    await api.sql`create trigger full_disk before insert or update on readiness_probe execute function refuse_writes()`;
    assert.equal(await statusOf(), 200, "as far as is known");
    api.advance(5000);
    assert.deepEqual(await Promise.all([statusOf(), statusOf(), statusOf()]), [503, 503, 503]);
    assert.equal((await api.call("GET", "/healthz")).status, 200);
    await api.sql`drop trigger full_disk on readiness_probe`;
    assert.equal(await statusOf(), 200, "at once when it commits again");
    await api.close();
  });

  it("stays ready, and says so, while the bus is away or hangs", async () => {
    const database = await createTestDatabase();
    for (const ping of [() => Promise.reject(new Error("gone")), () => new Promise<void>(() => undefined)]) {
      const bus = { ...createMemoryBus(), ping };
      const app = await createApp({ sql: database.productSql, bus, logger, config: appConfig, now: () => new Date() });
      const answer = await app.fetch(new Request("http://api.test/readyz"));
      assert.deepEqual([answer.status, await answer.json()], [200, { status: "degraded", bus: "away" }]);
      await app.close();
    }
    await database.drop();
  });

  it("is alive but not ready without Postgres, and requests answer 503", async () => {
    const sql = openSql({ databaseUrl: "postgres://nobody:nothing@127.0.0.1:1/none" });
    const bus = createMemoryBus();
    const app: App = await createApp({ sql, bus, logger, config: appConfig, now: () => new Date() });
    const statusOf = async (path: string) => {
      const headers = { authorization: `Bearer svc_pat_${"x".repeat(43)}` };
      return (await app.fetch(new Request(`http://api.test${path}`, { headers }))).status;
    };
    assert.equal(await statusOf("/healthz"), 200);
    assert.equal(await statusOf("/readyz"), 503);
    assert.equal(await statusOf("/v1/projects"), 503);
    await app.close();
    await bus.close();
    await sql.end({ timeout: 1 });
  });
});
