/**
 * Who calls an app, and which one: the app by the request's Host, the caller by an access key of the
 * app's project or organization. A public app lets anybody start a run, and whoever did follow that very
 * run by its token; each endpoint names, by its guard, what of that it is (docs/public-apps.md). Requests
 * without a key have a rate limit of their own.
 */
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { destinationOf } from "#contracts/hosts.ts";
import { runTokenHeader } from "#contracts/internal_runs.ts";
import { bearerTokenOf, secretPrefixes } from "#contracts/secrets.ts";
import type { WorkflowDefinition } from "#contracts/workflow.ts";
import { hostOf } from "#http/request_host.ts";
import type { CredentialScheme, Guard } from "#http/route.ts";
import type { AddressOf } from "#identity/attempt_limits.ts";
import { sha256Hex } from "#identity/secret.ts";
import type { Fragment, Sql } from "#store/sql.ts";
import { type AppPolicy, appPolicyDefault } from "./app_policy.ts";
import type { RunTokens } from "./run_tokens.ts";

export interface HostedApp {
  id: string;
  organizationId: string;
  projectId: string;
  workflowVersionId: string;
  definition: WorkflowDefinition;
  policy: AppPolicy;
  isPublic: boolean;
  /** What a run's token may do beyond following it. */
  publicMay: readonly PublicMay[];
  /** Its organization has ceilings of use. */
  hasLimits: boolean;
}

/** Beyond starting and following a run, where the app allows it. */
export const publicRights = ["respond", "cancel"] as const;
export type PublicMay = (typeof publicRights)[number];

/** An app as somebody calls it: with a key, without any credential, or with the token of one run. */
export interface CalledApp extends HostedApp {
  by: "key" | "anybody" | "run_token";
}

export interface HostedAppDeps {
  sql: Sql;
  bus: Bus;
  now(): Date;
  appDomain: string;
  addressOf: AddressOf;
  runTokens: RunTokens;
}

type AppGuard = Guard<CalledApp>;

export interface HostedAppGuards {
  /** Start a run: anybody may, on a public app. */
  starts: AppGuard;
  /** Follow the run that the path names: so may its token. */
  follows: AppGuard;
  /** Answer or cancel that run: so may its token, where `public_may` says so. */
  responds: AppGuard;
  cancels: AppGuard;
  /** Everything else: an access key, always. */
  holdsKey: AppGuard;
  /** Lets this very request in as one for `appId`: for the invocation proxy, which has checked its caller. */
  admit(request: Request, appId: string): void;
  runTokens: RunTokens;
}

/** What every endpoint on an app's host needs. */
export interface HostRouteDeps {
  sql: Sql;
  now(): Date;
  hostedApp: HostedAppGuards;
}

type Act = "start" | "follow" | PublicMay | "anything";

export function hostedAppGuards({ sql, bus, now, appDomain, addressOf, runTokens }: HostedAppDeps): HostedAppGuards {
  const admitted = new WeakMap<Request, string>();

  async function enter(request: Request, act: Act): Promise<CalledApp> {
    const admittedTo = admitted.get(request);
    if (admittedTo) return { ...(await findApp(sql, sql`app.id = ${admittedTo}`, "", now())).app, by: "key" };
    const { label } = destinationOf(hostOf(request), "/", appDomain);
    if (label === undefined) throw new ApiError("not_found");
    const bearer = bearerTokenOf(request.headers.get("authorization"));
    const { app, key } = await findApp(sql, sql`app.host_label = ${label}`, bearer ? sha256Hex(bearer) : "", now());
    if (bearer?.startsWith(secretPrefixes.accessKey) && key) {
      if (key.organizationId !== app.organizationId) throw new ApiError("not_found");
      if (key.projectId !== null && key.projectId !== app.projectId) throw new ApiError("forbidden");
      return { ...app, by: "key" };
    }
    if (!app.isPublic) throw new ApiError("unauthorized");
    await countPublicRequest(bus, addressOf(request), app);
    return { ...app, by: byRunToken(request, act, app) ? "run_token" : "anybody" };
  }

  /** @throws ApiError for whatever a public app does not let its caller do */
  function byRunToken(request: Request, act: Act, app: HostedApp): boolean {
    const token = runTokenOf(request);
    if (token === undefined) {
      if (act === "start" && !request.headers.has("authorization")) return false;
      throw new ApiError("unauthorized");
    }
    const runId = runTokens.runOf(token);
    if (runId === undefined) throw new ApiError("unauthorized");
    if (act === "start" || act === "anything") throw new ApiError("forbidden");
    if (runId !== new URL(request.url).pathname.split("/")[3]?.toLowerCase()) throw new ApiError("not_found");
    if (act !== "follow" && !app.publicMay.includes(act)) throw new ApiError("forbidden");
    return true;
  }

  const guardFor = (scheme: CredentialScheme, act: Act): AppGuard => ({
    scheme,
    refuses: ["forbidden", "not_found", "too_many_requests"],
    check: (request) => enter(request, act),
  });
  return {
    starts: guardFor("access_key_or_nothing", "start"),
    follows: guardFor("access_key_or_run_token", "follow"),
    responds: guardFor("access_key_or_run_token", "respond"),
    cancels: guardFor("access_key_or_run_token", "cancel"),
    holdsKey: guardFor("access_key", "anything"),
    admit: (request, appId) => {
      admitted.set(request, appId);
    },
    runTokens,
  };
}

