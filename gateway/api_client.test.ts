import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { audioFormatFor } from "#contracts/audio_format.ts";
import { callConfig } from "#test/kit/gateway_fixture.ts";
import { ApiUnavailableError, type CallsApi, createApiClient } from "./api_client.ts";

const callId = "11111111-1111-4111-8111-111111111111";
const reserved = {
  call_id: callId,
  secret_sha256: "0".repeat(64),
  expires_at: "2027-01-01T00:00:00Z",
  allowed_origins: [],
  state: "reserved",
};
const opened = {
  call_id: callId,
  agent_id: "a",
  organization_id: "o",
  config: callConfig(),
  input_format: audioFormatFor(),
  output_format: audioFormatFor({ encoding: "mulaw" }),
  client_buffer_ms: 400,
  initial_messages: [],
};

describe("the gateway's way to the api", () => {
  let server: Server;
  let api: CallsApi;
  let seen: { method: string | undefined; url: string | undefined; authorization: string | undefined; body: string };
  let answer: { status: number; body: unknown };

  before(async () => {
    server = createServer(async (req, res) => {
      let body = "";
      for await (const chunk of req) body += String(chunk);
      seen = { method: req.method, url: req.url, authorization: req.headers.authorization, body };
      res.writeHead(answer.status, { "content-type": "application/json" });
      res.end(answer.body === undefined ? undefined : JSON.stringify(answer.body));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    api = createApiClient({ apiUrl, internalSecret: "internal" });
  });
  after(async () => {
    await api.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it("looks a reservation up with the internal secret", async () => {
    answer = { status: 200, body: reserved };
    assert.deepEqual(await api.getCall(callId), reserved);
    assert.deepEqual(seen, {
      method: "GET",
      url: `/internal/calls/${callId}`,
      authorization: "Bearer internal",
      body: "",
    });
    answer = { status: 404, body: { error: { code: "not_found" } } };
    assert.equal(await api.getCall(callId), undefined);
  });

  it("opens a call, and tells each refusal apart", async () => {
    answer = { status: 200, body: opened };
    assert.deepEqual(await api.openCall(callId, "g"), { kind: "opened", call: opened });
    assert.deepEqual(JSON.parse(seen.body), { gateway_id: "g" });
    for (const [status, body, code] of [
      [404, {}, "not_found"],
      [409, {}, "consumed"],
      [410, {}, "gone"],
      [410, { error: { code: "gone", details: { call: "expired" } } }, "expired"],
    ] as const) {
      answer = { status, body };
      assert.deepEqual(await api.openCall(callId, "g"), { kind: "refused", code });
    }
  });

  it("takes any other answer for an api that is down", async () => {
    for (const broken of [
      { status: 500, body: {} },
      { status: 503, body: {} },
      { status: 401, body: {} },
      { status: 200, body: { call_id: callId } },
      { status: 200, body: "no object" },
    ]) {
      answer = broken;
      await assert.rejects(api.openCall(callId, "g"), ApiUnavailableError);
      await assert.rejects(api.getCall(callId), ApiUnavailableError);
      await assert.rejects(api.heartbeat({ gateway_id: "g", calls: [] }), ApiUnavailableError);
    }
    const nobody = createApiClient({ apiUrl: "http://127.0.0.1:9", internalSecret: "x" });
    await assert.rejects(nobody.openCall(callId, "g"), ApiUnavailableError);
    assert.equal(await nobody.isReady(), false);
    await nobody.close();
  });

  it("tells a record that is taken from one that is refused for good and one to be repeated", async () => {
    const request = {
      gateway_id: "g",
      end: { reason: "client_hangup" as const, duration_ms: 1 },
      progress: { call_id: callId, items: [], turns: [] },
    };
    answer = { status: 204, body: undefined };
    assert.equal(await api.closeCall(callId, request), true);
    answer = { status: 404, body: {} };
    assert.equal(await api.closeCall(callId, request), false);
    answer = { status: 500, body: {} };
    await assert.rejects(api.closeCall(callId, request), ApiUnavailableError);
  });

  it("is ready when the api is", async () => {
    answer = { status: 200, body: {} };
    assert.equal(await api.isReady(), true);
    answer = { status: 503, body: {} };
    assert.equal(await api.isReady(), false);
  });
});
