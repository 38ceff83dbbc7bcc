/**
 * Language models that follow a script, over the wires of their vendors: what is said to a request depends on
 * the caller's last words and on whether its tools have answered. Both read one script, so that a conversation
 * can be had with either.
 */
import type { ServerResponse } from "node:http";
import { startTwinServer } from "#providers/twin_server.ts";

export interface ScriptedTurn {
  /** Tools that are called at once, with their arguments; then `says`. */
  calls?: Readonly<Record<string, object>>;
  says: string;
}
/** By what the caller said. */
export type ConversationScript = Readonly<Record<string, ScriptedTurn>>;

export interface ScriptedModel {
  provider: "openai" | "anthropic";
  access: { secret: string; baseUrl: string };
  close(): Promise<void>;
}

const secret = "sk-of-a-scripted-model";

interface Message {
  role: string;
  content: string | { type: string; text?: string }[] | null;
}

/** Texts of the user and results of tools, as either vendor's request has them, in order. */
function partsOf(messages: readonly Message[]): { is: "text" | "result"; text: string }[] {
  return messages.flatMap(({ role, content }) => {
    if (role === "tool") return [{ is: "result" as const, text: "" }];
    if (role !== "user") return [];
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
    return blocks.map(({ type, text = "" }) => ({
      is: type === "tool_result" ? ("result" as const) : ("text" as const),
      text,
    }));
  });
}

export async function startScriptedModel(
  provider: ScriptedModel["provider"],
  script: ConversationScript,
): Promise<ScriptedModel> {
  const { url, close } = await startTwinServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { messages } = JSON.parse(body) as { messages: Message[] };
    const parts = partsOf(messages);
    const asked = parts.findLast(({ is }) => is === "text")?.text ?? "";
    const turn = script[asked] ?? { says: `Nothing is written for: ${asked}` };
    const isAnswered = parts.at(-1)?.is === "result";
    response.writeHead(200, { "content-type": "text/event-stream" });
    const calls = isAnswered ? [] : Object.entries(turn.calls ?? {});
    (provider === "openai" ? answerAsOpenAi : answerAsAnthropic)(response, calls, turn.says);
  });
  return { provider, access: { secret, baseUrl: provider === "openai" ? `${url}/v1` : url }, close };
}

type Calls = readonly [name: string, given: object][];

function answerAsOpenAi(response: ServerResponse, calls: Calls, says: string): void {
  const send = (choice: object) =>
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`);
  for (const [index, [name, given]] of calls.entries()) {
    const call = { index, id: `call_${index}`, type: "function", function: { name, arguments: JSON.stringify(given) } };
    send({ delta: { tool_calls: [call] } });
  }
  if (calls.length === 0) send({ delta: { content: says } });
  send({ delta: {}, finish_reason: calls.length > 0 ? "tool_calls" : "stop" });
  response.end("data: [DONE]\n\n");
}

function answerAsAnthropic(response: ServerResponse, calls: Calls, says: string): void {
  const send = (event: { type: string; [field: string]: unknown }) =>
    response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage };
  send({ type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null } });
  for (const [index, [name, given]] of calls.entries()) {
    const content_block = { type: "tool_use", id: `toolu_${index}`, name, input: {} };
    send({ type: "content_block_start", index, content_block });
    const delta = { type: "input_json_delta", partial_json: JSON.stringify(given) };
    send({ type: "content_block_delta", index, delta });
    send({ type: "content_block_stop", index });
  }
  if (calls.length === 0) {
    send({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });
    send({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: says } });
    send({ type: "content_block_stop", index: 0 });
  }
  const stop_reason = calls.length > 0 ? "tool_use" : "end_turn";
  send({ type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 1 } });
  response.end('event: message_stop\ndata: {"type":"message_stop"}\n\n');
}
