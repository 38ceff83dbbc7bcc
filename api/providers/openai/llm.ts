/**
 * Any endpoint that speaks OpenAI's chat completions API (OpenAI, vLLM, Ollama, LiteLLM …) as a
 * language model: streamed text, tool calls, structured output. Every connection passes the address
 * guard. Wire: https://platform.openai.com/docs/api-reference/chat
 */
import type OpenAI from "openai";
import type { HistoryItem, LanguageModel, LlmChunk, LlmRequest, VendorStageRequest } from "../provider.ts";
import { toolCallOf } from "../tool_call.ts";
import { openClient, readable, wasAborted } from "./client.ts";
import type { OpenAiLlmOptions } from "./options.ts";

type Message = OpenAI.Chat.ChatCompletionMessageParam;
type ChunkDelta = OpenAI.Chat.ChatCompletionChunk.Choice.Delta;

/** The model that `settings.model` names, behind the endpoint of the connection: OpenAI's own unless it has an address. */
export function open(request: VendorStageRequest<OpenAiLlmOptions>): LanguageModel {
  const { settings, options, access } = request;
  const client = openClient(access, options.first_byte_timeout_ms);
  const params: ModelParams = {
    model: settings.model ?? "",
    ...(settings.temperature !== undefined && { temperature: settings.temperature }),
    ...(options.max_tokens !== undefined && { max_tokens: options.max_tokens }),
  };
  return {
    reply: (asked, signal) => reply(client, params, asked, signal),
    close() {},
  };
}

type ModelParams = Pick<OpenAI.Chat.ChatCompletionCreateParamsStreaming, "model" | "temperature" | "max_tokens">;

async function* reply(
  client: OpenAI,
  params: ModelParams,
  request: LlmRequest,
  signal: AbortSignal,
): AsyncGenerator<LlmChunk> {
  const calls: { id: string; name: string; arguments: string }[] = [];
  try {
    const stream = await client.chat.completions.create(
      {
        ...params,
        stream: true,
        stream_options: { include_usage: true },
        messages: messagesOf(request),
        ...(request.tools.length > 0 && {
          tools: request.tools.map(toolOf),
          tool_choice: request.toolChoice ?? "auto",
        }),
        ...(request.outputSchema && {
          response_format: {
            type: "json_schema",
            json_schema: { name: "output", schema: { ...request.outputSchema } },
          },
        }),
      },
      { signal },
    );
    for await (const { choices, usage } of stream) {
      // What had arrived before the abort is still handed out.
      if (signal.aborted) return;
      const delta = choices[0]?.delta;
      if (delta?.content) yield { kind: "text", text: delta.content };
      if (delta) collectCalls(calls, delta);
      if (usage) {
        const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
        yield { kind: "usage", prompt: usage.prompt_tokens, completion: usage.completion_tokens, cached };
      }
    }
  } catch (error) {
    if (wasAborted(error, signal)) return;
    throw readable("llm", error, params.model);
  }
  for (const call of calls) yield toolCallOf(call.id, call.name, call.arguments);
}

/** A tool call comes in pieces, told apart by their index. */
function collectCalls(calls: { id: string; name: string; arguments: string }[], delta: ChunkDelta): void {
  for (const piece of delta.tool_calls ?? []) {
    calls[piece.index] ??= { id: "", name: "", arguments: "" };
    const call = calls[piece.index];
    if (!call) continue;
    call.id ||= piece.id ?? "";
    call.name += piece.function?.name ?? "";
    call.arguments += piece.function?.arguments ?? "";
  }
}

function messagesOf({ instructions, history }: LlmRequest): Message[] {
  const messages: Message[] = instructions ? [{ role: "system", content: instructions }] : [];
  for (const item of history) messages.push(...messagesFor(item));
  return messages;
}

function messagesFor({ role, text, call }: HistoryItem): Message[] {
  if (role === "agent") return [{ role: "assistant", content: text }];
  if (role === "context") return [{ role: "system", content: text }];
  if (role === "tool" && call) {
    const asked = {
      id: call.id,
      type: "function" as const,
      function: { name: call.name, arguments: JSON.stringify(call.arguments) },
    };
    return [
      { role: "assistant", content: null, tool_calls: [asked] },
      { role: "tool", tool_call_id: call.id, content: text },
    ];
  }
  return [{ role: "user", content: text }];
}

function toolOf({ name, description, parameters }: LlmRequest["tools"][number]): OpenAI.Chat.ChatCompletionTool {
  return { type: "function", function: { name, description, parameters: { ...parameters } } };
}
