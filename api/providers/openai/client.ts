/** The vendor's own client, behind the address guard, and what its failures mean. */

import OpenAI, { APIConnectionError, APIConnectionTimeoutError, APIError, APIUserAbortError } from "openai";
import { fetch as undiciFetch } from "undici";
import type { ProviderErrorKind } from "#contracts/codes.ts";
import type { ModelStage } from "#contracts/voice_agent.ts";
import { AddressRefusedError } from "#outbound/address_guard.ts";
import type { ProviderAccess } from "../provider.ts";
import { kindOfStatus, ProviderError } from "../provider_error.ts";

/** @param firstByteTimeoutMs until the answer begins */
export function openClient({ secret, baseUrl, http }: ProviderAccess, firstByteTimeoutMs: number): OpenAI {
  return new OpenAI({
    apiKey: secret,
    baseURL: baseUrl ?? "https://api.openai.com/v1",
    timeout: firstByteTimeoutMs,
    // The caller decides about another attempt.
    maxRetries: 0,
    // The client would print what it cannot read: words of the caller.
    logLevel: "off",
    fetch: (url, init) =>
      undiciFetch(String(url), { ...(init as object), redirect: "error", dispatcher: http.dispatcher }) as never,
  });
}

export const wasAborted = (error: unknown, signal: AbortSignal) => signal.aborted || error instanceof APIUserAbortError;

/** Nothing of the request, least of all the key, is part of what it says. */
export function readable(stage: ModelStage, error: unknown, model: string): ProviderError {
  const failed = (message: string, kind: ProviderErrorKind) =>
    new ProviderError(stage, message, { cause: error, kind });
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof AddressRefusedError) return failed(cause.message, "address_refused");
  }
  if (error instanceof ProviderError) return error;
  if (error instanceof APIConnectionTimeoutError) return failed(`Cannot reach the endpoint of ${model}`, "timeout");
  if (error instanceof APIConnectionError) return failed(`Cannot reach the endpoint of ${model}`, "network");
  if (error instanceof APIError && error.status !== undefined) {
    return failed(`The endpoint of ${model} answered ${error.status}`, kindOfStatus(error.status));
  }
  const kind = error instanceof SyntaxError ? "protocol" : "network";
  return failed(`The endpoint of ${model} broke off its answer`, kind);
}
