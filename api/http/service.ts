/**
 * Serves routes: (Request) => Response on web standards. The life of a request: an id, the route
 * by method and path (unknown: 404, with other methods: 405), its checks and handler, the error's face, log and metrics.
 */
import { Hono } from "hono";
import { ApiError } from "#contracts/errors.ts";
import type { Logger } from "./logger.ts";
import type { RequestMetrics } from "./request_metrics.ts";
import type { Route } from "./route.ts";

export interface ServiceOptions {
  routes: readonly Route[];
  /** What is served as it is, by path: the OpenAPI document, metrics. */
  documents?: Readonly<Record<string, () => Promise<Response>>>;
  /** What another service answers, by path pattern (Hono's), whatever the method. */
  forwards?: Readonly<Record<string, (request: Request) => Promise<Response>>>;
  /** Renders an error in the service's contract. */
  face(error: ApiError): Response;
  /** Renders the 404 of a path that nobody has, where that is not `face`. */
  faceOfUnknown?(error: ApiError): Response;
  /** The answer that an exception from a library stands for, for example a store that is away. */
  translateError?(error: unknown): ApiError | undefined;
  logger: Logger;
  metrics: RequestMetrics;
  newRequestId(): string;
}

export type Fetch = (request: Request) => Promise<Response>;

/** A service that never throws: whatever goes wrong becomes a response. */
export function createService(options: ServiceOptions): Fetch {
  const app = new Hono();
  for (const route of options.routes) {
    const { method, path } = route.spec;
    app.on(method, path.replaceAll(/\{(\w+)\}/g, ":$1"), (context) =>
      answer(options, `${method} ${path}`, context.req.raw, () => route.run(context.req.raw, context.req.param())),
    );
  }
  for (const [path, document] of Object.entries(options.documents ?? {})) {
    app.get(path, (context) => answer(options, `GET ${path}`, context.req.raw, document));
  }
  for (const [path, forward] of Object.entries(options.forwards ?? {})) {
    app.all(path, (context) => answer(options, path, context.req.raw, () => forward(context.req.raw)));
  }
  const methodsOf = methodTable(options);
  app.notFound((context) => {
    const allow = methodsOf(context.req.path);
    const faced = allow.length > 0 ? options : { ...options, face: options.faceOfUnknown ?? options.face };
    return answer(faced, "unknown", context.req.raw, async () => {
      throw allow.length > 0 ? new ApiError("method_not_allowed", { allow }) : new ApiError("not_found");
    });
  });
  return async (request) => app.fetch(request);
}

/** Which methods a path has, in alphabetical order; none for a path that nobody has. */
function methodTable({ routes, documents = {} }: ServiceOptions): (path: string) => string[] {
  const served = [
    ...routes.map(({ spec }) => ({ path: spec.path, method: spec.method as string })),
    ...Object.keys(documents).map((path) => ({ path, method: "GET" })),
  ].map(({ path, method }) => ({
    pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    methods: method === "GET" ? ["GET", "HEAD"] : [method],
  }));
  return (path) => {
    const methods = served.filter(({ pattern }) => pattern.test(path)).flatMap((one) => one.methods);
    return [...new Set(methods)].sort();
  };
}

async function answer(options: ServiceOptions, name: string, request: Request, run: () => Promise<Response>) {
  const startedAtMs = performance.now();
  const requestId = options.newRequestId();
  const response = await run().catch((error: unknown) => {
    const known = error instanceof ApiError ? error : options.translateError?.(error);
    const shown = known ?? new ApiError("internal_error", { cause: error });
    logFailure(options.logger, shown, { request_id: requestId, route: name });
    return options.face(shown);
  });
  response.headers.set("x-request-id", requestId);
  options.metrics.observe(name, request.method, response.status, (performance.now() - startedAtMs) / 1000);
  return response;
}

/** Ours are errors, the caller's are worth a debug line; a public answer's true reason is its cause. */
function logFailure(logger: Logger, error: ApiError, fields: { request_id: string; route: string }): void {
  const level = error.status >= 500 ? "error" : "debug";
  logger[level]({ ...fields, code: error.code, err: error.cause }, "request failed");
}
