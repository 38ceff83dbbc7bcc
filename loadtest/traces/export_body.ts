/** Export requests as OpenTelemetry's SDKs write them in protobuf: spans of about 1 KiB, ten a trace. */
import protobuf from "protobufjs/minimal.js";

export interface SpanShape {
  spansOfTrace: number;
  /** Of a span's input and of its output. */
  textCharacters: number;
}

const shapeByDefault: SpanShape = { spansOfTrace: 10, textCharacters: 240 };

/** A message of one field that holds another. */
const holding = (field: number, bytes: Uint8Array) =>
  protobuf.Writer.create()
    .uint32(field * 8 + 2)
    .bytes(bytes)
    .finish();

/** `count` spans that begin at `startMs` and a millisecond later each. */
export function exportBody(count: number, startMs: number, shape: Partial<SpanShape> = {}): Uint8Array {
  const { spansOfTrace, textCharacters } = { ...shapeByDefault, ...shape };
  const content = "x".repeat(textCharacters);
  const messages = JSON.stringify([{ role: "user", parts: [{ type: "text", content }] }]);
  const spans: Uint8Array[] = [];
  for (let made = 0; made < count; made += spansOfTrace) {
    const traceId = crypto.getRandomValues(new Uint8Array(16));
    const root = crypto.getRandomValues(new Uint8Array(8));
    for (let at = 0; at < Math.min(spansOfTrace, count - made); at += 1) {
      const parent = at === 0 ? undefined : root;
      const spanId = at === 0 ? root : crypto.getRandomValues(new Uint8Array(8));
      spans.push(holding(2, spanBytes({ traceId, spanId, parent, startMs: startMs + made + at, messages })));
    }
  }
  return holding(1, holding(2, Buffer.concat(spans)));
}

interface SpanParts {
  messages: string;
  traceId: Uint8Array;
  spanId: Uint8Array;
  parent: Uint8Array | undefined;
  startMs: number;
}

function spanBytes({ traceId, spanId, parent, startMs, messages }: SpanParts): Uint8Array {
  const writer = protobuf.Writer.create().uint32(0x0a).bytes(traceId).uint32(0x12).bytes(spanId);
  if (parent) writer.uint32(0x22).bytes(parent);
  const startNs = startMs * 1e6;
  writer
    .uint32(0x2a)
    .string(parent ? "chat" : "agent")
    .uint32(0x39)
    .fixed64(startNs)
    .uint32(0x41)
    .fixed64(startNs + 5e8);
  const texts = {
    "gen_ai.operation.name": parent ? "chat" : "invoke_agent",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-4o-mini",
    "gen_ai.conversation.id": "load-test",
    "gen_ai.input.messages": messages,
    "gen_ai.output.messages": messages,
  };
  for (const [key, text] of Object.entries(texts))
    addAttribute(writer, key, (value) => value.uint32(0x0a).string(text));
  for (const key of ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"]) {
    addAttribute(writer, key, (value) => value.uint32(0x18).int64(120));
  }
  return writer.finish();
}

function addAttribute(writer: protobuf.Writer, key: string, write: (value: protobuf.Writer) => void): void {
  writer.uint32(0x4a).fork().uint32(0x0a).string(key).uint32(0x12).fork();
  write(writer);
  writer.ldelim().ldelim();
}
