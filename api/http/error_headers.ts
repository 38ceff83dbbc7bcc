/** Headers that an error's answer has in every service. */
import type { ApiError } from "#contracts/errors.ts";

export function errorHeaders(error: ApiError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (error.retryAfterS !== undefined) headers["retry-after"] = String(error.retryAfterS);
  if (error.allow !== undefined) headers.allow = error.allow.join(", ");
  if (error.code === "unauthorized") headers["www-authenticate"] = "Bearer";
  return headers;
}
