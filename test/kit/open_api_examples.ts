/**
 * Sends the examples of an OpenAPI document as a client would that has nothing but the document:
 * ids come out of the answers of the operations that link to the example's own. What no operation
 * gives out stands as `{{name}}` in an example and is put in by whoever calls this.
 */
import assert from "node:assert/strict";
import { Ajv2020 } from "ajv/dist/2020.js";
import { isDateTime } from "#contracts/one_of.ts";
import { isUuid } from "#contracts/secrets.ts";
import type { ApiHarness } from "./api_harness.ts";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Examples = Record<string, { value: Json }>;

interface Media {
  schema: object;
  examples?: Examples;
}
interface Reply {
  content?: Record<string, Media>;
  links?: Record<string, { operationId: string; parameters: Record<string, string> }>;
}
export interface Operation {
  method: string;
  path: string;
  operationId: string;
  summary: string;
  security: Record<string, unknown>[];
  parameters: { name: string; in: "path" | "query"; examples?: Examples }[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, Reply>;
}
export interface OpenApiDocument {
  paths: Record<string, Record<string, Omit<Operation, "method" | "path">>>;
  components?: { schemas: Record<string, object> };
}

export function operationsOf(document: OpenApiDocument): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  );
}

/** The schema of an operation's body, with those that it refers to by name put in their places. */
export function bodySchemaOf({ components }: OpenApiDocument, { requestBody }: Operation): unknown {
  const inPlace = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(inPlace);
    const { $ref, ...own } = value as { $ref?: string };
    const named = $ref === undefined ? {} : components?.schemas[$ref.slice("#/components/schemas/".length)];
    return Object.fromEntries(Object.entries({ ...named, ...own }).map(([key, child]) => [key, inPlace(child)]));
  };
  return inPlace(requestBody?.content["application/json"]?.schema);
}

/** The names of an operation's examples, in the order in which they stand. */
export function exampleNamesOf(operation: Operation): string[] {
  const places = [
    ...mediaOf(operation.requestBody),
    ...operation.parameters,
    ...Object.values(operation.responses).flatMap(mediaOf),
  ];
  return [...new Set(places.flatMap((place) => Object.keys(place.examples ?? {})))];
}

const mediaOf = (holder: { content?: Record<string, Media> } | undefined) => Object.values(holder?.content ?? {});

/** What the document lacks that a reader needs, one line each. */
export function gapsIn(document: OpenApiDocument): string[] {
  return operationsOf(document).flatMap((operation) => {
    const { method, path, responses, summary } = operation;
    const success = Object.keys(responses).filter((status) => status.startsWith("2"));
    const gap = (what: string) => `${method} ${path}: ${what}`;
    return [
      ...(summary ? [] : [gap("no summary")]),
      ...(success.length > 0 ? [] : [gap("no success answer")]),
      ...success.filter((status) => status !== "204" && mediaOf(responses[status]).length === 0).map(gap),
      ...(Object.keys(responses).some((status) => status >= "400") ? [] : [gap("no error answers")]),
      ...(method === "GET" || method === "DELETE" || operation.requestBody || path.includes("{")
        ? []
        : [gap("no body")]),
      ...(exampleNamesOf(operation).length > 0 ? [] : [gap("no example")]),
    ];
  });
}

/** Whom examples are sent as. */
export interface Sender {
  send(request: { method: string; path: string; body: Json | undefined; isPublic: boolean }): Promise<Response>;
  /** What stands for `{{name}}`. */
  standIn(name: string): Promise<string>;
}

/** Sends examples as the holder of `token`; each of `standIns` makes what stands for its name. */
export function senderOf(api: ApiHarness, token: string, standIns: Record<string, () => Promise<string>>): Sender {
  return {
    standIn: async (name) => {
      const make = standIns[name];
      assert.ok(make, `nobody knows what stands for {{${name}}}`);
      return make();
    },
    send: ({ method, path, body, isPublic }) =>
      api.app.fetch(
        new Request(`http://api.test${path}`, {
          method,
          headers: { "content-type": "application/json", ...(!isPublic && { authorization: `Bearer ${token}` }) },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        }),
      ),
  };
}

export interface Sent {
  status: number;
  expectedStatus: number;
  /** What the document shows as the answer. */
  shownAnswer: Json | undefined;
  mediaType: string;
  body: Json | undefined;
}

