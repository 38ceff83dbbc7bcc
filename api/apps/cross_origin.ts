/**
 * Browsers on other origins may call apps: what opens an app is the bearer credential of the request, never
 * a cookie, so an origin neither adds nor takes away anything. Who may call is the app's access control to say.
 */
import type { Fetch } from "#http/service.ts";

/** What a page may read besides the body. `Run-Id` and `Run-Replayed-From` stand on streams, `Run-Token` on what starts a run. */
const exposed = "Run-Id, Run-Replayed-From, Run-Token, Retry-After, WWW-Authenticate, X-Request-Id";

/** Chromium keeps a preflight's answer for two hours at most. */
const preflightHeaders = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Run-Token",
  "access-control-max-age": "7200",
};

/** The service as pages of all origins may call it (Fetch standard, section 3.2: CORS protocol). */
export function openToAllOrigins(service: Fetch): Fetch {
  return async (request) => {
    const isPreflight = request.method === "OPTIONS" && request.headers.has("access-control-request-method");
    if (isPreflight) return new Response(null, { status: 204, headers: preflightHeaders });
    const response = await service(request);
    response.headers.set("access-control-allow-origin", "*");
    response.headers.set("access-control-expose-headers", exposed);
    return response;
  };
}
