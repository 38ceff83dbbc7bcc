/**
 * Any endpoint that speaks OpenAI's chat completions API (OpenAI, vLLM, Ollama, LiteLLM …) as a
 * language model: streamed text, tool calls, structured output. Every connection passes the address
 * guard. Wire: https://platform.openai.com/docs/api-reference/chat
 */
import OpenAI, { APIConnectionError, APIError, APIUserAbortError } from "openai";
import { type Dispatcher, fetch as undiciFetch } from "undici";
import { AddressRefusedError } from "../address_guard.ts";
import type { HistoryItem, LanguageModel, LlmChunk, LlmRequest } from "./language_model.ts";
import { ProviderError } from "./provider_error.ts";

type Message = OpenAI.Chat.ChatCompletionMessageParam;
type ChunkDelta = OpenAI.Chat.ChatCompletionChunk.Choice.Delta;

export interface OpenAiModelOptions {
  /** The endpoint's root, for example `https://api.openai.com/v1`; OpenAI's own unless given. */
  baseUrl?: string;
  apiKey: string;
  model: string;
  temperature?: number;
  maxTokens?: number;
  /** Opens the connections: the guarded one. */
  dispatcher: Dispatcher;
  /** Until the first byte of the answer. */
  timeoutMs?: number;
}

/** A model's failure that a later attempt may not meet: the endpoint was busy, away or broken. */
export class ModelUnavailableError extends ProviderError {
  constructor(message: string, options?: ErrorOptions) {
    super("llm", message, options);
    this.name = "ModelUnavailableError";
  }
}

export function createOpenAiModel(options: OpenAiModelOptions): LanguageModel {
  const client = new OpenAI({
    apiKey: options.apiKey,
    baseURL: options.baseUrl ?? "https://api.openai.com/v1",
    timeout: options.timeoutMs ?? 60_000,
    // Whoever calls decides about another attempt.
    maxRetries: 0,
    fetch: (url, init) =>
      undiciFetch(String(url), { ...(init as object), redirect: "error", dispatcher: options.dispatcher }) as never,
  });
  return {
    reply: (request, signal) => reply(client, options, request, signal),
    close() {},
  };
}

async function* reply(
  client: OpenAI,
  { model, temperature, maxTokens }: OpenAiModelOptions,
  request: LlmRequest,
  signal: AbortSignal,
): AsyncGenerator<LlmChunk> {
  const calls: { id: string; name: string; arguments: string }[] = [];
  try {
    const stream = await client.chat.completions.create(
      {
        model,
        stream: true,
        stream_options: { include_usage: true },
        messages: messagesOf(request),
        ...(temperature !== undefined && { temperature }),
        ...(maxTokens !== undefined && { max_tokens: maxTokens }),
        ...(request.tools.length > 0 && { tools: request.tools.map(toolOf) }),
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
      const delta = choices[0]?.delta;
      if (delta?.content) yield { kind: "text", text: delta.content };
      if (delta) collectCalls(calls, delta);
      if (usage) {
        const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
        yield { kind: "usage", prompt: usage.prompt_tokens, completion: usage.completion_tokens, cached };
      }
    }
  } catch (error) {
    if (signal.aborted || error instanceof APIUserAbortError) return;
    throw readable(error, model);
  }
  for (const call of calls) yield { kind: "tool_call", id: call.id, name: call.name, arguments: argumentsOf(call) };
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

function argumentsOf(call: { name: string; arguments: string }): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(call.arguments || "{}");
    if (parsed !== null && typeof parsed === "object" && !Array.isArray(parsed))
      return parsed as Record<string, unknown>;
  } catch {
    // Told below, like every other value that is no object.
  }
  throw new ProviderError("llm", `Expected an object as arguments of ${call.name}`);
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

/** Nothing of the request, least of all the key, is part of what it says. */
function readable(error: unknown, model: string): ProviderError {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof AddressRefusedError) return new ProviderError("llm", cause.message, { cause: error });
  }
  if (error instanceof APIConnectionError) {
    return new ModelUnavailableError(`Cannot reach the endpoint of ${model}`, { cause: error });
  }
  if (error instanceof APIError && error.status !== undefined) {
    const message = `The endpoint of ${model} answered ${error.status}`;
    const isPassing = error.status >= 500 || error.status === 429 || error.status === 408;
    return isPassing
      ? new ModelUnavailableError(message, { cause: error })
      : new ProviderError("llm", message, { cause: error });
  }
  if (error instanceof ProviderError) return error;
  return new ModelUnavailableError(`The endpoint of ${model} broke off its answer`, { cause: error });
}
