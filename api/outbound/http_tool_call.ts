/** Makes the request of an HTTP tool: for calls, and for who tries a tool before an agent has it. */
import { AddressRefusedError } from "./address_guard.ts";
import type { GuardedHttp, GuardedResponse } from "./guarded_http.ts";
import { type HttpToolDefinition, HttpToolError, httpToolRequest } from "./http_tool.ts";
import { withoutSecrets } from "./without_secrets.ts";

export interface HttpToolCall {
  tool: HttpToolDefinition;
  given: Readonly<Record<string, unknown>>;
  /** Who asks; headers of the tool's own win. */
  headers: Readonly<Record<string, string>>;
  signal: AbortSignal;
  /** The answer is cut here. */
  answerBytesMax: number;
}

export interface HttpToolAnswer {
  status: number;
  /** Who answered. */
  host: string;
  /** Without the values of the tool's headers, should the host repeat them. */
  text: string;
}

/**
 * Whatever the host answers, errors too.
 * @throws HttpToolError where there is no answer, in words for the model; the signal's reason when it is aborted
 */
export async function callHttpTool(
  http: GuardedHttp,
  { tool, given, headers, signal, answerBytesMax }: HttpToolCall,
): Promise<HttpToolAnswer> {
  const { url, method, headers: ownHeaders, body } = httpToolRequest(tool, given);
  const request = {
    method,
    headers: { ...headers, ...ownHeaders },
    ...(body !== undefined && { body }),
    signal,
    responseBytesMax: answerBytesMax,
  };
  const { host } = new URL(url);
  let answer = await sendOnce(http, url, request);
  // Asking again for what only looks something up does no harm.
  if (method === "GET" && (answer instanceof HttpToolError || answer.status >= 500)) {
    if (!signal.aborted) answer = await sendOnce(http, url, request);
  }
  if (answer instanceof HttpToolError) throw answer;
  const secrets = (tool.headers ?? []).map(({ value }) => value);
  return { status: answer.status, host, text: withoutSecrets(answer.body.toString("utf8"), secrets) };
}

/** @returns the answer, or why there was none. @throws HttpToolError where another attempt is in vain */
async function sendOnce(
  http: GuardedHttp,
  url: string,
  request: Parameters<GuardedHttp["send"]>[1],
): Promise<GuardedResponse | HttpToolError> {
  try {
    return await http.send(url, request);
  } catch (cause) {
    request.signal?.throwIfAborted();
    for (let inner: unknown = cause; inner instanceof Error; inner = inner.cause) {
      if (inner instanceof AddressRefusedError) throw new HttpToolError(inner.message, { cause });
    }
    return new HttpToolError(`Cannot reach ${new URL(url).host}`, { cause });
  }
}
