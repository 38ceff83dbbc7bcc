/** How the application platform's errors look: `{error: {code, message, details?}}`. */
import type { ApiError } from "#contracts/errors.ts";

export function platformErrorResponse(error: ApiError): Response {
  const headers: Record<string, string> = {};
  if (error.retryAfterS !== undefined) headers["retry-after"] = String(error.retryAfterS);
  if (error.code === "unauthorized") headers["www-authenticate"] = "Bearer";
  return Response.json({ error: error.body() }, { status: error.status, headers });
}
