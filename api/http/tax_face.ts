/**
 * How the tax service's errors look: `{detail}`. A plain sentence, or for a request that does not
 * fit its schema a 422 with the list of issues, each with `type`, `loc` and `msg`.
 */
import type { ApiError } from "#contracts/errors.ts";
import { errorHeaders } from "./error_headers.ts";
import type { ErrorContract } from "./open_api/open_api.ts";

const issueSchema = {
  type: "object",
  required: ["type", "loc", "msg"],
  properties: {
    type: { type: "string", description: "what kind of problem, for programs" },
    loc: { type: "array", items: { type: ["string", "integer"] }, description: "body, query or path, then names" },
    msg: { type: "string", description: "for people" },
  },
};

export const taxErrorContract: ErrorContract = {
  schema: {
    type: "object",
    required: ["detail"],
    properties: {
      detail: {
        description: "a sentence, or the issues of a request that does not fit its schema",
        anyOf: [{ type: "string" }, { type: "array", items: issueSchema }],
      },
      completeness: {
        description: "of a calculation that require_complete refuses: as a calculation answers it",
        type: "object",
        additionalProperties: true,
      },
      violations: {
        description: "of an e-invoice that is not ready to be sent: the rules that it breaks",
        type: "array",
        items: {
          type: "object",
          required: ["rule", "term", "path", "message"],
          properties: {
            rule: { type: "string", description: "as its publisher names it: BR-…, PEPPOL-…, DE-R-…" },
            term: { type: "string", description: "the business term of EN 16931, BT-…, or group, BG-…" },
            path: { type: "string", description: "the field of the document" },
            message: { type: "string", description: "what the rule asks for" },
          },
        },
      },
    },
  },
  invalidRequest: "unprocessable",
};

/** The status that this service answers for an error: a request that does not fit is 422, not 400. */
export function taxStatusOf(error: ApiError): number {
  return error.issues ? 422 : error.status;
}

export function taxErrorResponse(error: ApiError): Response {
  const detail = error.issues ?? error.detail ?? sentenceFor(error);
  const headers = errorHeaders(error);
  return Response.json({ detail, ...error.beside }, { status: taxStatusOf(error), headers });
}

/** For a path that no service has: in the forms of both, since whose client asks is not known. */
export function unknownPathResponse(error: ApiError): Response {
  const body = { detail: sentenceFor(error), error: error.body() };
  return Response.json(body, { status: error.status, headers: errorHeaders(error) });
}

/** Handlers that name fields, for both services alike, are readable here as well. */
function sentenceFor({ details, message }: ApiError): string {
  const parts = Object.entries(details ?? {}).map(([path, text]) => `${path}: ${text}`);
  return parts.length > 0 ? parts.join("; ") : message;
}
