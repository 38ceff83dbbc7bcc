import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import protobuf from "protobufjs/minimal.js";
import { otlpLimits } from "#contracts/otlp.ts";
import { openPriceTable } from "#providers/price_table.ts";
import { priceOf } from "#providers/prices.ts";
import { type Answer, type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { type AppClient, answering, openAppClient } from "#test/kit/app_client.ts";
import { hexId, otlpExport, otlpSpan } from "#test/kit/traces/otlp_bodies.ts";

const json = "application/json";
const protobufType = "application/x-protobuf";

describe("the traces collector", () => {
  let api: ApiHarness;
  let client: AppClient;
  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
  });
  after(() => api.close());

  async function send(
    body: Uint8Array | string | object,
    {
      url = "http://127.0.0.1/-/collector/v1/traces",
      key = client.accessKey,
      headers = {} as Record<string, string>,
    } = {},
  ) {
    const response = await api.app.fetch(
      new Request(url, {
        method: "POST",
        headers: {
          host: new URL(url).host,
          "content-type": json,
          ...(key && { authorization: `Bearer ${key}` }),
          ...headers,
        },
        body: body instanceof Uint8Array || typeof body === "string" ? body : JSON.stringify(body),
      }),
    );
    const bytes = new Uint8Array(await response.arrayBuffer());
    const isJson = response.headers.get("content-type")?.includes("json");
    return {
      status: response.status,
      headers: response.headers,
      bytes,
      body: isJson ? JSON.parse(new TextDecoder().decode(bytes)) : undefined,
    };
  }
  const read = (path: string): Promise<Answer> => api.call("GET", path, { token: api.owner.token });
  const traceOf = async (traceId: string) =>
    (await read(`/v1/projects/${api.projectId}/traces/${traceId}?include_spans=true`)).body.data;

  it("takes spans on its host and by its path form, and shows them as a trace with model, tokens and session", async () => {
    for (const url of ["http://collector.desk.example/v1/traces", "http://127.0.0.1/-/collector/v1/traces"]) {
      const root = otlpSpan(api.now(), {
        name: "agent",
        attributes: { "gen_ai.conversation.id": "s-1", "user.id": "u" },
      });
      const chat = otlpSpan(api.now(), {
        traceId: root.traceId,
        parentSpanId: root.spanId,
        name: "chat",
        attributes: {
          "gen_ai.operation.name": "chat",
          "gen_ai.provider.name": "openai",
          "gen_ai.request.model": "gpt-4o-mini",
          "gen_ai.usage.input_tokens": 12,
          "gen_ai.usage.output_tokens": 3,
        },
      });
      assert.deepEqual((await send(otlpExport([root, chat]), { url })).body, {}, url);
      const trace = await traceOf(root.traceId);
      assert.deepEqual(
        [trace.source, trace.name, trace.status, trace.session_id, trace.user_id, trace.model, trace.span_count],
        ["otlp", "agent", "succeeded", "s-1", "u", "gpt-4o-mini", 2],
      );
      assert.deepEqual(
        [trace.usage.prompt_tokens, trace.usage.completion_tokens, trace.usage.total_tokens],
        [12, 3, 15],
      );
      const { prices } = openPriceTable();
      const price = priceOf({ stage: "llm", provider: "openai", model: "gpt-4o-mini" }, prices) ?? assert.fail();
      const { per_million_input_tokens: input = 0, per_million_output_tokens: output = 0 } = price;
      assert.ok(Math.abs(trace.usage.cost_usd - (12 * input + 3 * output) / 1e6) < 1e-9);
      assert.deepEqual(
        trace.spans
          .map((span: { name: string; parent_span_id: string | null }) => [span.name, span.parent_span_id])
          .sort(),
        [
          ["agent", null],
          ["chat", root.spanId],
        ],
      );
    }
  });

  it("lets the same spans stand once, however often and at once they are sent", async () => {
    const span = otlpSpan(api.now(), {
      attributes: { "gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7 },
    });
    await Promise.all(Array.from({ length: 10 }, () => send(otlpExport([span]))));
    await send(gzipSync(JSON.stringify(otlpExport([span]))), { headers: { "content-encoding": "gzip" } });
    const trace = await traceOf(span.traceId);
    assert.deepEqual([trace.span_count, trace.usage.prompt_tokens, trace.spans.length], [1, 7, 1]);
  });

  it("keeps what is good of a request and tells what is not, in the request's encoding", async () => {
    const good = otlpSpan(api.now(), {});
    const bad = otlpSpan(api.now(), { name: "odd", spanId: "12" });
    const { status, body } = await send(otlpExport([good, bad]));
    assert.equal(status, 200);
    assert.equal(body.partialSuccess.rejectedSpans, "1");
    assert.match(body.partialSuccess.errorMessage, /"odd": Expected spanId/);
    assert.equal((await traceOf(good.traceId)).span_count, 1);
    const empty = await send(new Uint8Array(), { headers: { "content-type": protobufType } });
    assert.deepEqual([empty.status, empty.bytes.length, empty.headers.get("content-type")], [200, 0, protobufType]);
  });

  it("refuses with google.rpc.Status what it cannot read, and nothing of it is kept", async () => {
    const good = otlpSpan(api.now(), {});
    const late = JSON.stringify(otlpExport([good])).slice(0, -2);
    for (const [what, body, headers, expected] of [
      ["cut JSON", late, {}, 400],
      ["logs", { resourceLogs: [] }, {}, 400],
      ["no ids at all", otlpExport([{ ...good, traceId: "0" }]), {}, 400],
      ["text", "hello", { "content-type": "text/plain" }, 415],
      ["another compression", "hello", { "content-encoding": "br" }, 415],
      ["no gzip in gzip", "hello", { "content-encoding": "gzip" }, 400],
    ] as const) {
      const answer = await send(body, { headers });
      assert.equal(answer.status, expected, what);
      assert.equal(answer.body.code, 3, what);
      assert.ok(answer.body.message.length > 0 && answer.body.error.code, what);
    }
    const { status, bytes } = await send(Uint8Array.of(10, 200), { headers: { "content-type": protobufType } });
    const reader = protobuf.Reader.create(bytes);
    assert.deepEqual([status, reader.uint32(), reader.int32(), reader.uint32()], [400, 0x08, 3, 0x12]);
    assert.match(reader.string(), /Expected a protobuf ExportTraceServiceRequest/);
    assert.equal((await read(`/v1/projects/${api.projectId}/traces/${good.traceId}`)).status, 404);
  });

  it("bounds a body packed and unpacked", async () => {
    const large = new Uint8Array(otlpLimits.packedBytesMax + 1).fill(32);
    assert.equal((await send(large)).status, 413);
    assert.equal((await send(large.subarray(1))).status, 400);
    const bomb = gzipSync(new Uint8Array(otlpLimits.unpackedBytesMax + 1));
    const { status, body } = await send(bomb, { headers: { "content-encoding": "gzip" } });
    assert.deepEqual([status, body.error.code], [413, "payload_too_large"]);
  });

  it("opens to living access keys alone", async () => {
    const body = otlpExport([otlpSpan(api.now(), {})]);
    for (const key of ["", "nonsense", api.owner.token, "svc_acc_unknown"]) {
      const answer = await send(body, { key });
      assert.deepEqual([answer.status, answer.body.error.code, answer.body.code], [401, "unauthorized", 16]);
    }
    const made = await client.manage("POST", "/v1/access-keys", { name: "short", project_id: api.projectId });
    const { id, secret } = made.body.data;
    assert.equal((await send(body, { key: secret })).status, 200);
    await client.manage("DELETE", `/v1/access-keys/${id}`);
    assert.equal((await send(body, { key: secret })).status, 401);
    const get = await api.app.fetch(new Request("http://127.0.0.1/-/collector/v1/traces"));
    assert.deepEqual([get.status, get.headers.get("allow")], [405, "POST"]);
  });

  it("finds the project of an organization's key by header, by the app that spans name, or as the only one", async () => {
    const key = (await client.manage("POST", "/v1/access-keys", { name: "all" })).body.data.secret;
    const app = await client.deploy(answering);
    const place = async (span: { traceId: string }) =>
      (await api.sql`select project_id, app_id from trace where id = ${uuidOf(span.traceId)}`)[0];
    const alone = otlpSpan(api.now(), {});
    assert.equal((await send(otlpExport([alone]), { key })).status, 200);
    assert.deepEqual(await place(alone), { project_id: api.projectId, app_id: null });

    const second = (await client.manage("POST", "/v1/projects", { name: "Second" })).body.data.id;
    const undecided = await send(otlpExport([otlpSpan(api.now(), {})]), { key });
    assert.equal(undecided.status, 400);
    assert.match(undecided.body.message, /Frontdesk-Project-Id/);

    const ofApp = otlpSpan(api.now(), {});
    assert.deepEqual((await send(otlpExport([ofApp], { "frontdesk.app_id": app.id }), { key })).body, {});
    assert.deepEqual(await place(ofApp), { project_id: api.projectId, app_id: app.id });

    const ofHeader = otlpSpan(api.now(), {});
    const headers = { "frontdesk-project-id": second };
    const told = await send(otlpExport([ofHeader], { "frontdesk.app_id": app.id }), { key, headers });
    assert.match(told.body.partialSuccess.errorMessage, /is no app of the project/);
    assert.equal(told.body.partialSuccess.rejectedSpans, "0");
    assert.deepEqual(await place(ofHeader), { project_id: second, app_id: null });
    for (const id of [hexId(8), crypto.randomUUID()]) {
      const headers = { "frontdesk-project-id": id };
      assert.equal((await send(otlpExport([otlpSpan(api.now(), {})]), { key, headers })).status, 404);
    }
  });

  it("never answers 5xx to a thousand broken bodies, and takes a good one at once afterwards", async () => {
    const good = Buffer.from(JSON.stringify(otlpExport([otlpSpan(api.now(), { attributes: { a: "b" } })])));
    const bodies = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc
        .array(fc.tuple(fc.nat({ max: good.length - 1 }), fc.integer({ min: 0, max: 255 })), {
          minLength: 1,
          maxLength: 8,
        })
        .map((changes) => {
          const bytes = Uint8Array.from(good);
          for (const [at, byte] of changes) bytes[at] = byte;
          return bytes;
        }),
      fc.json({ maxDepth: 5 }).map((text) => new TextEncoder().encode(text)),
    );
    const request = fc.record({ bytes: bodies, type: fc.constantFrom(json, protobufType), isGzip: fc.boolean() });
    const samples = fc.sample(request, { numRuns: 1000, seed: 20_261_122 });
    const statuses = new Set<number>();
    await Promise.all(
      samples.map(async ({ bytes, type, isGzip }) => {
        const headers = { "content-type": type, ...(isGzip && { "content-encoding": "gzip" }) };
        const { status } = await send(isGzip && bytes.length % 2 === 0 ? gzipSync(bytes) : bytes, { headers });
        statuses.add(status);
        assert.ok(status < 500, `${status} for ${Buffer.from(bytes).toString("base64")} as ${type}`);
      }),
    );
    assert.ok(statuses.has(400));
    assert.deepEqual((await send(otlpExport([otlpSpan(api.now(), {})]))).body, {});
  });
});

const uuidOf = (hex: string) => hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
