/**
 * One endpoint as data: who may call it, what it takes, what it answers, and the handler. The
 * service in `service.ts` serves routes and describes them in OpenAPI from the same declaration.
 * A path parameter without a schema is an id of ours, hence a UUID: anything else cannot exist and is a 404.
 */
import { type Static, type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { ApiError, type ErrorCode } from "#contracts/errors.ts";
import type { Named } from "#contracts/named_schema.ts";
import { isUuid } from "#contracts/secrets.ts";
import { closed } from "./closed_schema.ts";
import { Deadline } from "./deadline.ts";
import { isJsonType, type JsonBodyOptions, parseJsonBody, readBodyBytes, withoutAbsent } from "./json_body.ts";
import { pathReaderFor, queryReaderFor } from "./query.ts";
import { validatorFor } from "./validation.ts";

export type CredentialScheme =
  | "none"
  | "personal_access_token"
  | "access_key"
  /** A key, or no credential where the app is public. */
  | "access_key_or_nothing"
  /** A key, or the token of the run that the path names. */
  | "access_key_or_run_token"
  | "internal_secret"
  | "access_token"
  | "api_key_or_access_token";

/** Decides who calls. `check` throws `ApiError` unauthorized when nobody does. */
export interface Guard<Principal> {
  scheme: CredentialScheme;
  /** With what else `check` may refuse: the documents of every route behind it say so. */
  refuses?: readonly ErrorCode[];
  check(request: Request): Promise<Principal>;
}

/** Anyone. */
export const publicAccess: Guard<undefined> = { scheme: "none", check: async () => undefined };

/** `{agent_id: string}` of `/v1/agents/{agent_id}`. */
type ParamsOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? { [K in Name]: string } & ParamsOf<Rest>
  : unknown;

export interface Exchange<Principal, Params, Query, Body> {
  principal: Principal;
  params: Params;
  query: Query;
  body: Body;
  /** What was sent, where the route takes an upload. */
  bytes: Uint8Array;
  request: Request;
}

export type SuccessStatus = 200 | 201 | 202;

/**
 * A request as somebody would send it. `api/http/README.md` says how the test that sends it comes by
 * ids and tokens.
 */
export type RouteExample = {
  /** Path parameters that no other route gives out. */
  params?: Readonly<Record<string, string | number>>;
  query?: Readonly<Record<string, string | number | boolean>>;
  body?: unknown;
} & (
  | {
      status?: undefined;
      /** What it is answered with, for the reader. */
      answer?: unknown;
    }
  /** One that is not answered with the reply's status. */
  | { status: number; answer: unknown }
);

/** The route whose answer has a path parameter's value, and in which field (`a.0.b`). */
export interface ParamOrigin {
  /** `POST /v1/bookings` */
  route: string;
  field: string;
}

export interface RouteSpec<
  Principal,
  Path extends string,
  Query extends TProperties,
  Body extends TSchema,
  Reply extends TSchema,
  Params extends TProperties = Record<never, never>,
> {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With parameters as `{agent_id}`. */
  path: Path;
  summary: string;
  guard: Guard<Principal>;
  /** Schemas of the path's parameters that are not ids. */
  params?: Params;
  query?: Query;
  body?: Named<Body>;
  bodyOptions?: JsonBodyOptions;
  /** Takes the body as bytes, in any of these forms: `body` then documents its JSON, and checks nothing. */
  upload?: { bytesMax: number; mediaTypes: readonly string[] };
  /** What it may take by design, in ms: on top of the 10 s that any request may take us. */
  waitsMs?: number;
  /** Refuses fields of the body that its schema does not name, at every depth. Wherever money moves. */
  strictBody?: boolean;
  /**
   * What is usually answered; `mediaType` where that is no JSON. A handler that has another success
   * answer returns a `Response` of its own.
   */
  reply: { status: SuccessStatus; body: Named<Reply>; mediaType?: string } | { status: 204 };
  /** Other success statuses with the same body, and when they are answered. */
  otherReplies?: Readonly<Partial<Record<SuccessStatus, string>>>;
  /** Errors beyond the ones that follow from the rest of the declaration. */
  errors?: readonly ErrorCode[];
  /** Requests to learn from, by what they show in snake_case. A test sends each of them. */
  examples?: Readonly<Record<string, RouteExample>>;
  /** Ids in the path that another route gives out: `{ booking_id: { route: "POST /v1/bookings", field: "id" } }`. */
  paramsFrom?: Readonly<Record<string, ParamOrigin>>;
  handle(
    exchange: Exchange<
      Principal,
      Omit<ParamsOf<Path>, keyof Params> & Static<TObject<Params>>,
      Static<TObject<Query>>,
      Static<Body>
    >,
  ): Promise<Static<Reply> | Response>;
  /** Keeps a record of each request by somebody we know, refused ones included. The answer waits for it. */
  record?(record: RequestRecord<Principal>): Promise<void>;
}

export interface RequestRecord<Principal> {
  principal: Principal;
  /** The route's path, with parameters as `{agent_id}`. */
  endpoint: string;
  request: Request;
  /** The body as it was sent; undefined where it was not read. */
  body: Uint8Array | undefined;
  /** The answer, or what was thrown in its place. */
  outcome: { response: Response } | { error: unknown };
  durationMs: number;
}

export interface Route {
  spec: RouteSpec<unknown, string, TProperties, TSchema, TSchema>;
  /** @throws ApiError */
  run(request: Request, params: Record<string, string>): Promise<Response>;
}

/** All of a request but the reading of its body. */
const workMsMax = 10_000;

/** @throws ApiError unsupported_media_type */
function requireMediaType(request: Request, mediaTypes: readonly string[]): void {
  if (mediaTypes.includes(mediaTypeOf(request) ?? "")) return;
  const expected = `Expected ${mediaTypes.join(" or ")}`;
  throw new ApiError("unsupported_media_type", { detail: expected, details: { "Content-Type": expected } });
}

/** `application/json` of `application/json; charset=utf-8`. */
export function mediaTypeOf(request: Request): string | undefined {
  return request.headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
}

/** Checks, in this order: credential (401), ids in the path (404), query and body (400, 413, 415). */
export function route<
  Principal,
  const Path extends string,
  Query extends TProperties = Record<never, never>,
  Body extends TSchema = TObject<Record<never, never>>,
  Reply extends TSchema = TSchema,
  Params extends TProperties = Record<never, never>,
>(given: RouteSpec<Principal, Path, Query, Body, Reply, Params>): Route {
  const spec = given.strictBody && given.body ? { ...given, body: closed(given.body) } : given;
  type Handled = Parameters<typeof spec.handle>[0];
  const readQuery = queryReaderFor(Type.Object<TProperties>(spec.query ?? {}, { additionalProperties: false }));
  const bodyValidator = spec.upload ? undefined : spec.body && validatorFor(spec.body);
  const readParams = spec.params && pathReaderFor(Type.Object<TProperties>(spec.params));
  const typedParams = new Set(Object.keys(spec.params ?? {}));

  const answer = async (
    principal: Principal,
    { request, params, deadline }: { request: Request; params: Readonly<Record<string, string>>; deadline: Deadline },
    onBody: (bytes: Uint8Array) => void,
  ): Promise<Response> => {
    for (const [name, text] of Object.entries(params)) {
      if (!typedParams.has(name) && !isUuid(text)) throw new ApiError("not_found");
    }
    const typed = readParams ? readParams(params) : {};
    const query = readQuery(request);
    let body: unknown = {};
    let sent: Uint8Array = new Uint8Array();
    if (spec.upload) {
      requireMediaType(request, spec.upload.mediaTypes);
      sent = await readBodyBytes(request, spec.upload.bytesMax);
      onBody(sent);
    }
    if (bodyValidator) {
      const bytes = await readBodyBytes(request, spec.bodyOptions?.bytesMax);
      onBody(bytes);
      if (bytes.length > 0 && !isJsonType(request.headers.get("content-type"))) {
        const detail = "Expected a body with Content-Type: application/json";
        throw new ApiError("unsupported_media_type", {
          detail,
          details: { "Content-Type": "Expected application/json" },
        });
      }
      body = bodyValidator.parse(parseJsonBody(bytes, spec.bodyOptions));
      if (spec.bodyOptions?.parse) body = withoutAbsent(body);
    }
    const exchange = { principal, params: { ...params, ...typed }, query, body, bytes: sent, request };
    const reply = await deadline.within(spec.handle(exchange as unknown as Handled));
    if (reply instanceof Response) return reply;
    if (spec.reply.status === 204) return new Response(null, { status: 204 });
    return Response.json(reply, { status: spec.reply.status });
  };

  const run = async (request: Request, params: Record<string, string>): Promise<Response> => {
    const deadline = new Deadline(workMsMax + (spec.waitsMs ?? 0));
    const principal = await deadline.within(spec.guard.check(request));
    const startedAtMs = performance.now();
    let body: Uint8Array | undefined;
    const outcome = await answer(principal, { request, params, deadline }, (bytes) => {
      body = bytes;
    }).then(
      (response) => ({ response }),
      (error: unknown) => ({ error }),
    );
    const durationMs = performance.now() - startedAtMs;
    const recorded = spec.record?.({ principal, endpoint: spec.path, request, body, outcome, durationMs });
    if (recorded) await deadline.within(recorded);
    if ("error" in outcome) throw outcome.error;
    return outcome.response;
  };
  return { spec: spec as unknown as Route["spec"], run };
}
