import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import { createGuardedHttp } from "#outbound/guarded_http.ts";
import type { LlmChunk, LlmRequest } from "../provider.ts";
import { ProviderError } from "../provider_error.ts";
import { openStage } from "../stages.ts";
import { openai } from "./provider.ts";

const request: LlmRequest = {
  instructions: "Be kind.",
  history: [{ role: "user", text: "Hello" }],
  turnIndex: 0,
  inputKind: "text",
  unrecognized: false,
  tools: [],
};

describe("an OpenAI-compatible model", () => {
  let seen: { headers: Record<string, unknown>; body: Record<string, unknown> } | undefined;
  let answer: (response: ServerResponse) => void = () => undefined;
  const server = createServer(async (incoming, response) => {
    let body = "";
    for await (const chunk of incoming) body += chunk;
    seen = { headers: incoming.headers, body: JSON.parse(body) };
    answer(response);
  });
  const http = createGuardedHttp({ allowPrivateAddresses: true });
  let baseUrl = "";
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  });
  beforeEach(() => {
    seen = undefined;
  });
  after(async () => {
    await http.close();
    server.closeAllConnections();
    server.close();
  });

  /** Answers with these deltas as the wire has them, then usage. */
  const streaming = (...deltas: object[]) => {
    answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const delta of deltas) response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`);
      const usage = {
        prompt_tokens: 9,
        completion_tokens: 3,
        total_tokens: 12,
        prompt_tokens_details: { cached_tokens: 4 },
      };
      response.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
    };
  };
  const model = (guard = http, options = {}) => {
    const settings = { provider: "openai", language: "en", model: "m-1", temperature: 0.2, options };
    const access = { secret: "key-1", baseUrl, http: guard };
    return openStage("llm", openai, settings, { access });
  };
  const chunksOf = async (given: Partial<LlmRequest> = {}, signal = new AbortController().signal, guard = http) => {
    const chunks: LlmChunk[] = [];
    for await (const chunk of (await model(guard)).reply({ ...request, ...given }, signal)) chunks.push(chunk);
    return chunks;
  };

  it("streams text and tells what was used", async () => {
    streaming({ role: "assistant", content: "" }, { content: "Good " }, { content: "evening." });
    assert.deepEqual(await chunksOf(), [
      { kind: "text", text: "Good " },
      { kind: "text", text: "evening." },
      { kind: "usage", prompt: 9, completion: 3, cached: 4 },
    ]);
    assert.equal(seen?.headers.authorization, "Bearer key-1");
    const { model: name, temperature, stream, messages } = seen?.body ?? {};
    assert.deepEqual([name, temperature, stream], ["m-1", 0.2, true]);
    assert.deepEqual(messages, [
      { role: "system", content: "Be kind." },
      { role: "user", content: "Hello" },
    ]);
  });

  it("puts a tool call together from its pieces, and hands its result back", async () => {
    streaming(
      { tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "book", arguments: '{"room"' } }] },
      { tool_calls: [{ index: 0, function: { arguments: ":7}" } }] },
    );
    const tools = [{ name: "book", description: "Books", parameters: { type: "object" } }];
    const call = { id: "c1", name: "book", arguments: { room: 7 } };
    assert.deepEqual((await chunksOf({ tools })).at(-1), { kind: "tool_call", ...call });
    await chunksOf({ tools, history: [...request.history, { role: "tool", text: "done", call }] });
    assert.deepEqual((seen?.body.messages as unknown[] | undefined)?.slice(-2), [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "book", arguments: '{"room":7}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: "done" },
    ]);
  });

  it("hands on a call whose arguments are no JSON object, so that the model can be told", async () => {
    for (const written of ['{"room":', "[7]"]) {
      streaming({
        tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "book", arguments: written } }],
      });
      const tools = [{ name: "book", description: "Books", parameters: { type: "object" } }];
      const problem = "expected a JSON object as arguments";
      const call = { kind: "tool_call", id: "c1", name: "book", arguments: {}, problem };
      assert.deepEqual((await chunksOf({ tools, toolChoice: "none" })).at(-1), call);
      assert.equal(seen?.body.tool_choice, "none");
    }
  });

  it("asks for structured output where a schema is set", async () => {
    streaming({ content: "{}" });
    await chunksOf({ outputSchema: { type: "object" } });
    assert.deepEqual(seen?.body.response_format, {
      type: "json_schema",
      json_schema: { name: "output", schema: { type: "object" } },
    });
  });

  it("tells a passing failure from a lasting one, and names no secret", async () => {
    for (const [status, kind, retryable] of [
      [401, "auth", false],
      [400, "bad_request", false],
      [429, "rate_limited", true],
      [503, "unavailable", true],
    ] as const) {
      answer = (response) =>
        response.writeHead(status, { "content-type": "application/json" }).end('{"error":{"message":"key-1"}}');
      await assert.rejects(chunksOf(), (error) => {
        assert.ok(error instanceof ProviderError);
        assert.deepEqual([error.kind, error.retryable], [kind, retryable]);
        assert.match(error.message, new RegExp(String(status)));
        assert.doesNotMatch(error.message, /key-1/);
        return true;
      });
    }
    answer = (response) => response.destroy();
    await assert.rejects(chunksOf(), { name: "ProviderError", kind: "network", retryable: true });
  });

  it("ends without an error when it is aborted", async () => {
    const abort = new AbortController();
    answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "Go" } }] })}\n\n`);
    };
    const chunks: LlmChunk[] = [];
    for await (const chunk of (await model()).reply(request, abort.signal)) {
      chunks.push(chunk);
      abort.abort();
    }
    assert.deepEqual(chunks, [{ kind: "text", text: "Go" }]);
  });

  it("gives up on an endpoint that does not begin to answer", async () => {
    answer = () => undefined;
    const slow = await model(http, { first_byte_timeout_ms: 100 });
    const chunks = slow.reply(request, new AbortController().signal)[Symbol.asyncIterator]();
    await assert.rejects(chunks.next(), { name: "ProviderError", kind: "timeout", retryable: true });
  });

  it("needs the access of a connection", async () => {
    await assert.rejects(openStage("llm", openai, { provider: "openai", language: "en", options: {} }), /access/);
  });

  it("dials no private address", async () => {
    const guarded = createGuardedHttp({ allowPrivateAddresses: false });
    await assert.rejects(chunksOf({}, undefined, guarded), /public address/);
    assert.equal(seen, undefined);
    await guarded.close();
  });
});
