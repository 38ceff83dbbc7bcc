/**
 * A server that speaks OpenAI's chat completions as streamed server-sent events. It repeats the last
 * message of the user, in two pieces, and counts its words as tokens.
 * Wire: https://platform.openai.com/docs/api-reference/chat-streaming
 */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TwinBehaviour, VendorTwin } from "#contracts/vendor_twin.ts";

interface ChatRequest {
  messages: { role: string; content: string | null }[];
  tools?: { function: { name: string } }[];
}

const secret = "sk-twin";

export async function startTwin(): Promise<VendorTwin> {
  let behaviour: TwinBehaviour = "answers";
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (request.headers.authorization !== `Bearer ${secret}`) return refuse(response, 401, "invalid_api_key");
    if (request.url === "/v1/models") return void response.end('{"object":"list","data":[]}');
    if (request.method !== "POST" || request.url !== "/v1/chat/completions") return refuse(response, 404, "not_found");
    answer(behaviour, JSON.parse(body) as ChatRequest, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    access: { secret, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` },
    play(stage, next) {
      if (stage !== "llm") return undefined;
      behaviour = next;
      return { model: "twin-1" };
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function answer(behaviour: TwinBehaviour, request: ChatRequest, response: ServerResponse): void {
  if (behaviour === "silent") return;
  if (behaviour === "fails") {
    refuse(response, 500, "server_error");
  } else if (behaviour === "rate_limited") {
    response.setHeader("retry-after", "1");
    refuse(response, 429, "rate_limit_exceeded");
  } else {
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (behaviour === "garbage") response.end('data: {"choices":[{"index":0,"delta":{"content":"Go\n\n');
    else if (behaviour === "calls_tool") callTool(request, response);
    else sayBack(request, response, behaviour === "drops");
  }
}

function sayBack({ messages }: ChatRequest, response: ServerResponse, drops: boolean): void {
  const asked = messages.findLast(({ role }) => role === "user")?.content ?? "";
  send(response, { role: "assistant", content: "You said: " });
  if (drops) {
    // What was written has to leave before the connection breaks.
    setImmediate(() => response.destroy());
    return;
  }
  send(response, { content: asked });
  finish(response, "stop", asked.split(/\s+/).length);
}

/** Arguments come in pieces, as the vendor sends them. */
function callTool({ tools = [] }: ChatRequest, response: ServerResponse): void {
  const name = tools[0]?.function.name ?? "";
  send(response, { tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name, arguments: "" } }] });
  send(response, { tool_calls: [{ index: 0, function: { arguments: '{"a":' } }] });
  send(response, { tool_calls: [{ index: 0, function: { arguments: "1}" } }] });
  finish(response, "tool_calls", 1);
}

function send(response: ServerResponse, delta: object): void {
  response.write(`data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [{ index: 0, delta }] })}\n\n`);
}

function finish(response: ServerResponse, reason: string, tokens: number): void {
  const last = { choices: [{ index: 0, delta: {}, finish_reason: reason }] };
  const usage = { prompt_tokens: tokens, completion_tokens: tokens, total_tokens: 2 * tokens };
  response.write(`data: ${JSON.stringify(last)}\n\n`);
  response.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { message: `${code} for ${secret}`, type: code, code } }));
}
