/** Bad input to an app's host, from outside: through a real gateway, on both transports, as a client sees it. */
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, describe, it } from "node:test";
import { type RunningApi, startApi } from "#api/process/server.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { silentLogger } from "#http/logger.ts";
import { type ApiHarness, appConfig, internalSecret, openApiHarness } from "#test/kit/api_harness.ts";
import { type AppClient, answering, type DeployedApp, openAppClient } from "#test/kit/app_client.ts";
import { transports } from "../kit/transports.ts";

for (const { transport, skip } of transports) {
  describe(`an app's host behind a gateway on ${transport}`, { skip }, () => {
    let api: ApiHarness;
    let client: AppClient;
    let server: RunningApi;
    let gateway: Gateway;
    let app: DeployedApp;

    before(async () => {
      api = await openApiHarness();
      client = await openAppClient(api);
      app = await client.deploy(answering);
      const shared = { bus: api.bus, logger: silentLogger };
      const config = { ...appConfig, bindAddress: "127.0.0.1", databaseUrl: api.databaseUrl, apiPort: 0 };
      server = await startApi({ ...shared, sql: api.sql, config });
      const gatewayConfig = loadGatewayConfig({
        GATEWAY_PORT: "0",
        API_URL: server.url,
        INTERNAL_SECRET: internalSecret,
        REDIS_URL: "redis://unused",
        APP_DOMAIN: appConfig.appDomain,
        TRANSPORT: transport,
      });
      const media = { open: () => assert.fail("no call is expected"), close: async () => undefined };
      gateway = await startGateway({ ...shared, config: gatewayConfig, media });
    });
    after(async () => {
      await gateway?.close();
      await server?.close();
      await api?.close();
    });

    interface Ask {
      host?: string;
      body?: string | Buffer;
      headers?: Record<string, string>;
      /** Does not say beforehand how long its body is. */
      chunked?: boolean;
    }

    function ask(method: string, path: string, { host = app.host, body, headers = {}, chunked = false }: Ask = {}) {
      return new Promise<{
        status: number;
        headers: http.IncomingHttpHeaders;
        body: { error: Record<string, unknown> };
      }>((resolve, reject) => {
        const length: Record<string, string> =
          body === undefined || chunked ? {} : { "content-length": String(Buffer.byteLength(body)) };
        const common = { host, authorization: `Bearer ${client.accessKey}`, "content-type": "application/json" };
        const sent = http.request(
          {
            host: "127.0.0.1",
            port: gateway.port,
            method,
            path,
            agent: false,
            headers: { ...common, ...length, ...headers },
          },
          async (response) => {
            let text = "";
            for await (const chunk of response.setEncoding("utf8")) text += chunk;
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text && JSON.parse(text) });
          },
        );
        sent.on("error", reject);
        if (body !== undefined) sent.write(body);
        sent.end();
      });
    }

    it("says what is wrong with a body, also when it is enormous and still being sent", async () => {
      const large = JSON.stringify({ input: { question: "x".repeat(10_000_000) } });
      const refusals: [string, Ask, number, string][] = [
        ["no JSON", { body: "{" }, 400, "bad_request"],
        ["no UTF-8", { body: Buffer.from([0x7b, 0xff, 0x7d]) }, 400, "bad_request"],
        ["no object", { body: "[]" }, 400, "bad_request"],
        ["an unknown field", { body: '{"surprise":1}' }, 400, "bad_request"],
        ["no input", { body: "{}" }, 400, "bad_request"],
        ["10 MB", { body: large }, 413, "payload_too_large"],
        ["10 MB of unknown length", { body: large, chunked: true }, 413, "payload_too_large"],
      ];
      for (const [what, request, status, code] of refusals) {
        for (const path of ["/v1/runs", "/"]) {
          if (path === "/" && what === "an unknown field") continue;
          const answer = await ask("POST", path, request);
          assert.deepEqual([answer.status, answer.body.error?.code], [status, code], `${what} to ${path}`);
          assert.ok(answer.body.error.details, `${what} to ${path}`);
        }
      }
    });

    it("lets nobody in without a key of its own, and leads nowhere else", async () => {
      const refusals: [string, string, Ask, number][] = [
        ["GET", "/v1/runs", { headers: { authorization: "" } }, 401],
        ["GET", "/v1/runs", { headers: { authorization: `Bearer ${api.owner.token}` } }, 401],
        ["GET", "/v1/runs", { host: "nobody.apps.test" }, 404],
        ["GET", "/v1/runs", { host: "apps.test" }, 404],
        ["GET", "/v1/runs", { host: "127.0.0.1" }, 404],
        ["GET", `/v1/runs/${crypto.randomUUID()}/stream`, {}, 404],
        ["GET", "/v1/runs/1/stream", {}, 404],
        ["GET", "/internal/runs/positions", {}, 404],
        ["GET", "/metrics", {}, 404],
        ["GET", "/talk", {}, 404],
        ["PATCH", "/v1/runs", { body: "{}" }, 405],
      ];
      for (const [method, path, request, status] of refusals) {
        const answer = await ask(method, path, request);
        assert.equal(answer.status, status, `${method} ${path} ${JSON.stringify(request)}`);
        assert.ok(answer.body.error.code);
      }
    });

    it("answers a stream's bad cursor before it streams anything", async () => {
      const run = await client.call(app.host, "POST", "/v1/runs", {
        body: { background: true, input: { question: "?" } },
      });
      const path = `/v1/runs/${run.body.data.id}/stream`;
      for (const [query, headers] of [
        ["?starting_after=99", {}],
        ["?starting_after=soon", {}],
        ["?types=run.done", {}],
        ["?surprise=1", {}],
        ["", { "last-event-id": "99" }],
      ] as const) {
        const answer = await ask("GET", path + query, { headers });
        assert.deepEqual([answer.status, answer.headers["content-type"]], [400, "application/json"], query);
        assert.equal(answer.body.error.code, "bad_request");
      }
    });

    it("answers a preflight of any page, and says in its answers that they may be read", async () => {
      const preflight = await ask("OPTIONS", "/v1/runs", {
        headers: {
          authorization: "",
          origin: "https://shop.example",
          "access-control-request-method": "POST",
          "access-control-request-headers": "authorization,content-type,idempotency-key",
        },
      });
      assert.equal(preflight.status, 204);
      assert.equal(preflight.headers["access-control-allow-origin"], "*");
      for (const name of ["authorization", "content-type", "idempotency-key", "last-event-id"]) {
        assert.match(preflight.headers["access-control-allow-headers"]?.toLowerCase() ?? "", new RegExp(name));
      }
      assert.equal(preflight.headers["access-control-allow-credentials"], undefined);
      const refused = await ask("GET", "/v1/runs", { headers: { authorization: "" } });
      assert.equal(refused.headers["access-control-allow-origin"], "*");
      const management = await ask("OPTIONS", "/v1/apps", {
        host: "127.0.0.1",
        headers: { origin: "https://shop.example", "access-control-request-method": "GET" },
      });
      assert.equal(management.headers["access-control-allow-origin"], undefined);
    });
  });
}
