/** OpenAPI 3.1 of a route table. TypeBox schemas are JSON Schemas already. */
import { OptionalKind, type TSchema } from "@sinclair/typebox";
import { type ErrorCode, errorCatalogue } from "#contracts/errors.ts";
import type { CredentialScheme, Route } from "../route.ts";
import { examplesIn } from "./examples.ts";
import { fieldWords } from "./field_words.ts";

const securitySchemes = {
  personal_access_token: { type: "http", scheme: "bearer", description: "Personal access token, svc_pat_…" },
  access_key: { type: "http", scheme: "bearer", description: "Access key, svc_acc_…" },
  run_token: {
    type: "apiKey",
    in: "header",
    name: "Run-Token",
    description: "Token of one run of a public app, svc_run_…; also as a bearer credential",
  },
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
  if (scheme === "access_key_or_nothing") return [{ access_key: [] }, {}];
  if (scheme === "access_key_or_run_token") return [{ access_key: [] }, { run_token: [] }];
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
  const shown = routes.map((route) => route.spec).filter((spec) => spec.guard.scheme !== "internal_secret");
  const schemes = new Set(shown.flatMap((spec) => securityOf(spec.guard.scheme).flatMap(Object.keys)));
  const paths: Record<string, Record<string, object>> = {};
  for (const spec of shown) {
    paths[spec.path] ??= {};
    paths[spec.path]![spec.method.toLowerCase()] = operationFor(spec, shown, errors);
  }
  const shared: SharedSchemas = new Map();
  const sharedPaths = withSharedSchemas(paths, shared);
  const schemas = Object.fromEntries([...shared].sort().map(([name, { schema }]) => [name, schema]));
  return {
    openapi: "3.1.0",
    info,
    paths: sharedPaths,
    components: {
      securitySchemes: Object.fromEntries(Object.entries(securitySchemes).filter(([name]) => schemes.has(name))),
      schemas: { Error: documented(errors.schema, shared), ...schemas },
    },
  };
}

/**
 * Schemas with an `$id` (`named` gives one, and TypeBox to each recursive type) stand among the shared
 * ones, once, and wherever they are used, themselves included, stands a reference.
 * @throws Error for two schemas of one name
 */
function withSharedSchemas(value: unknown, shared: SharedSchemas): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => withSharedSchemas(one, shared));
  const { $id, ...rest } = value as { $id?: unknown; enum?: unknown; about?: unknown };
  // JSON Schema advises against a set of no words: it says that nothing fits.
  if (Array.isArray(rest.enum) && rest.enum.length === 0) return documented({ ...wordsIn(rest), not: {} }, shared);
  if (typeof $id !== "string") return documented(rest, shared);
  // About the place where it is used, not about the schema.
  const { about, ...own } = rest as { about?: string };
  const reference = { $ref: refTo($id), ...(about !== undefined && { description: about }) };
  const text = JSON.stringify(own);
  const known = shared.get($id);
  if (known && known.text !== text) throw new Error(`Two schemas have the name ${$id}: give one of them another`);
  if (known) return reference;
  // Taken before its parts are looked at, since they may name it.
  const entry = { text, schema: {} as unknown };
  shared.set($id, entry);
  entry.schema = documented(own, shared);
  return reference;
}

/** Shared schemas by name: how they are declared, and how documents have them. */
type SharedSchemas = Map<string, { text: string; schema: unknown }>;

/** A part of a document: references to shared schemas, and words in the place where readers look for them. */
function documented(part: object, shared: SharedSchemas): object {
  const { about, ...rest } = part as { about?: string; properties?: object };
  const copy = Object.fromEntries(
    Object.entries(rest).map(([key, child]) => {
      if (key === "examples") return [key, child];
      if (key === "properties" && isSchema(part)) return [key, withCommonWords(child, shared)];
      const isName = key === "$ref" && typeof child === "string" && !(child as string).startsWith("#");
      return [key, isName ? refTo(child) : withSharedSchemas(child, shared)];
    }),
  );
  return about === undefined ? copy : { ...copy, description: joined(about, copy.description) };
}

const wordsIn = ({ about }: { about?: unknown }) => (about === undefined ? {} : { about });

const isSchema = (part: object) => "type" in part && part.type === "object";

/** An object's fields; those that nobody describes mean what they mean everywhere. */
function withCommonWords(fields: object, shared: SharedSchemas): object {
  return Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => {
      const own = withSharedSchemas(schema, shared) as { $ref?: string; description?: string };
      const words = fieldWords[name];
      return [name, own.description || own.$ref || words === undefined ? own : { ...own, description: words }];
    }),
  );
}

const joined = (about: string, expected: unknown) => (typeof expected === "string" ? `${about}: ${expected}` : about);

const refTo = (name: string) => `#/components/schemas/${name}`;

