/** OpenAPI 3.1 of a route table. TypeBox schemas are JSON Schemas already. */
import type { TSchema } from "@sinclair/typebox";
import { type ErrorCode, errorCatalogue } from "#contracts/errors.ts";
import type { CredentialScheme, Route } from "./route.ts";

const securitySchemes = {
  personal_access_token: { type: "http", scheme: "bearer", description: "Personal access token, svc_pat_…" },
  access_key: { type: "http", scheme: "bearer", description: "Access key, svc_acc_…" },
  access_token: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "Access token of a sign-in" },
  api_key: {
    type: "apiKey",
    in: "header",
    name: "X-API-Key",
    description: "API key, svc_tax_…; decides where both are sent",
  },
};

/** What a route's credential is called among the schemes above: one of these is enough. */
function securityOf(scheme: CredentialScheme): object[] {
  if (scheme === "none") return [];
  if (scheme === "api_key_or_access_token") return [{ api_key: [] }, { access_token: [] }];
  return [{ [scheme]: [] }];
}

export interface OpenApiInfo {
  title: string;
  version: string;
  description: string;
}

/** How a service's errors look. */
export interface ErrorContract {
  /** JSON Schema of every error's body. */
  schema: object;
  /** What a request that does not fit its schema is answered with. */
  invalidRequest: ErrorCode;
}

/** The document; routes that only our own gateway may call are left out. */
export function openApiFor(info: OpenApiInfo, errors: ErrorContract, routes: readonly Route[]): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const { spec } of routes.filter((route) => route.spec.guard.scheme !== "internal_secret")) {
    paths[spec.path] ??= {};
    paths[spec.path]![spec.method.toLowerCase()] = operationFor(spec, errors);
  }
  return {
    openapi: "3.1.0",
    info,
    paths,
    components: { securitySchemes, schemas: { Error: errors.schema } },
  };
}

function operationFor(spec: Route["spec"], errors: ErrorContract): object {
  const { scheme } = spec.guard;
  const pathNames = [...spec.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "");
  const typed: Readonly<Record<string, TSchema>> = spec.params ?? {};
  const schemaOf = (name: string) => typed[name] ?? { type: "string", format: "uuid" };
  return {
    summary: spec.summary,
    security: securityOf(scheme),
    parameters: [
      ...pathNames.map((name) => ({ name, in: "path", required: true, schema: schemaOf(name) })),
      ...Object.entries(spec.query ?? {}).map(([name, schema]) => ({ name, in: "query", schema })),
    ],
    ...(spec.body && { requestBody: { content: jsonContent(spec.body) } }),
    responses: {
      [spec.reply.status]: {
        description: "Success",
        ...("body" in spec.reply && { content: jsonContent(spec.reply.body) }),
      },
      ...Object.fromEntries(errorsOf(spec, errors).map((code) => [errorCatalogue[code].status, errorReply(code)])),
    },
  };
}

const jsonContent = (schema: TSchema) => ({ "application/json": { schema } });

const errorReply = (code: ErrorCode) => ({
  description: errorCatalogue[code].message,
  content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
});

function errorsOf(spec: Route["spec"], errors: ErrorContract): ErrorCode[] {
  const codes = new Set<ErrorCode>(spec.errors);
  if (spec.guard.scheme !== "none") codes.add("unauthorized");
  if (spec.path.includes("{")) codes.add("not_found");
  if (spec.query || spec.body || spec.params) codes.add(errors.invalidRequest);
  if (spec.body) codes.add("payload_too_large");
  codes.add("internal_error").add("unavailable");
  return [...codes];
}
