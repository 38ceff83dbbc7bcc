/**
 * Who calls an app, and which one: the app by the request's Host, the caller by an access key of the
 * app's project or organization. A public app needs no key and has a rate limit of its own.
 */
import type { Bus } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { bearerTokenOf, secretPrefixes } from "#contracts/secrets.ts";
import type { WorkflowDefinition } from "#contracts/workflow.ts";
import type { Guard } from "#http/route.ts";
import type { AddressOf } from "#identity/attempt_limits.ts";
import { sha256Hex } from "#identity/secret.ts";
import type { Fragment, Sql } from "#store/sql.ts";
import { type AppPolicy, appPolicyDefault } from "./app_policy.ts";

export interface HostedApp {
  id: string;
  organizationId: string;
  projectId: string;
  workflowVersionId: string;
  definition: WorkflowDefinition;
  policy: AppPolicy;
  isPublic: boolean;
}

export interface HostedAppDeps {
  sql: Sql;
  bus: Bus;
  now(): Date;
  appDomain: string;
  addressOf: AddressOf;
}

export interface HostedAppGuard extends Guard<HostedApp> {
  /** The label of `<label>.<APP_DOMAIN>`, or undefined for every other host. */
  labelOf(request: Request): string | undefined;
  /** Lets this very request in as one for `appId`: for the invocation proxy, which has checked its caller. */
  admit(request: Request, appId: string): void;
}

/** What every endpoint on an app's host needs. */
export interface HostRouteDeps {
  sql: Sql;
  now(): Date;
  hostedApp: HostedAppGuard;
}

export function hostedAppGuard({ sql, bus, now, appDomain, addressOf }: HostedAppDeps): HostedAppGuard {
  const admitted = new WeakMap<Request, string>();
  const suffix = `.${appDomain.toLowerCase()}`;

  function labelOf(request: Request): string | undefined {
    const host = (request.headers.get("host") ?? new URL(request.url).host).toLowerCase().replace(/:\d+$/, "");
    return host.endsWith(suffix) ? host.slice(0, -suffix.length) : undefined;
  }

  async function check(request: Request): Promise<HostedApp> {
    const admittedTo = admitted.get(request);
    if (admittedTo) return (await findApp(sql, sql`app.id = ${admittedTo}`, "", now())).app;
    const label = labelOf(request);
    if (label === undefined) throw new ApiError("not_found");
    const token = bearerTokenOf(request.headers.get("authorization"));
    const { app, key } = await findApp(sql, sql`app.host_label = ${label}`, token ? sha256Hex(token) : "", now());
    if (app.isPublic) {
      await countPublicRequest(bus, addressOf(request), app);
      return app;
    }
    if (!token?.startsWith(secretPrefixes.accessKey) || !key) throw new ApiError("unauthorized");
    if (key.organizationId !== app.organizationId) throw new ApiError("not_found");
    if (key.projectId !== null && key.projectId !== app.projectId) throw new ApiError("forbidden");
    return app;
  }

  return {
    scheme: "access_key",
    check,
    labelOf,
    admit: (request, appId) => {
      admitted.set(request, appId);
    },
  };
}

interface AppRow {
  id: string;
  organization_id: string;
  project_id: string;
  workflow_version_id: string;
  access_type: "private" | "public";
  policy: Partial<AppPolicy>;
  definition: WorkflowDefinition;
  key_organization_id: string | null;
  key_project_id: string | null;
}

/** The app and, where the digest is one of a living key, the key's place. @throws ApiError not_found */
async function findApp(sql: Sql, where: Fragment, keySha256: string, now: Date) {
  const [row] = await sql<AppRow[]>`
    select app.id, app.organization_id, app.project_id, app.workflow_version_id, app.access_type, app.policy,
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
