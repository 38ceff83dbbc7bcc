/**
 * The api as one function from Request to Response, on web standards alone: Node, Deno and tests
 * call the same. Everything it needs comes in through `AppDeps`.
 */

import { organizationSettingsRoutes } from "#accounts/organization_settings.ts";
import { appRoutes } from "#apps/apps.ts";
import { openToAllOrigins } from "#apps/cross_origin.ts";
import { hostedAppGuards } from "#apps/hosted_app.ts";
import { createRunTokens } from "#apps/run_tokens.ts";
import type { Bus } from "#bus/bus.ts";
import { connectTokenRoutes } from "#connections/connect_tokens.ts";
import { connectionProbeRoutes } from "#connections/connection_probe.ts";
import { connectionRoutes } from "#connections/connections.ts";
import { mcpProbeRoutes } from "#connections/mcp_probe.ts";
import { noProxies, type TrustedProxies } from "#contracts/client_address.ts";
import { ApiError } from "#contracts/errors.ts";
import { destinationOf, type Service } from "#contracts/hosts.ts";
import { roomLimits } from "#contracts/room_call.ts";
import { runLimits } from "#contracts/run_event.ts";
import type { PriceTable } from "#contracts/usage.ts";
import { subjectRequestRoutes } from "#data_subjects/subject_requests.ts";
import type { Logger } from "#http/logger.ts";
import { type OpenApiInfo, openApiFor } from "#http/open_api/open_api.ts";
import { platformErrorContract, platformErrorResponse } from "#http/platform_face.ts";
import { atDestination, hostOf } from "#http/request_host.ts";
import { createRequestMetrics, type RequestMetrics } from "#http/request_metrics.ts";
import type { Route } from "#http/route.ts";
import { createService, type Fetch } from "#http/service.ts";
import { unknownPathResponse } from "#http/tax_face.ts";
import { accessKeyRoutes } from "#identity/access_keys.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { believedAddress } from "#identity/attempt_limits.ts";
import { internalGuard, openAuthentication } from "#identity/authentication.ts";
import { projectRoutes } from "#identity/projects.ts";
import { signInLinkRoutes } from "#identity/sign_in_links.ts";
import { type LiveKitSettings, openLiveKit } from "#outbound/livekit.ts";
import { openPriceTable } from "#providers/price_table.ts";
import { inputRequestRoutes } from "#runs/input_requests.ts";
import { internalRunRoutes } from "#runs/internal_runs.ts";
import { invocationRoutes } from "#runs/invocation.ts";
import { forwardInvocation } from "#runs/invocation_proxy.ts";
import { runRoutes } from "#runs/runs.ts";
import { sessionRoutes } from "#runs/sessions.ts";
import { readTracedRuns } from "#runs/traced_runs.ts";
import { createEncryption } from "#store/encryption.ts";
import { type Sql, unavailableStore } from "#store/sql.ts";
import { openTaxService } from "#tax/tax_service.ts";
import { openSpanStore } from "#traces/open_span_store.ts";
import { openCollector } from "#traces/otlp/collector_service.ts";
import { traceDownloadRoutes } from "#traces/trace_download.ts";
import { traceSessionRoutes } from "#traces/trace_sessions.ts";
import { traceRoutes } from "#traces/traces.ts";
import { usageRoutes } from "#usage/usage.ts";
import { callReservationRoutes } from "#voice/call_reservations.ts";
import { callRoutes } from "#voice/calls.ts";
import { httpToolProbeRoutes } from "#voice/http_tool_probe.ts";
import { internalCallRoutes } from "#voice/internal_calls.ts";
import { roomSessionRoutes } from "#voice/room_sessions.ts";
import { roomWebhookRoutes } from "#voice/room_webhooks.ts";
import { createSeatRequests } from "#voice/seat_requests.ts";
import { voiceAgentRoutes } from "#voice/voice_agents.ts";
import { nodeKindRoutes } from "#workflows/node_kinds.ts";
import { workflowRoutes } from "#workflows/workflows.ts";
import { appToolRoutes, openAppInputs } from "./app_tools.ts";
import { houseToolRoutes } from "./house_tools.ts";
import { healthRoutes } from "./process/health.ts";

