import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { OTLPTraceExporter as JsonExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { OTLPTraceExporter as ProtobufExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanExporter,
} from "@opentelemetry/sdk-trace-base";
import { type HttpListener, listen } from "#api/process/http_listener.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { openAppClient } from "#test/kit/app_client.ts";

const python = process.env.TEST_PYTHON ?? "python3";
const script = fileURLToPath(new URL("../kit/traces/export_agent.py", import.meta.url));

/** False, or why not. */
function withoutPython(): false | string {
  try {
    execFileSync(python, ["-c", "import opentelemetry.exporter.otlp.proto.http"], { stdio: "ignore" });
    return false;
  } catch {
    return "no Python with opentelemetry-exporter-otlp-proto-http";
  }
}

/** An agent that asks a model and calls a tool, as the SDK has it when it is over. */
function agentSpans(): ReadableSpan[] {
  const kept = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ "service.name": "guest-agent" }),
    spanProcessors: [new SimpleSpanProcessor(kept)],
  });
  const tracer = provider.getTracer("agents");
  const agent = tracer.startSpan("agent", { attributes: { "gen_ai.conversation.id": "web-1", "user.id": "ann" } });
  const within = trace.setSpan(ROOT_CONTEXT, agent);
  const chat = tracer.startSpan("chat", {}, within);
  chat.setAttributes({
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-5",
    "gen_ai.usage.input_tokens": 11,
    "gen_ai.usage.output_tokens": 5,
    "gen_ai.input.messages": JSON.stringify([{ role: "user", parts: [{ type: "text", content: "A room?" }] }]),
  });
  chat.end();
  const tool = tracer.startSpan("book", { attributes: { "gen_ai.operation.name": "execute_tool" } }, within);
  tool.recordException(new Error("no room is free"));
  tool.setStatus({ code: 2 });
  tool.end();
  agent.end();
  return kept.getFinishedSpans();
}

const exported = (exporter: SpanExporter, spans: ReadableSpan[]) =>
  new Promise<void>((resolve, reject) => {
    exporter.export(spans, ({ code, error }) => (code === 0 ? resolve() : reject(error)));
  });

describe("OpenTelemetry's own SDKs", () => {
  let api: ApiHarness;
  let listener: HttpListener;
  let url: string;
  let headers: Record<string, string>;
  before(async () => {
    api = await openApiHarness();
    const { accessKey } = await openAppClient(api);
    listener = await listen(api.app.fetch, { host: "127.0.0.1", port: 0 });
    url = `${listener.url}/-/collector/v1/traces`;
    headers = { Authorization: `Bearer ${accessKey}` };
  });
  after(async () => {
    await listener.close();
    await api.close();
  });

  async function assertStandsOnce(traceId: string): Promise<void> {
    const path = `/v1/projects/${api.projectId}/traces/${traceId}?include_spans=true`;
    const { status, body } = await api.call("GET", path, { token: api.owner.token });
    assert.equal(status, 200, traceId);
    const { data } = body;
    assert.deepEqual(
      [
        data.name,
        data.status,
        data.session_id,
        data.user_id,
        data.model,
        data.provider,
        data.span_count,
        data.error_count,
      ],
      ["agent", "succeeded", "web-1", "ann", "gpt-5", "openai", 3, 1],
    );
    assert.deepEqual([data.usage.prompt_tokens, data.usage.completion_tokens], [11, 5]);
    const byName = Object.fromEntries(data.spans.map((span: { name: string }) => [span.name, span]));
    assert.deepEqual(byName.chat.input, [{ role: "user", parts: [{ type: "text", content: "A room?" }] }]);
    assert.equal(byName.chat.parent_span_id, byName.agent.span_id);
    assert.deepEqual([byName.book.kind, byName.book.status_message], ["tool", "no room is free"]);
    assert.equal(byName.agent.attributes["service.name"], "guest-agent");
  }

  for (const [encoding, Exporter] of [
    ["JSON", JsonExporter],
    ["protobuf", ProtobufExporter],
  ] as const) {
    it(`of Node send a trace in ${encoding} with gzip; sent twice it stands once`, async () => {
      const spans = agentSpans();
      const exporter = new Exporter({ url, headers, compression: "gzip" as never });
      await exported(exporter, spans);
      await exported(exporter, spans);
      await exporter.shutdown();
      await assertStandsOnce(spans[0]?.spanContext().traceId ?? "");
    });
  }

  it("of Python send a trace in protobuf with gzip; sent twice it stands once", { skip: withoutPython() }, async () => {
    const { stdout } = await promisify(execFile)(python, [script, url, headers.Authorization ?? ""]);
    await assertStandsOnce(stdout.trim());
  });
});
