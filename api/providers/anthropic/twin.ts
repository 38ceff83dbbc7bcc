/**
 * A server that speaks Anthropic's Messages API as streamed server-sent events. It repeats the last text of
 * the user, in two pieces, and refuses what the vendor refuses: a first message that is not the user's, two
 * of one role in a row, a call without its result.
 * Wire: https://platform.claude.com/docs/en/api/messages-streaming
 */
import type { ServerResponse } from "node:http";
import type { TwinBehaviour, VendorTwin } from "#contracts/vendor_twin.ts";
import { breakOff, startTwinServer } from "../twin_server.ts";

interface Block {
  type: string;
  text?: string;
  id?: string;
  tool_use_id?: string;
}

interface MessagesRequest {
  model: string;
  max_tokens?: number;
  messages: { role: string; content: Block[] | string }[];
  tools?: { name: string; input_schema: object }[];
}

type Event = { type: string } & Record<string, unknown>;

const secret = "sk-ant-twin";

export async function startTwin(): Promise<VendorTwin> {
  let behaviour: TwinBehaviour = "answers";
  const { url, close } = await startTwinServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (request.headers.authorization !== `Bearer ${secret}`) return refuse(response, 401, "authentication_error");
    if (!request.headers["anthropic-version"]) return refuse(response, 400, "invalid_request_error");
    if (request.url?.startsWith("/v1/models")) {
      response.end('{"data":[],"has_more":false}');
      return;
    }
    if (request.method !== "POST" || request.url !== "/v1/messages") return refuse(response, 404, "not_found_error");
    answer(behaviour, JSON.parse(body) as MessagesRequest, response);
  });
  return {
    access: { secret, baseUrl: url },
    play(stage, next) {
      if (stage !== "llm") return undefined;
      behaviour = next;
      return { model: "twin-1" };
    },
    close,
  };
}

function answer(behaviour: TwinBehaviour, request: MessagesRequest, response: ServerResponse): void {
  if (behaviour === "silent") return;
  if (behaviour === "fails") refuse(response, 529, "overloaded_error");
  else if (behaviour === "rate_limited") {
    response.setHeader("retry-after", "1");
    refuse(response, 429, "rate_limit_error");
  } else if (!isWellFormed(request)) refuse(response, 400, "invalid_request_error");
  else {
    response.writeHead(200, { "content-type": "text/event-stream" });
    if (behaviour === "garbage") response.end('event: message_start\ndata: {"type":"message_start","mess\n\n');
    else if (behaviour === "calls_tool") callTool(request, response);
    else sayBack(request, response, behaviour === "drops");
  }
}

const blocksOf = (content: Block[] | string): Block[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : content;

function isWellFormed({ model, max_tokens, messages }: MessagesRequest): boolean {
  const roles = messages.map(({ role }) => role);
  const takeTurns = roles.every((role, index) => role === (index % 2 === 0 ? "user" : "assistant"));
  const areAnswered = messages.every(({ content }, index) => {
    const asked = blocksOf(content).flatMap(({ type, id }) => (type === "tool_use" ? [id] : []));
    const next = blocksOf(messages[index + 1]?.content ?? []).slice(0, asked.length);
    return asked.every((id) => next.some(({ tool_use_id }) => tool_use_id === id));
  });
  return Boolean(model) && Number(max_tokens) > 0 && takeTurns && areAnswered && roles.at(-1) === "user";
}

function sayBack({ messages }: MessagesRequest, response: ServerResponse, drops: boolean): void {
  const text = blocksOf(messages.at(-1)?.content ?? "").findLast(({ type }) => type === "text")?.text ?? "";
  begin(response);
  send(response, { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
  send(response, { type: "ping" });
  const said = { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "You said: " } };
  if (drops) {
    breakOff(response, eventOf(said));
    return;
  }
  send(response, said);
  send(response, { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
  end(response, "end_turn");
}

/** Arguments come in pieces, as the vendor sends them. */
function callTool({ tools = [] }: MessagesRequest, response: ServerResponse): void {
  const name = tools[0]?.name ?? "";
  begin(response);
  const content_block = { type: "tool_use", id: "toolu_1", name, input: {} };
  send(response, { type: "content_block_start", index: 0, content_block });
  for (const partial_json of ["", '{"a":', "1}"]) {
    send(response, { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json } });
  }
  end(response, "tool_use");
}

function begin(response: ServerResponse): void {
  const usage = { input_tokens: 5, cache_read_input_tokens: 4, cache_creation_input_tokens: 0, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "twin-1", content: [], usage };
  send(response, { type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null } });
}

function end(response: ServerResponse, stop_reason: string): void {
  send(response, { type: "content_block_stop", index: 0 });
  send(response, { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 3 } });
  response.end(eventOf({ type: "message_stop" }));
}

function send(response: ServerResponse, event: Event): void {
  response.write(eventOf(event));
}

function eventOf(event: Event): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

function refuse(response: ServerResponse, status: number, type: string): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ type: "error", error: { type, message: `${type} for ${secret}` } }));
}
