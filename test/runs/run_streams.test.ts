/** Streams of runs through a real gateway: attached, cut, attached again, on both transports. */
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { after, before, describe, it } from "node:test";
import { startApi } from "#api/process/server.ts";
import { startWorker } from "#api/worker.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { silentLogger } from "#http/logger.ts";
import type { MediaHost } from "#media/media_host.ts";
import { type ApiHarness, internalSecret, openApiHarness, sessions, workerMail } from "#test/kit/api_harness.ts";
import { transports } from "../kit/transports.ts";

const noMedia: MediaHost = {
  open: () => assert.fail("no call is expected"),
  close: async () => undefined,
};

interface Frame {
  id?: number;
  event?: string;
  data?: string;
}

/** One SSE connection, read frame by frame. */
interface Stream {
  status: number;
  headers: http.IncomingHttpHeaders;
  /** The next frame with an event; undefined at the end. */
  next(): Promise<Frame | undefined>;
  rest(): Promise<Frame[]>;
  cut(): void;
}

for (const { transport, skip } of transports) {
  describe(`run streams on ${transport}`, { skip }, () => {
    let api: ApiHarness;
    let gateway: Gateway;
    const closers: (() => Promise<unknown>)[] = [];
    let key = "";

    before(async () => {
      api = await openApiHarness();
      const shared = {
        bindAddress: "127.0.0.1",
        databaseUrl: api.databaseUrl,
        encryptionKey: "encryption-key-of-tests",
        allowPrivateAddresses: false,
        ...sessions,
      };
      const config = { ...shared, apiPort: 0, publicUrl: "http://127.0.0.1", internalSecret, appDomain: "apps.test" };
      const server = await startApi({ config, sql: api.sql, bus: api.bus, logger: silentLogger });
      const worker = await startWorker({
        config: { ...shared, ...workerMail, workerPort: 0 },
        sql: api.sql,
        bus: api.bus,
        logger: silentLogger,
      });
      const gatewayConfig = loadGatewayConfig({
        GATEWAY_PORT: "0",
        API_URL: server.url,
        INTERNAL_SECRET: internalSecret,
        REDIS_URL: "redis://unused",
        APP_DOMAIN: "apps.test",
        TRANSPORT: transport,
      });
      gateway = await startGateway({ config: gatewayConfig, bus: api.bus, media: noMedia, logger: silentLogger });
      closers.push(
        () => gateway.close(),
        () => worker.close(),
        () => server.close(),
        () => api.close(),
      );
      key = (await manage("POST", "/v1/access-keys", { name: "t" })).secret;
    });
    after(async () => {
      for (const close of closers) await close();
    });

    async function manage(method: string, path: string, body: unknown) {
      const answer = await api.call(method, path, { token: api.owner.token, body });
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
      return answer.body.data;
    }

    /** An app whose llm node says `words` at `tokensPerS`, and that asks for an approval where told. */
    async function deploy({
      words,
      tokensPerS = 0,
      asks = false,
      access = { access_type: "private" },
    }: {
      words: number;
      tokensPerS?: number;
      asks?: boolean;
      access?: object;
    }): Promise<string> {
      const options = {
        replies: [Array.from({ length: words }, (_, i) => `w${i}`).join(" ")],
        tokens_per_s: tokensPerS,
      };
      const nodes = [
        { id: "in", type: "input" },
        { id: "ask", type: "llm", config: { model: "scripted", options, messages: [{ role: "user", template: "x" }] } },
        ...(asks ? [{ id: "ok", type: "approval", config: { prompt: "?" }, inputs: {} }] : []),
        { id: "out", type: "output", inputs: { text: "$.nodes.ask.output.text" } },
      ];
      const edges = asks
        ? [
            { from: "in", to: "ask" },
            { from: "ask", to: "ok" },
            { from: "ok", to: "out", handle: "approved" },
          ]
        : [
            { from: "in", to: "ask" },
            { from: "ask", to: "out" },
          ];
      const workflow = await manage("POST", "/v1/workflows", {
        name: "W",
        project_id: api.projectId,
        definition: { schema_version: 1, nodes, edges },
      });
      const app = await manage("POST", "/v1/apps", {
        name: "A",
        project_id: api.projectId,
        workflow_id: workflow.id,
        access_control: access,
      });
      return app.hostname;
    }

    function request(
      host: string,
      method: string,
      path: string,
      { body, headers = {}, token = key }: { body?: unknown; headers?: Record<string, string>; token?: string } = {},
    ) {
      return new Promise<http.IncomingMessage>((resolve, reject) => {
        const sent = http.request(
          {
            host: "127.0.0.1",
            port: gateway.port,
            method,
            path,
            agent: false,
            headers: {
              host,
              "content-type": "application/json",
              ...(token && { authorization: `Bearer ${token}` }),
              ...headers,
            },
          },
          resolve,
        );
        sent.on("error", reject);
        sent.end(body === undefined ? undefined : JSON.stringify(body));
      });
    }

    async function stream(...[host, method, path, options]: Parameters<typeof request>): Promise<Stream> {
      const response = await request(host, method, path, options);
      const frames = framesOf(response);
      const next = async () => (await frames.next()).value as Frame | undefined;
      return {
        status: response.statusCode ?? 0,
        headers: response.headers,
        next,
        async rest() {
          const all: Frame[] = [];
          for (let frame = await next(); frame; frame = await next()) all.push(frame);
          return all;
        },
        cut: () => response.destroy(),
      };
    }

    async function* framesOf(response: http.IncomingMessage): AsyncGenerator<Frame> {
      let text = "";
      for await (const chunk of response) {
        text += chunk;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const lines = text
            .slice(0, end)
            .split("\n")
            .filter((line) => !line.startsWith(":"));
          text = text.slice(end + 2);
          const fields = Object.fromEntries(
            lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
          );
          if (fields.event) yield { ...fields, ...(fields.id !== undefined && { id: Number(fields.id) }) };
        }
      }
    }

    async function jsonOf(response: http.IncomingMessage) {
      let text = "";
      for await (const chunk of response) text += chunk;
      return JSON.parse(text).data;
    }

    it("streams a run from its first event to its last, each once and in order", async () => {
      const host = await deploy({ words: 50, tokensPerS: 500 });
      const live = await stream(host, "POST", "/v1/runs", { body: { stream: true } });
      assert.equal(live.status, 200);
      assert.equal(live.headers["content-type"], "text/event-stream");
      assert.equal(live.headers["run-replayed-from"], "0");
      const frames = await live.rest();
      assert.deepEqual(
        frames.map(({ id }) => id),
        frames.map((_, i) => i + 1),
      );
      assert.equal(frames[0]?.event, "run.created");
      assert.equal(frames.at(-1)?.event, "run.succeeded");
      const said = frames
        .filter(({ event }) => event === "content.delta")
        .map(({ data }) => JSON.parse(data ?? "").data.text);
      assert.ok(said.length > 5, "deltas come while the model speaks");
      assert.equal(said.join(""), Array.from({ length: 50 }, (_, i) => `w${i}`).join(" "));
    });

    it("streams at the app's path form as at its host, which is another app's no less", async () => {
      const label = (await deploy({ words: 2 })).split(".")[0];
      const live = await stream("127.0.0.1", "POST", `/-/apps/${label}/v1/runs`, { body: { stream: true } });
      assert.equal((await live.rest()).at(-1)?.event, "run.succeeded");
      const path = `/v1/runs/${live.headers["run-id"]}/stream?types=run.succeeded`;
      const again = await stream("127.0.0.1", "GET", `/-/apps/${label}${path}`);
      assert.deepEqual(
        (await again.rest()).map(({ event }) => event),
        ["run.succeeded"],
      );
      const other = await deploy({ words: 2 });
      const refused = await request(other, "GET", `/-/apps/${label}${path}`);
      assert.equal(refused.statusCode, 404);
      refused.resume();
    });

    it("gives every event exactly once to a client that is cut off at every event", async () => {
      const host = await deploy({ words: 40, tokensPerS: 400 });
      const run = await jsonOf(await request(host, "POST", "/v1/runs", { body: { background: true } }));
      const seen: number[] = [];
      for (let cuts = 0; cuts < 200; cuts += 1) {
        const headers: Record<string, string> = seen.length > 0 ? { "last-event-id": String(seen.at(-1)) } : {};
        const again = await stream(host, "GET", `/v1/runs/${run.id}/stream`, { headers });
        if (again.status === 204) break;
        const frame = await again.next();
        if (frame?.id !== undefined) seen.push(frame.id);
        again.cut();
      }
      assert.ok(seen.length > 10);
      assert.deepEqual(
        seen,
        seen.map((_, i) => i + 1),
      );
      const whole = await stream(host, "GET", `/v1/runs/${run.id}/stream`);
      const frames = await whole.rest();
      assert.equal(frames.at(-1)?.event, "run.succeeded");
      assert.equal(frames.at(-1)?.id, seen.at(-1));
    });

    it("goes on over an approval in one stream, and filters by type", async () => {
      const host = await deploy({ words: 3, asks: true });
      const live = await stream(host, "POST", "/v1/runs", { body: { stream: true } });
      const runId = String(live.headers["run-id"]);
      let asked: Frame | undefined;
      for (let frame = await live.next(); frame; frame = await live.next()) {
        if (frame.event === "input.requested") asked = frame;
        if (frame.event === "run.awaiting_input") break;
      }
      const input_request_id = JSON.parse(asked?.data ?? "{}").data.id;
      const filtered = await stream(host, "GET", `/v1/runs/${runId}/stream?types=run.created,run.succeeded`);
      const answered = await request(host, "POST", `/v1/runs/${runId}/resume`, {
        body: { responses: [{ input_request_id, decision: "approve" }] },
      });
      assert.equal(answered.statusCode, 200);
      answered.resume();
      const events = (await live.rest()).map(({ event }) => event);
      assert.deepEqual(events.slice(0, 3), ["input.resolved", "run.resumed", "node.completed"]);
      assert.equal(events.at(-1), "run.succeeded");
      assert.deepEqual(
        (await filtered.rest()).map(({ event }) => event),
        ["run.created", "run.succeeded"],
      );
    });

    it("gives a client that does not read everything, once it reads", async () => {
      const host = await deploy({ words: 2500, tokensPerS: 10_000 });
      const run = await jsonOf(await request(host, "POST", "/v1/runs", { body: { background: true } }));
      const slow = await request(host, "GET", `/v1/runs/${run.id}/stream`);
      slow.pause();
      const quick = await stream(host, "GET", `/v1/runs/${run.id}/stream`);
      const all = await quick.rest();
      assert.equal(all.at(-1)?.event, "run.succeeded");
      const ids: (number | undefined)[] = [];
      for await (const frame of framesOf(slow)) ids.push(frame.id);
      assert.deepEqual(
        ids,
        all.map(({ id }) => id),
      );
    });

    it("cancels a run whose client leaves, where it was told to", async () => {
      const host = await deploy({ words: 1000, tokensPerS: 5 });
      const live = await stream(host, "POST", "/v1/runs", { body: { stream: true, on_disconnect: "cancel" } });
      await live.next();
      const runId = String(live.headers["run-id"]);
      const watcher = await stream(host, "GET", `/v1/runs/${runId}/stream`);
      live.cut();
      assert.equal((await watcher.rest()).at(-1)?.event, "run.canceled");
    });

    it("cancels a run whose client leaves while it waits for the answer, where it was told to", async () => {
      const host = await deploy({ words: 1000, tokensPerS: 5 });
      const waiting = http.request({
        ...{ host: "127.0.0.1", port: gateway.port, method: "POST", path: "/v1/runs", agent: false },
        headers: { host, "content-type": "application/json", authorization: `Bearer ${key}` },
      });
      const left = once(waiting, "error");
      waiting.end(JSON.stringify({ on_disconnect: "cancel" }));
      let runs: { id: string }[] = [];
      while (runs.length === 0) runs = await jsonOf(await request(host, "GET", "/v1/runs"));
      const watcher = await stream(host, "GET", `/v1/runs/${runs[0]?.id}/stream`);
      waiting.destroy();
      await left;
      assert.equal((await watcher.rest()).at(-1)?.event, "run.canceled");
    });

    it("passes a stream through the management API", async () => {
      const host = await deploy({ words: 3 });
      const { body } = await api.call("GET", "/v1/apps?page_size=100", { token: api.owner.token });
      const { id } = body.data.find(({ hostname }: { hostname: string }) => hostname === host);
      const live = await stream("127.0.0.1", "POST", `/v1/apps/${id}/invoke/v1/runs`, {
        body: { stream: true },
        headers: { authorization: `Bearer ${api.owner.token}` },
      });
      assert.equal((await live.rest()).at(-1)?.event, "run.succeeded");
    });

    it("streams and answers a public app's run to whoever started it without a key, and to nobody else", async () => {
      const host = await deploy({ words: 5, access: { access_type: "public" } });
      const live = await stream(host, "POST", "/v1/runs", { body: { stream: true }, token: "" });
      const token = String(live.headers["run-token"]);
      const path = `/v1/runs/${live.headers["run-id"]}`;
      assert.match(String(live.headers["access-control-expose-headers"]), /Run-Token/);
      const all = await live.rest();

      const again = await stream(host, "GET", `${path}/stream?starting_after=2&run_token=${token}`, { token: "" });
      assert.deepEqual(
        (await again.rest()).map(({ id }) => id),
        all.map(({ id }) => id).slice(2),
      );
      const asHeader = await request(host, "GET", path, { token: "", headers: { "run-token": token } });
      assert.equal((await jsonOf(asHeader)).status, "succeeded");

      const waited = await request(host, "POST", "/v1/runs", { body: {}, token: "" });
      const other = await jsonOf(waited);
      assert.deepEqual([other.status, other.run_token], ["succeeded", waited.headers["run-token"]]);
      const root = await request(host, "POST", "/", { body: {}, token: "" });
      assert.match(String(root.headers["run-token"]), /^svc_run_/);
      assert.equal(root.resume().statusCode, 200);

      const refused: [string, string, number][] = [
        [`${path}/stream`, "", 401],
        [`${path}/stream?run_token=${other.run_token}`, "", 404],
        [path, other.run_token, 404],
        ["/v1/runs", token, 403],
      ];
      for (const [at, bearer, status] of refused) {
        assert.equal((await request(host, "GET", at, { token: bearer })).resume().statusCode, status, at);
      }
    });

    it("never shows a grant to a client that claims to be a gateway", async () => {
      const host = await deploy({ words: 3 });
      const claimed = await stream(host, "POST", "/v1/runs", {
        body: { stream: true },
        headers: { "x-frontdesk-gateway": "guess" },
      });
      assert.equal(claimed.headers["content-type"], "text/event-stream");
      await claimed.rest();
    });
  });
}