/** Sends one example, and before it whatever makes the ids in its path. */
export async function sendExample(
  document: OpenApiDocument,
  operation: Operation,
  name: string | undefined,
  sender: Sender,
): Promise<Sent> {
  /** Answers of operations that came first, by their ids. */
  const made = new Map<string, Json | undefined>();
  const valueFor = async (parameter: Operation["parameters"][number]): Promise<string | undefined> => {
    const shown = parameter.examples?.[name ?? ""]?.value;
    const origin = originOf(document, operation, parameter.name);
    if (parameter.in === "query" || !origin) return shown === undefined ? undefined : filled(String(shown), sender);
    if (!made.has(origin.operation.operationId)) {
      const [first] = exampleNamesOf(origin.operation);
      const before = await sendExample(document, origin.operation, first, sender);
      if (before.status !== before.expectedStatus) {
        throw new Error(
          `${origin.operation.method} ${origin.operation.path}, which comes first, answered ${shownIn(before)}`,
        );
      }
      made.set(origin.operation.operationId, before.body);
    }
    return String(atPointer(made.get(origin.operation.operationId), origin.pointer));
  };
  let path = operation.path;
  const query = new URLSearchParams();
  for (const parameter of operation.parameters) {
    const value = await valueFor(parameter);
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(value ?? ""));
    else if (value !== undefined) query.set(parameter.name, value);
  }
  const body = mediaOf(operation.requestBody)[0]?.examples?.[name ?? ""]?.value;
  const response = await sender.send({
    method: operation.method,
    path: query.size > 0 ? `${path}?${query}` : path,
    body: body === undefined ? undefined : JSON.parse(await filled(JSON.stringify(body), sender)),
    isPublic: operation.security.length === 0,
  });
  const text = await response.text();
  const mediaType = (response.headers.get("content-type") ?? "").split(";", 1)[0] ?? "";
  return {
    status: response.status,
    ...expectedOf(operation, name ?? ""),
    mediaType,
    // Downloads are JSON, under a type that browsers save.
    body: text === "" ? undefined : /json$|octet-stream$/.test(mediaType) ? JSON.parse(text) : text,
  };
}

export const shownIn = ({ status, body }: Sent) => `${status} ${JSON.stringify(body)?.slice(0, 400)}`;

/** The status whose answer shows the example, with that answer; else the success that the route usually has. */
function expectedOf({ responses }: Operation, name: string): Pick<Sent, "expectedStatus" | "shownAnswer"> {
  for (const [status, reply] of Object.entries(responses)) {
    const shown = mediaOf(reply).find((media) => media.examples?.[name]);
    if (shown) return { expectedStatus: Number(status), shownAnswer: shown.examples?.[name]?.value };
  }
  // A replay (200) comes only after its original (201).
  const success = Object.keys(responses).filter((status) => status.startsWith("2"));
  return { expectedStatus: Number(success.sort().at(-1)), shownAnswer: undefined };
}

/** The operation whose answer links to `target` with its path parameter `name`, and where in the answer that is. */
function originOf(document: OpenApiDocument, target: Operation, name: string) {
  for (const operation of operationsOf(document)) {
    for (const reply of Object.values(operation.responses)) {
      const expression = reply.links?.[target.operationId]?.parameters[`path.${name}`];
      if (expression) return { operation, pointer: expression.replace("$response.body#", "") };
    }
  }
  return undefined;
}

function atPointer(value: Json | undefined, pointer: string): Json | undefined {
  let at: unknown = value;
  for (const part of pointer.split("/").slice(1)) at = (at as Record<string, unknown> | undefined)?.[part];
  if (at === undefined || at === null) throw new Error(`no ${pointer} in ${JSON.stringify(value)?.slice(0, 200)}`);
  return at as Json;
}

async function filled(text: string, sender: Sender): Promise<string> {
  let result = text;
  for (const [place, name] of text.matchAll(/\{\{(\w+)\}\}/g)) {
    result = result.replace(place, await sender.standIn(name ?? ""));
  }
  return result;
}

/** Problems of answers by the schemas of the document, in which a field that no schema names is one as well. */
export function answerChecker(document: OpenApiDocument) {
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { uuid: isUuid, "date-time": isDateTime } });
  ajv.addSchema(closed(structuredClone(document)) as object, "document");
  return (
    { path, method, responses }: Operation,
    { status, body, mediaType }: Pick<Sent, "status" | "body" | "mediaType">,
  ) => {
    const reply = responses[status];
    if (!reply) return [`status ${status} is not documented`];
    const media = Object.keys(reply.content ?? {});
    if (media.length === 0) return body === undefined ? [] : ["a body that is not documented"];
    if (!media.includes(mediaType)) return [`media type ${mediaType} is not documented`];
    const pointer = ["paths", path, method.toLowerCase(), "responses", String(status), "content", mediaType, "schema"];
    const escaped = pointer.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")));
    const check = ajv.getSchema(`document#/${escaped.join("/")}`);
    if (!check) return [`no schema at ${pointer.join(" ")}`];
    if (check(body)) return [];
    return (check.errors ?? [])
      .slice(0, 5)
      .map((error) => `${error.instancePath || "/"} ${error.message} ${JSON.stringify(error.params)}`);
  };
}

/** Every object of the document's schemas without the fields that it does not name. */
function closed(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(closed);
  const copy = Object.fromEntries(
    Object.entries(value).map(([key, child]) => [key, key === "examples" || key === "allOf" ? child : closed(child)]),
  );
  const isOpen =
    copy.type === "object" && typeof copy.properties === "object" && copy.additionalProperties === undefined;
  return isOpen ? { ...copy, additionalProperties: false } : copy;
}
