/** Answers of other people's servers, made into a node's output, and their failures into a node's error. */
import { AddressRefusedError } from "#outbound/address_guard.ts";
import type { GuardedHttp, GuardedRequest, GuardedResponse } from "#outbound/guarded_http.ts";
import { NodeError } from "./node_kind.ts";

export const responseBytesMax = 1024 * 1024;

export interface HttpAnswer {
  status: number;
  headers: Record<string, string>;
  /** JSON where the answer says that it is, text otherwise. */
  body: unknown;
}

/** Sends it; a status of 400 and above is an error. @throws NodeError, retryable where trying again may help */
export async function sendForNode(
  http: GuardedHttp,
  url: string,
  request: Omit<GuardedRequest, "responseBytesMax">,
): Promise<HttpAnswer> {
  if (!URL.canParse(url)) throw new NodeError("bad_url", `Cannot call ${url}: expected an absolute URL`);
  let response: GuardedResponse;
  try {
    response = await http.send(url, { ...request, responseBytesMax });
  } catch (cause) {
    if (request.signal?.aborted) throw cause;
    if (cause instanceof AddressRefusedError) throw new NodeError("address_refused", cause.message, { cause });
    const message = `Cannot reach ${new URL(url).host}: ${cause instanceof Error ? cause.message : "no answer"}`;
    throw new NodeError("unreachable", message, { cause, retryable: true });
  }
  if (response.truncated) throw new NodeError("response_too_large", `Expected at most ${responseBytesMax} bytes`);
  if (response.status >= 400) {
    const retryable = response.status >= 500 || response.status === 429 || response.status === 408;
    throw new NodeError("http_status", `${new URL(url).host} answered ${response.status}`, { retryable });
  }
  return { status: response.status, headers: response.headers, body: bodyOf(response) };
}

function bodyOf({ headers, body }: GuardedResponse): unknown {
  const text = body.toString("utf8");
  if (!/\bjson\b/i.test(headers["content-type"] ?? "")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
