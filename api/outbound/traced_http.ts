/** Requests that name the trace they belong to: W3C Trace Context, level 1. */
import type { Dispatcher } from "undici";
import type { GuardedHttp } from "./guarded_http.ts";

const header = "traceparent";

/** Who asked, as a request's header says it; undefined for none, or for one that is not well-formed. */
export function callerTraceOf(headers: Headers): { traceId: string; spanId: string } | undefined {
  const [, traceId, spanId] =
    /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}/.exec(headers.get(header) ?? "") ?? [];
  if (!traceId || !spanId || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId };
}

/** @param traceId 32 hex digits, or a UUID. @param spanId 16 hex digits */
export function traceparentOf(traceId: string, spanId: string): string {
  return `00-${traceId.replaceAll("-", "")}-${spanId}-01`;
}

/** The same client, whose requests carry `traceparent` unless they have one of their own. */
export function tracedHttp(http: GuardedHttp, traceparent: string): GuardedHttp {
  return {
    guard: http.guard,
    close: () => http.close(),
    send: (url, options) => http.send(url, { ...options, headers: withTrace(options.headers ?? {}, traceparent) }),
    get dispatcher() {
      return http.dispatcher.compose(
        (dispatch) => (options, handler) =>
          dispatch({ ...options, headers: headersWith(options.headers, traceparent) }, handler),
      );
    },
  };
}

function withTrace(headers: Record<string, string>, traceparent: string): Record<string, string> {
  const has = Object.keys(headers).some((name) => name.toLowerCase() === header);
  return has ? headers : { ...headers, [header]: traceparent };
}

/** Clients hand headers over as names and values in turn, or by name. */
function headersWith(headers: Dispatcher.DispatchOptions["headers"], traceparent: string) {
  if (headers === null || headers === undefined) return { [header]: traceparent };
  if (Array.isArray(headers)) return [...headers, header, traceparent];
  if (Symbol.iterator in headers) return headers;
  return { ...headers, [header]: traceparent };
}