type Spec = Route["spec"];

function operationFor(spec: Spec, all: readonly Spec[], errors: ErrorContract): object {
  const examples = examplesIn(spec);
  const pathNames = [...spec.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "");
  const typed: Readonly<Record<string, TSchema>> = spec.params ?? {};
  const schemaOf = (name: string) => typed[name] ?? { type: "string", format: "uuid" };
  return {
    operationId: operationIdOf(spec),
    tags: [spec.path.split("/")[2] ?? "service"],
    summary: spec.summary,
    security: securityOf(spec.guard.scheme),
    parameters: [
      ...pathNames.map((name) => ({
        name,
        in: "path",
        required: true,
        ...describedParameter(name, schemaOf(name)),
        ...examples.ofPath(name),
      })),
      ...Object.entries(spec.query ?? {}).map(([name, schema]) => ({
        name,
        in: "query",
        required: !(OptionalKind in schema),
        ...describedParameter(name, schema),
        ...examples.ofQuery(name),
      })),
    ],
    ...(spec.body && {
      requestBody: {
        // A body whose fields are all optional may be left out.
        required: ((spec.body.required as unknown[] | undefined) ?? []).length > 0,
        content: {
          "application/json": { schema: spec.body, ...examples.ofBody() },
          ...Object.fromEntries(binaryTypesOf(spec).map((type) => [type, { schema: binary }])),
        },
      },
    }),
    responses: responsesOf(spec, all, errors),
  };
}

const binary = { $id: "BinaryForm", type: "string", format: "binary", description: "the same in its binary form" };

const binaryTypesOf = ({ upload }: Spec) => (upload?.mediaTypes ?? []).filter((type) => type !== "application/json");

/** What is said of a parameter stands beside its schema. */
function describedParameter(name: string, given: object): { description?: string; schema: object } {
  const { about = fieldWords[name], description, ...schema } = given as { about?: string; description?: string };
  const words = about === undefined ? description : joined(about, description);
  return { ...(words !== undefined && { description: words }), schema };
}

function responsesOf(spec: Spec, all: readonly Spec[], errors: ErrorContract): Record<string, object> {
  const { reply } = spec;
  const examples = examplesIn(spec);
  const links = linksFrom(spec, all);
  const success = (status: number, description: string) => ({
    description,
    ...("body" in reply && {
      content: { [reply.mediaType ?? "application/json"]: { schema: reply.body, ...examples.ofAnswer(status) } },
    }),
    ...(Object.keys(links).length > 0 && { links }),
  });
  const failures = new Map<number, ErrorCode[]>();
  for (const code of errorsOf(spec, errors)) {
    const { status } = errorCatalogue[code];
    failures.set(status, [...(failures.get(status) ?? []), code]);
  }
  return {
    ...Object.fromEntries(
      [...failures].map(([status, codes]) => [
        status,
        {
          description: codes.map((code) => errorCatalogue[code].message).join("; "),
          content: {
            "application/json": { schema: { $ref: "#/components/schemas/Error" }, ...examples.ofAnswer(status) },
          },
        },
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(spec.otherReplies ?? {}).map(([status, when]) => [status, success(Number(status), when)]),
    ),
    [reply.status]: success(reply.status, "Success"),
  };
}

/** `post_v1_bookings_booking_id_refund`: stable as long as method and path are. */
function operationIdOf({ method, path }: Spec): string {
  return `${method.toLowerCase()}${path.replaceAll(/[^a-zA-Z0-9]+/g, "_")}`.replace(/_$/, "");
}

/** What a client may do with this route's answer: the operations that take an id out of it. */
function linksFrom(spec: Spec, all: readonly Spec[]): Record<string, object> {
  const name = `${spec.method} ${spec.path}`;
  return Object.fromEntries(
    all.flatMap((target) => {
      const taken = Object.entries(target.paramsFrom ?? {}).filter(([, origin]) => origin.route === name);
      if (taken.length === 0) return [];
      const parameters = taken.map(([param, { field }]) => [
        `path.${param}`,
        `$response.body#/${field.replaceAll(".", "/")}`,
      ]);
      const operationId = operationIdOf(target);
      return [[operationId, { operationId, parameters: Object.fromEntries(parameters) }]];
    }),
  );
}

function errorsOf(spec: Spec, errors: ErrorContract): ErrorCode[] {
  const codes = new Set<ErrorCode>([...(spec.errors ?? []), ...(spec.guard.refuses ?? [])]);
  if (spec.guard.scheme !== "none") codes.add("unauthorized");
  if (spec.path.includes("{")) codes.add("not_found");
  if (spec.query || spec.body || spec.params) codes.add(errors.invalidRequest);
  if (spec.body) codes.add("payload_too_large").add("unsupported_media_type");
  codes.add("internal_error").add("unavailable");
  return [...codes];
}
