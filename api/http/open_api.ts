/** OpenAPI 3.1 of a route table. TypeBox schemas are JSON Schemas already. */
import type { TSchema } from "@sinclair/typebox";
import { type ErrorCode, errorCatalogue } from "#contracts/errors.ts";
import type { Route } from "./route.ts";

const securitySchemes = {
  personal_access_token: { type: "http", scheme: "bearer", description: "Personal access token, svc_pat_…" },
  access_key: { type: "http", scheme: "bearer", description: "Access key, svc_acc_…" },
};

const errorEnvelope = {
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["code", "message"],
      properties: {
        code: { type: "string", enum: Object.keys(errorCatalogue) },
        message: { type: "string" },
        details: { type: "object", additionalProperties: { type: "string" }, description: "message by field path" },
      },
    },
  },
};

export interface OpenApiInfo {
  title: string;
  version: string;
  description: string;
}

/** The document; routes that only our own gateway may call are left out. */
export function openApiFor(info: OpenApiInfo, routes: readonly Route[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const { spec } of routes.filter((route) => route.spec.guard.scheme !== "internal_secret")) {
    paths[spec.path] ??= {};
    paths[spec.path]![spec.method.toLowerCase()] = operationFor(spec);
  }
  return {
    openapi: "3.1.0",
    info,
    paths,
    components: { securitySchemes, schemas: { Error: errorEnvelope } },
  };
}

function operationFor(spec: Route["spec"]): object {
  const { scheme } = spec.guard;
  const pathNames = [...spec.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
  return {
    summary: spec.summary,
    security: scheme === "none" ? [] : [{ [scheme]: [] }],
    parameters: [
      ...pathNames.map((name) => ({ name, in: "path", required: true, schema: { type: "string", format: "uuid" } })),
      ...Object.entries(spec.query ?? {}).map(([name, schema]) => ({ name, in: "query", schema })),
    ],
    ...(spec.body && { requestBody: { content: jsonContent(spec.body) } }),
    responses: {
      [spec.reply.status]: {
        description: "Success",
        ...("body" in spec.reply && { content: jsonContent(spec.reply.body) }),
      },
      ...Object.fromEntries(errorsOf(spec).map((code) => [errorCatalogue[code].status, errorReply(code)])),
    },
  };
}

const jsonContent = (schema: TSchema) => ({ "application/json": { schema } });

const errorReply = (code: ErrorCode) => ({
  description: errorCatalogue[code].message,
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
});

function errorsOf(spec: Route["spec"]): ErrorCode[] {
  const codes = new Set<ErrorCode>(spec.errors);
  if (spec.guard.scheme !== "none") codes.add("unauthorized");
  if (spec.path.includes("{")) codes.add("not_found");
  if (spec.query || spec.body) codes.add("bad_request");
  if (spec.body) codes.add("payload_too_large");
  codes.add("internal_error").add("unavailable");
  return [...codes];
}