/** An app of the project, for who needs no key to it: the project's own calls. @throws ApiError not_found */
export async function findCalledApp(sql: Sql, projectId: string, appId: string, now: Date): Promise<CalledApp> {
  const { app } = await findApp(sql, sql`app.id = ${appId} and app.project_id = ${projectId}`, "", now);
  return { ...app, by: "key" };
}

/** As a bearer credential, in a header of its own, or, for an `EventSource`, which sends none, in a stream's query. */
function runTokenOf(request: Request): string | undefined {
  const bearer = bearerTokenOf(request.headers.get("authorization"));
  if (bearer?.startsWith(secretPrefixes.runToken)) return bearer;
  const header = request.headers.get(runTokenHeader);
  if (header !== null) return header;
  const { pathname, searchParams } = new URL(request.url);
  return pathname.endsWith("/stream") ? (searchParams.get("run_token") ?? undefined) : undefined;
}

interface AppRow {
  id: string;
  organization_id: string;
  project_id: string;
  workflow_version_id: string;
  access_type: "private" | "public";
  public_may: PublicMay[];
  policy: Partial<AppPolicy>;
  has_limits: boolean;
  definition: WorkflowDefinition;
  key_organization_id: string | null;
  key_project_id: string | null;
}

/** The app and, where the digest is one of a living key, the key's place. @throws ApiError not_found */
async function findApp(sql: Sql, where: Fragment, keySha256: string, now: Date) {
  const [row] = await sql<AppRow[]>`
    select app.id, app.organization_id, app.project_id, app.workflow_version_id, app.access_type, app.public_may,
           app.policy,
           exists (select 1 from usage_limit where organization_id = app.organization_id) as has_limits,
           version.definition, key.organization_id as key_organization_id, key.project_id as key_project_id
    from app
    join workflow_version version on version.id = app.workflow_version_id
    left join access_key key on key.secret_sha256 = ${keySha256} and key.revoked_at is null
      and (key.expires_at is null or key.expires_at > ${now})
    where ${where}`;
  if (!row) throw new ApiError("not_found");
  const app: HostedApp = {
    id: row.id,
    organizationId: row.organization_id,
    projectId: row.project_id,
    workflowVersionId: row.workflow_version_id,
    definition: row.definition,
    policy: { ...appPolicyDefault, ...row.policy },
    isPublic: row.access_type === "public",
    publicMay: row.public_may,
    hasLimits: row.has_limits,
  };
  const key =
    row.key_organization_id === null
      ? undefined
      : { organizationId: row.key_organization_id, projectId: row.key_project_id };
  return { app, key };
}

/** One address may call a public app so often a minute. Without a bus nothing is counted: calls go on. */
async function countPublicRequest(bus: Bus, address: string, app: HostedApp): Promise<void> {
  const limit = app.policy.public_requests_per_minute;
  const hit = await bus.hitRateLimit(`public_app:${app.id}:${address}`, limit, 60_000).catch(() => undefined);
  if (hit && !hit.allowed) throw new ApiError("too_many_requests", { retryAfterS: Math.ceil(hit.retryAfterMs / 1000) });
}
