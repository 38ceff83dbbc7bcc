/**
 * The api as one function from Request to Response, on web standards alone: Node, Deno and tests
 * call the same. Everything it needs comes in through `AppDeps`.
 */
import type { Bus } from "#bus/bus.ts";
import type { Logger } from "#http/logger.ts";
import { type OpenApiInfo, openApiFor } from "#http/open_api.ts";
import { platformErrorResponse } from "#http/platform_face.ts";
import { createRequestMetrics } from "#http/request_metrics.ts";
import type { Route } from "#http/route.ts";
import { createService, type Fetch } from "#http/service.ts";
import { accessKeyRoutes } from "#identity/access_keys.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { internalGuard, openAuthentication } from "#identity/authentication.ts";
import { organizationRoutes } from "#identity/organizations.ts";
import { projectRoutes } from "#identity/projects.ts";
import { signInLinkRoutes } from "#identity/sign_in_links.ts";
import { callReservationRoutes } from "#platform/call_reservations.ts";
import { callRoutes } from "#platform/calls.ts";
import { internalCallRoutes } from "#platform/internal_calls.ts";
import { voiceAgentRoutes } from "#platform/voice_agents.ts";
import { type Sql, unavailableStore } from "#store/sql.ts";
import { healthRoutes } from "./health.ts";

export interface AppDeps {
  sql: Sql;
  bus: Bus;
  logger: Logger;
  config: {
    /** Where callers reach us; addresses in replies are made from it. */
    publicUrl: string;
    /** What the gateway shows at `/internal`. */
    internalSecret: string;
  };
  now(): Date;
}

export interface App {
  fetch: Fetch;
  /** Stops listening to the bus; `sql` and `bus` stay with whoever opened them. */
  close(): Promise<void>;
}

const openApiInfo: OpenApiInfo = {
  title: "Frontdesk application platform",
  version: "1",
  description: "Management API. Success bodies are {data}; errors are {error: {code, message, details?}}.",
};

export async function createApp(deps: AppDeps): Promise<App> {
  const { sql, bus, logger, now, config } = deps;
  const authentication = await openAuthentication({ sql, bus, now });
  const apiDeps: ApiDeps = { sql, bus, now, personalAccessToken: authentication.personalAccessToken };
  const routes: Route[] = [
    ...organizationRoutes(apiDeps),
    ...projectRoutes(apiDeps),
    ...accessKeyRoutes(apiDeps),
    ...signInLinkRoutes(apiDeps),
    ...voiceAgentRoutes(apiDeps),
    ...callReservationRoutes({ ...apiDeps, logger, publicUrl: config.publicUrl }),
    ...callRoutes(apiDeps),
    ...internalCallRoutes({ sql, now, logger, internal: internalGuard(config.internalSecret) }),
  ];
  const openApi = openApiFor(openApiInfo, routes);
  const metrics = createRequestMetrics();
  const fetch = createService({
    routes: [...routes, ...healthRoutes({ sql, bus })],
    documents: {
      "/openapi.json": async () => Response.json(openApi),
      "/metrics": async () =>
        new Response(await metrics.registry.metrics(), { headers: { "content-type": metrics.registry.contentType } }),
    },
    face: platformErrorResponse,
    translateError: unavailableStore,
    logger,
    metrics,
    newRequestId: () => crypto.randomUUID(),
  });
  return { fetch, close: authentication.close };
}