export interface AppDeps {
  sql: Sql;
  bus: Bus;
  logger: Logger;
  config: {
    /** Where callers reach us; addresses in replies are made from it. */
    publicUrl: string;
    /** What the gateway shows at `/internal`. */
    internalSecret: string;
    /** Whose word on a caller's address is believed, for requests that come past the gateway; nobody's by default. */
    trustedProxies?: TrustedProxies;
    /** What stored credentials are encrypted with. */
    encryptionKey: string;
    /** What sessions are signed with. */
    jwtSecret: string;
    /** Whether people must prove their e-mail address before they sign in. */
    requireEmailVerification: boolean;
    /** Apps answer below this domain, each at a host of its own. */
    appDomain: string;
    /** Development only: addresses that users give may be private. */
    allowPrivateAddresses: boolean;
    /** The LiveKit server; without it there are no rooms. */
    liveKit?: LiveKitSettings | undefined;
    /** What vendors charge; their list prices unless given. */
    prices?: PriceTable;
    /** How long a gateway may take to answer for a seat in a room. */
    seatAnswerMs?: number;
    /** How long a request without flags waits for its run. */
    syncWaitMs?: number;
  };
  now(): Date;
  /** Made here when absent. */
  metrics?: RequestMetrics;
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

const hostOpenApiInfo: OpenApiInfo = {
  title: "Frontdesk app",
  version: "1",
  description:
    "The Runs API of one app, on the app's own host, with access keys. A public app lets anybody start a run; the answer has a token that follows that run.",
};

export async function createApp(deps: AppDeps): Promise<App> {
  const { sql, bus, logger, now, config } = deps;
  const authentication = await openAuthentication({ sql, bus, now });
  const apiDeps: ApiDeps = { sql, bus, now, personalAccessToken: authentication.personalAccessToken };
  const encryption = createEncryption(config.encryptionKey);
  const { appDomain, allowPrivateAddresses } = config;
  const liveKit = config.liveKit && (await openLiveKit(config.liveKit));
  const seats = createSeatRequests({ bus, answerMs: config.seatAnswerMs ?? roomLimits.seatAnswerMs });
  const appInputs = openAppInputs(sql);
  const internal = internalGuard(config.internalSecret);
  const prices = config.prices ?? openPriceTable();
  const traces = openSpanStore({ sql, now });
  const traceDeps = { ...apiDeps, appDomain, traces };
  const routes: Route[] = [
    ...organizationSettingsRoutes(apiDeps),
    ...projectRoutes(apiDeps),
    ...accessKeyRoutes(apiDeps),
    ...signInLinkRoutes(apiDeps),
    ...usageRoutes({ ...apiDeps, currency: prices.currency }),
    ...voiceAgentRoutes({ ...apiDeps, encryption, allowPrivateAddresses, appInputs }),
    ...callReservationRoutes({ ...apiDeps, logger, publicUrl: config.publicUrl }),
    ...callRoutes(apiDeps),
    ...roomSessionRoutes({ ...apiDeps, liveKit, seats, encryption, allowPrivateAddresses, appInputs }),
    ...roomWebhookRoutes({ sql, bus, now, liveKit, logger }),
    ...httpToolProbeRoutes({ ...apiDeps, encryption, allowPrivateAddresses, appInputs }),
    ...mcpProbeRoutes({ ...apiDeps, encryption, allowPrivateAddresses }),
    ...workflowRoutes(apiDeps),
    ...nodeKindRoutes(apiDeps),
    ...connectionRoutes({ ...apiDeps, encryption, allowPrivateAddresses }),
    ...connectionProbeRoutes({ ...apiDeps, encryption, allowPrivateAddresses }),
    ...appRoutes({ ...apiDeps, appDomain }),
    ...sessionRoutes({ ...apiDeps, appDomain }),
    ...subjectRequestRoutes({ ...apiDeps, encryption }),
    ...traceDownloadRoutes({ ...traceDeps, readRuns: (ids) => readTracedRuns(sql, ids) }),
    ...traceRoutes(traceDeps),
    ...traceSessionRoutes(traceDeps),
    ...internalCallRoutes({ sql, now, logger, encryption, internal, prices, appInputs }),
    ...appToolRoutes({ sql, bus, now, internal }),
    ...internalRunRoutes({ sql, bus, now, internal }),
  ];
  const addressOf = believedAddress(config.internalSecret, config.trustedProxies ?? noProxies);
  const runTokens = createRunTokens({ jwtSecret: config.jwtSecret, now });
  const hostedApp = hostedAppGuards({ sql, bus, now, appDomain, addressOf, runTokens });
  const runDeps = {
    sql,
    bus,
    now,
    hostedApp,
    internalSecret: config.internalSecret,
    syncWaitMs: config.syncWaitMs ?? runLimits.syncWaitS * 1000,
  };
  const hostRoutes: Route[] = [
    ...runRoutes(runDeps),
    ...inputRequestRoutes(runDeps),
    ...invocationRoutes({ ...runDeps, callbackRules: { encryption, allowPrivateAddresses } }),
    ...connectTokenRoutes(runDeps),
  ];
  const openApi = openApiFor(openApiInfo, platformErrorContract, routes);
  const hostOpenApi = openApiFor(hostOpenApiInfo, platformErrorContract, hostRoutes);
  const metrics = deps.metrics ?? createRequestMetrics();
  const serving = { translateError: unavailableStore, logger, metrics, newRequestId: () => crypto.randomUUID() };
  const shared = { ...serving, face: platformErrorResponse };
  const { jwtSecret, requireEmailVerification } = config;
  const tax = await openTaxService({ sql, bus, now, addressOf, jwtSecret, requireEmailVerification, serving });
  const appService = createService({
    ...shared,
    routes: hostRoutes,
    documents: { "/openapi.json": async () => Response.json(hostOpenApi) },
  });
  const hostService = openToAllOrigins(appService);
  const proxy = (request: Request) => forwardInvocation({ ...apiDeps, appDomain, hostedApp, appService }, request);
  const management = createService({
    ...shared,
    faceOfUnknown: unknownPathResponse,
    routes: [
      ...routes,
      ...houseToolRoutes({ sql, now, internal, stays: tax.stays }),
      ...healthRoutes({ sql, bus, now }),
    ],
    documents: {
      "/openapi.json": async () => Response.json(openApi),
    },
    forwards: { "/v1/apps/:app_id/invoke": proxy, "/v1/apps/:app_id/invoke/*": proxy },
  });
  const collector = openCollector({ sql, now, traces, prices, accessKey: authentication.accessKey }, serving);
  /** A host of the platform's document that this version has no service for. */
  const absent = (name: string): Fetch => {
    const error = new ApiError("not_found", { details: { host: `This version of Frontdesk has no ${name}` } });
    return createService({ ...shared, routes: [], face: () => platformErrorResponse(error) });
  };
  const services: Record<Service, Fetch> = {
    app: hostService,
    knowledge_base: absent("knowledge bases"),
    router: absent("router"),
    collector: collector.fetch,
    accounts: tax.fetch,
    tax: tax.fetch,
    platform: management,
  };
  const fetch: Fetch = (request) => {
    const { pathname } = new URL(request.url);
    const destination = destinationOf(hostOf(request), pathname, appDomain);
    return services[destination.service](atDestination(request, destination, appDomain));
  };
  const close = async () => {
    await collector.close();
    await tax.close();
    await seats.close();
    await authentication.close();
  };
  return { fetch, close };
}
