/** Tries the key of a connection at its vendor. A refusal is an answer like any other. */

import { type Static, Type } from "@sinclair/typebox";
import { type ProviderErrorKind, providerErrorKinds } from "#contracts/codes.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type Route, route } from "#http/route.ts";
import { countCostly } from "#identity/attempt_limits.ts";
import { AddressRefusedError } from "#outbound/address_guard.ts";
import { createGuardedHttp } from "#outbound/guarded_http.ts";
import { catalogue } from "#providers/catalogue.ts";
import { kindOfStatus } from "#providers/provider_error.ts";
import { type ConnectionDeps, findConnection, type OpenedConnection, openConnection } from "./connections.ts";

const probeTimeoutMs = 10_000;
const probesPerMinute = 10;

const ProbeResult = named(
  "ConnectionProbe",
  Type.Object({
    ok: Type.Boolean(),
    latency_ms: Type.Optional(Type.Integer({ description: "until the vendor's answer" })),
    error: Type.Optional(
      named("ProbeError", Type.Object({ kind: oneOf(providerErrorKinds), message: Type.String() }), {
        kind: "what kind of failure, for programs",
        message: "the failure in words",
      }),
    ),
  }),
  {
    ok: "whether the vendor took the key",
    error: "why it did not",
  },
);
type ProbeResult = Static<typeof ProbeResult>;

export function connectionProbeRoutes(deps: ConnectionDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/connections/{connection_id}/test",
      waitsMs: probeTimeoutMs,
      summary: "Ask the vendor whether it takes the key; a refusal is 200 with ok false",
      guard: deps.personalAccessToken,
      reply: { status: 200, body: ProbeResult },
      errors: ["forbidden", "too_many_requests"],
      paramsFrom: { connection_id: { route: "POST /v1/connections", field: "data.id" } },
      examples: { a_connection: {} },
      handle: async ({ principal, params }) => {
        const { project_id } = await findConnection(deps.sql, principal, params.connection_id);
        await countCostly(deps.bus, "connection_test", principal.userId, probesPerMinute);
        const connection = await openConnection(deps, project_id, params.connection_id);
        if (!connection) throw new ApiError("not_found");
        return probe(connection, deps);
      },
    }),
  ];
}

async function probe(connection: OpenedConnection, { allowPrivateAddresses }: ConnectionDeps): Promise<ProbeResult> {
  const vendor = catalogue.find(({ secrets }) => secrets?.connection === connection.provider)?.secrets;
  if (!vendor) return failed("failed", `A ${connection.provider} connection has no vendor that could be asked`);
  const http = createGuardedHttp({ allowPrivateAddresses });
  const startedMs = performance.now();
  try {
    const { status } = await http.send(`${connection.baseUrl ?? vendor.baseUrl}${vendor.probe.path}`, {
      method: "GET",
      headers: vendor.probe.headers(connection.secret),
      signal: AbortSignal.timeout(probeTimeoutMs),
      responseBytesMax: 64 * 1024,
    });
    if (status >= 200 && status < 300) return { ok: true, latency_ms: Math.round(performance.now() - startedMs) };
    return failed(kindOfStatus(status), `The vendor answered ${status}`);
  } catch (error) {
    if (error instanceof AddressRefusedError) return failed("address_refused", error.message);
    return failed("network", "The vendor could not be reached, or did not answer in time");
  } finally {
    await http.close();
  }
}

function failed(kind: ProviderErrorKind, message: string): ProbeResult {
  return { ok: false, error: { kind, message } };
}
