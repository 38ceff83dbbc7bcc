/** How the application platform's errors look: `{error: {code, message, details?}}`. */
import { type ApiError, errorCatalogue } from "#contracts/errors.ts";
import { errorHeaders } from "./error_headers.ts";
import type { ErrorContract } from "./open_api/open_api.ts";

export const platformErrorContract: ErrorContract = {
  schema: {
    type: "object",
    required: ["error"],
    properties: {
      error: {
        type: "object",
        description: "what went wrong",
        required: ["code", "message"],
        properties: {
          code: { type: "string", enum: Object.keys(errorCatalogue), description: "stable, for programs" },
          message: { type: "string", description: "for people" },
          details: { type: "object", additionalProperties: { type: "string" }, description: "message by field path" },
        },
      },
    },
  },
  invalidRequest: "bad_request",
};

export function platformErrorResponse(error: ApiError): Response {
  return Response.json({ error: error.body() }, { status: error.status, headers: errorHeaders(error) });
}
