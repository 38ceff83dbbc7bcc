/**
 * One endpoint as data: who may call it, what it takes, what it answers, and the handler. The
 * service in `service.ts` serves routes and describes them in OpenAPI from the same declaration.
 * Every path parameter is an id of ours, hence a UUID: anything else cannot exist and is a 404.
 */
import { type Static, type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { ApiError, type ErrorCode } from "#contracts/errors.ts";
import { isUuid } from "#contracts/secrets.ts";
import { type JsonBodyOptions, readJsonBody } from "./json_body.ts";
import { queryReaderFor } from "./query.ts";
import { validatorFor } from "./validation.ts";

export type CredentialScheme = "none" | "personal_access_token" | "access_key" | "internal_secret";

/** Decides who calls. `check` throws `ApiError` unauthorized when nobody does. */
export interface Guard<Principal> {
  scheme: CredentialScheme;
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
  request: Request;
}

export interface RouteSpec<
  Principal,
  Path extends string,
  Query extends TProperties,
  Body extends TSchema,
  Reply extends TSchema,
> {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With parameters as `{agent_id}`. */
  path: Path;
  summary: string;
  guard: Guard<Principal>;
  query?: Query;
  body?: Body;
  bodyOptions?: JsonBodyOptions;
  /** What is usually answered. A handler that has another success answer returns a `Response` of its own. */
  reply: { status: 200 | 201 | 202; body: Reply } | { status: 204 };
  /** Errors beyond the ones that follow from the rest of the declaration. */
  errors?: readonly ErrorCode[];
  handle(
    exchange: Exchange<Principal, ParamsOf<Path>, Static<TObject<Query>>, Static<Body>>,
  ): Promise<Static<Reply> | Response>;
}

export interface Route {
  spec: RouteSpec<unknown, string, TProperties, TSchema, TSchema>;
  /** @throws ApiError */
  run(request: Request, params: Record<string, string>): Promise<Response>;
}

/** Checks, in this order: credential (401), ids in the path (404), query and body (400, 413). */
export function route<
  Principal,
  const Path extends string,
  Query extends TProperties = Record<never, never>,
  Body extends TSchema = TObject<Record<never, never>>,
  Reply extends TSchema = TSchema,
>(spec: RouteSpec<Principal, Path, Query, Body, Reply>): Route {
  const readQuery = queryReaderFor(Type.Object<TProperties>(spec.query ?? {}, { additionalProperties: false }));
  const bodyValidator = spec.body && validatorFor(spec.body);
  const run = async (request: Request, params: Record<string, string>): Promise<Response> => {
    const principal = await spec.guard.check(request);
    if (!Object.values(params).every(isUuid)) throw new ApiError("not_found");
    const query = readQuery(request) as Static<TObject<Query>>;
    const json = bodyValidator && (await readJsonBody(request, spec.bodyOptions));
    const body = (bodyValidator ? bodyValidator.parse(json) : {}) as Static<Body>;
    const reply = await spec.handle({ principal, params: params as ParamsOf<Path>, query, body, request });
    if (reply instanceof Response) return reply;
    if (spec.reply.status === 204) return new Response(null, { status: 204 });
    return Response.json(reply, { status: spec.reply.status });
  };
  return { spec: spec as unknown as Route["spec"], run };
}
