/**
 * Models behind Anthropic's Messages API: streamed text, tool calls. Instructions and tools are marked for
 * the vendor's cache, because every turn of a call repeats them.
 * Wire: https://platform.claude.com/docs/en/api/messages-streaming
 */

import Anthropic, {
  APIConnectionError,
  APIConnectionTimeoutError,
  APIError,
  APIUserAbortError,
} from "@anthropic-ai/sdk";
import type { RawMessageStreamEvent, Tool } from "@anthropic-ai/sdk/resources/messages";
import { fetch as undiciFetch } from "undici";
import type { ProviderErrorKind } from "#contracts/codes.ts";
import { AddressRefusedError } from "#outbound/address_guard.ts";
import type { LanguageModel, LlmChunk, LlmRequest, ToolSpec, VendorStageRequest } from "../provider.ts";
import { kindOfStatus, ProviderError } from "../provider_error.ts";
import { toolCallOf } from "../tool_call.ts";
import { messagesOf } from "./messages.ts";
import type { AnthropicOptions } from "./options.ts";

export function open({ settings, options, access }: VendorStageRequest<AnthropicOptions>): LanguageModel {
  const { secret, baseUrl, http } = access;
  const client = new Anthropic({
    apiKey: secret,
    baseURL: baseUrl ?? "https://api.anthropic.com",
    timeout: options.first_byte_timeout_ms,
    // The caller decides about another attempt.
    maxRetries: 0,
    // The client would print what it cannot read: words of the caller.
    logLevel: "off",
    fetch: (url, init) =>
      undiciFetch(String(url), { ...(init as object), redirect: "error", dispatcher: http.dispatcher }) as never,
  });
  const { model = "" } = settings;
  return {
    async *reply(request, signal) {
      if (signal.aborted) return;
      try {
        const stream = await client.messages.create(
          {
            model,
            max_tokens: options.max_tokens,
            stream: true,
            ...conversationOf(request),
          },
          { signal },
        );
        yield* chunksOf(stream, model, signal);
      } catch (error) {
        if (signal.aborted || error instanceof APIUserAbortError) return;
        throw readable(error, model);
      }
    },
    close() {},
  };
}

const cached = { cache_control: { type: "ephemeral" as const } };

function conversationOf({ instructions, history, tools, toolChoice = "auto", outputSchema }: LlmRequest) {
  const specs = tools.map(toolOf);
  const last = specs.at(-1);
  if (last) Object.assign(last, cached);
  return {
    messages: messagesOf(history),
    ...(instructions && { system: [{ type: "text" as const, text: instructions, ...cached }] }),
    ...(specs.length > 0 && { tools: specs, tool_choice: { type: toolChoice } }),
    ...(outputSchema && { output_config: { format: { type: "json_schema" as const, schema: { ...outputSchema } } } }),
  };
}

function toolOf({ name, description, parameters }: ToolSpec): Tool {
  return { name, description, input_schema: { type: "object", ...parameters } };
}

async function* chunksOf(
  stream: AsyncIterable<RawMessageStreamEvent>,
  model: string,
  signal: AbortSignal,
): AsyncGenerator<LlmChunk> {
  const calls = new Map<number, { id: string; name: string; json: string }>();
  const usage = { prompt: 0, completion: 0, cached: 0 };
  let isOver = false;
  let hasSpoken = false;
  let refused = false;
  for await (const event of stream) {
    if (signal.aborted) return;
    if (event.type === "message_start") {
      const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens } = event.message.usage;
      usage.cached = cache_read_input_tokens ?? 0;
      usage.prompt = input_tokens + usage.cached + (cache_creation_input_tokens ?? 0);
    } else if (event.type === "content_block_start" && event.content_block.type === "tool_use") {
      calls.set(event.index, { id: event.content_block.id, name: event.content_block.name, json: "" });
    } else if (event.type === "content_block_delta") {
      if (event.delta.type === "text_delta" && event.delta.text) {
        hasSpoken = true;
        yield { kind: "text", text: event.delta.text };
      }
      const call = calls.get(event.index);
      if (call && event.delta.type === "input_json_delta") call.json += event.delta.partial_json;
    } else if (event.type === "message_delta") {
      usage.completion = event.usage.output_tokens;
      refused = event.delta.stop_reason === "refusal";
    } else if (event.type === "message_stop") isOver = true;
  }
  if (signal.aborted) return;
  if (!isOver) throw new ProviderError("llm", `The endpoint of ${model} broke off its answer`, { kind: "network" });
  if (refused && !hasSpoken) throw new ProviderError("llm", `${model} refuses to answer this`, { kind: "refusal" });
  for (const { id, name, json } of calls.values()) yield toolCallOf(id, name, json);
  yield { kind: "usage", ...usage };
}

/** Nothing of the request, least of all the key, is part of what it says. */
function readable(error: unknown, model: string): ProviderError {
  const failed = (message: string, kind: ProviderErrorKind) =>
    new ProviderError("llm", message, { cause: error, kind });
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof AddressRefusedError) return failed(cause.message, "address_refused");
  }
  if (error instanceof ProviderError) return error;
  if (error instanceof APIConnectionTimeoutError) return failed(`Cannot reach the endpoint of ${model}`, "timeout");
  if (error instanceof APIConnectionError) return failed(`Cannot reach the endpoint of ${model}`, "network");
  if (error instanceof APIError) {
    // An `error` event in mid-answer has no status; `overloaded_error` is the usual one.
    if (error.status === undefined) return failed(`The endpoint of ${model} broke off its answer`, "unavailable");
    return failed(`The endpoint of ${model} answered ${error.status}`, kindOfStatus(error.status));
  }
  const kind = error instanceof SyntaxError ? "protocol" : "network";
  return failed(`The endpoint of ${model} broke off its answer`, kind);
}
