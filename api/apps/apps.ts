/**
 * Apps: a workflow's version, deployed under a hostname of its own. The hostname is the base
 * address of the app's Runs API. Deploying another version is a change of `workflow_version_id`;
 * runs under way keep theirs.
 */

import { randomInt } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { nullableText, Timestamp } from "#http/timestamp.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { type Caller, inReach, requireProjectAccess } from "#identity/caller.ts";
import { listRoute } from "#identity/list_route.ts";
import { requireProjectFor } from "#identity/projects.ts";
import { type AnySql, json } from "#store/sql.ts";
import { AppPolicy, AppPolicyChange, appPolicyDefault } from "./app_policy.ts";
import { publicRights } from "./hosted_app.ts";

const uuid = Type.String({ format: "uuid" });
const access_type = oneOf(["private", "public"]);
const public_may = Type.Array(oneOf(publicRights), {
  maxItems: publicRights.length,
  uniqueItems: true,
  description: "what, on a public app, a run's token may do beyond following the run",
});
const AccessControl = named("AccessControl", Type.Object({ access_type, public_may }), {
  access_type: "`private`: access keys alone open it; `public`: anybody may start a run",
});
const NewAccessControl = named(
  "NewAccessControl",
  Type.Object({ access_type, public_may: Type.Optional(public_may) }, { additionalProperties: false }),
  {
    access_type: "`private`: access keys alone open it; `public`: anybody may start a run",
  },
);

const App = named(
  "App",
  Type.Object({
    id: uuid,
    name: Type.String(),
    description: Type.String(),
    project_id: uuid,
    hostname: Type.String(),
    runtime_id: uuid,
    workflow_id: uuid,
    workflow_version_id: uuid,
    access_control: AccessControl,
    policy: AppPolicy,
    created_at: Timestamp,
    created_by: nullableText,
    updated_at: Timestamp,
    updated_by: nullableText,
  }),
  {
    name: "what people call it",
    description: "what it is for; may be empty",
    hostname: "where its Runs API is: the Host of requests to it",
    runtime_id: "stays the same for the life of the app",
    access_control: "who may call it",
    policy: "its bounds",
  },
);
type App = Static<typeof App>;

const name = Type.String({ minLength: 1, maxLength: 200, pattern: "\\S", description: "text that is not blank" });
const description = Type.String({ maxLength: 4000 });
const NewApp = named(
  "NewApp",
  Type.Object(
    {
      name,
      description: Type.Optional(description),
      project_id: uuid,
      workflow_id: uuid,
      workflow_version_id: Type.Optional(
        Type.String({ format: "uuid", description: "the workflow's newest version unless given" }),
      ),
      access_control: Type.Optional(NewAccessControl),
      policy: Type.Optional(AppPolicyChange),
    },
    { additionalProperties: false },
  ),
  {
    name: "what people call it; its hostname is made from it",
    description: "what it is for",
    workflow_id: "the workflow that it runs",
    workflow_version_id: "the version that it runs",
    access_control: "who may call it; private unless given",
    policy: "its bounds; each has a default",
  },
);
export type NewApp = Static<typeof NewApp>;
const AppChange = named(
  "AppChange",
  Type.Object(
    {
      name: Type.Optional(name),
      description: Type.Optional(description),
      workflow_version_id: Type.Optional(uuid),
      access_control: Type.Optional(NewAccessControl),
      policy: Type.Optional(AppPolicyChange),
    },
    { additionalProperties: false, description: "Absent fields stay; so do absent fields of policy" },
  ),
  {
    name: "another name; the hostname stays",
    description: "another description",
    workflow_version_id: "the version that further runs are of",
    access_control: "who may call it from now on",
    policy: "bounds that change",
  },
);
const OneApp = dataOf(App);
const sortColumns = ["name", "created_at", "updated_at"] as const;

export interface AppRouteDeps extends ApiDeps {
  /** Apps answer below this domain. */
  appDomain: string;
}

export function appRoutes({ sql, now, appDomain, personalAccessToken: guard }: AppRouteDeps): Route[] {
  const path = "/v1/apps";
  const pathOfOne = "/v1/apps/{app_id}";
  return [
    route({
      method: "POST",
      path,
      summary: "Deploy a workflow as an app",
      guard,
      body: NewApp,
      reply: { status: 201, body: OneApp },
      errors: ["forbidden", "not_found"],
      examples: {
        a_workflow_for_everybody: {
          body: {
            name: "Greeting",
            project_id: "{{project_id}}",
            workflow_id: "{{workflow_id}}",
            access_control: { access_type: "public" },
          },
        },
      },
      handle: async ({ principal, body }) => {
        requirePublicFor(body.access_control);
        await requireProjectFor(sql, principal, body.project_id);
        return { data: await insertApp({ sql, appDomain }, principal, body, now()) };
      },
    }),
    listRoute(sql, {
      path,
      summary: "List apps",
      guard,
      row: App,
      filters: {
        project_id: { ...uuid, about: "apps of one project" },
        workflow_id: { ...uuid, about: "apps that run one workflow" },
      },
      sort: sortColumns,
      examples: { of_a_project: { query: { project_id: "{{project_id}}", sort: "name" } } },
      rows: ({ principal }) => ({ columns: columns(sql, appDomain), from: sql`app`, where: inReach(sql, principal) }),
    }),
    route({
      method: "GET",
      path: pathOfOne,
      summary: "Get an app",
      guard,
      reply: { status: 200, body: OneApp },
      errors: ["forbidden"],
      paramsFrom: { app_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { an_app: {} },
      handle: async ({ principal, params }) => ({ data: await findApp({ sql, appDomain }, principal, params.app_id) }),
    }),
    route({
      method: "PATCH",
      path: pathOfOne,
      summary: "Change an app or deploy another version of its workflow",
      guard,
      body: AppChange,
      reply: { status: 200, body: OneApp },
      errors: ["forbidden", "not_found"],
      paramsFrom: { app_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { for_key_holders_alone: { body: { access_control: { access_type: "private" } } } },
      handle: async ({ principal, params, body }) => {
        requirePublicFor(body.access_control);
        await findApp({ sql, appDomain }, principal, params.app_id);
        return { data: await updateApp({ sql, appDomain }, principal, { ...body, id: params.app_id }, now()) };
      },
    }),
    route({
      method: "DELETE",
      path: pathOfOne,
      summary: "Delete an app and its finished runs; refused while runs are under way",
      guard,
      reply: { status: 200, body: OneApp },
      errors: ["forbidden", "conflict"],
      paramsFrom: { app_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { an_app: {} },
      handle: async ({ principal, params }) => {
        await findApp({ sql, appDomain }, principal, params.app_id);
        return { data: await deleteApp({ sql, appDomain }, principal, params.app_id) };
      },
    }),
  ];
}

/** @throws ApiError bad_request for rights of callers without a key on an app that has none */
function requirePublicFor(access: Static<typeof NewAccessControl> | undefined): void {
  if (access?.access_type !== "private" || (access.public_may ?? []).length === 0) return;
  throw new ApiError("bad_request", {
    details: { "access_control.public_may": "Expected access_type public with public_may" },
  });
}

interface Store {
  sql: AnySql;
  appDomain: string;
}

const columns = (sql: AnySql, appDomain: string) => sql`
  id, name, description, project_id, host_label || ${`.${appDomain}`} as hostname, runtime_id, workflow_id,
  workflow_version_id, json_build_object('access_type', access_type, 'public_may', public_may) as access_control, policy,
  created_at, created_by, updated_at, updated_by`;

const labelAttemptsMax = 5;

/**
 * Stores an app. The locks keep its project and its workflow from being deleted at the same moment.
 * @throws ApiError not_found for a workflow or a version that the project does not have
 */
export async function insertApp({ sql, appDomain }: Store, caller: Caller, app: NewApp, now: Date): Promise<App> {
  const policy = { ...appPolicyDefault, ...app.policy };
  const ofVersion =
    app.workflow_version_id === undefined ? sql`v.id = w.latest_version_id` : sql`v.id = ${app.workflow_version_id}`;
  // Two apps of one name differ in the label's random end; a taken label is tried again with another one.
  for (let attempt = 0; attempt < labelAttemptsMax; attempt += 1) {
    const [row] = await sql<App[]>`
      insert into app
        (organization_id, project_id, name, description, host_label, workflow_id, workflow_version_id,
         access_type, public_may, policy, created_at, created_by, updated_at, updated_by)
      select w.organization_id, w.project_id, ${app.name}, ${app.description ?? ""}, ${hostLabelFor(app.name)}, w.id, v.id,
             ${app.access_control?.access_type ?? "private"}, ${app.access_control?.public_may ?? []}, ${json(sql, policy)},
             ${now}, ${caller.userId}, ${now}, ${caller.userId}
      from workflow w
      join workflow_version v on v.workflow_id = w.id and ${ofVersion}
      join project p on p.id = w.project_id and p.deleted_at is null
      where w.id = ${app.workflow_id} and w.project_id = ${app.project_id} and w.organization_id = ${caller.organizationId}
      for share of w, p
      on conflict on constraint app_host_label_key do nothing
      returning ${columns(sql, appDomain)}`;
    if (row) return row;
    const known = await sql`
      select 1 from workflow w join workflow_version v on v.workflow_id = w.id and ${ofVersion}
      where w.id = ${app.workflow_id} and w.project_id = ${app.project_id} and w.organization_id = ${caller.organizationId}`;
    if (known.length === 0) {
      const field = app.workflow_version_id === undefined ? "workflow_id" : "workflow_version_id";
      throw new ApiError("not_found", {
        details: { [field]: "Expected a workflow of the project, and a version of it" },
      });
    }
  }
  throw new Error(`No free host label for an app after ${labelAttemptsMax} attempts`);
}

/** `Front desk, night shift` as `front-desk-night-shift-k3x9q2`: one DNS label, at most 63 characters. */
function hostLabelFor(appName: string): string {
  const ascii = appName.normalize("NFKD").replace(/[\u0300-\u036f]/g, "");
  const words = ascii
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 40)
    .replace(/-+$/, "");
  const end = Array.from({ length: 6 }, () => randomInt(36).toString(36)).join("");
  return `${words || "app"}-${end}`;
}

/** @throws ApiError not_found, or forbidden for a project that the caller does not reach */
export async function findApp({ sql, appDomain }: Store, caller: Caller, appId: string): Promise<App> {
  const [app] = await sql<App[]>`
    select ${columns(sql, appDomain)} from app where id = ${appId} and organization_id = ${caller.organizationId}`;
  if (!app) throw new ApiError("not_found");
  await requireProjectAccess(sql, caller, app.project_id);
  return app;
}

async function updateApp(
  { sql, appDomain }: Store,
  caller: Caller,
  change: Static<typeof AppChange> & { id: string },
  now: Date,
): Promise<App> {
  const version = change.workflow_version_id;
  const policy = change.policy ?? {};
  const [app] = await sql<App[]>`
    update app
    set name = coalesce(${change.name ?? null}, name),
        description = coalesce(${change.description ?? null}, description),
        workflow_version_id = coalesce(${version ?? null}, workflow_version_id),
        access_type = coalesce(${change.access_control?.access_type ?? null}, access_type),
        public_may = case when ${change.access_control?.access_type ?? null} = 'private' then '{}'
          else coalesce(${change.access_control?.public_may ?? null}::text[], public_may) end,
        policy = (policy::jsonb || ${json(sql, policy)}::jsonb)::json,
        updated_at = ${now}, updated_by = ${caller.userId}
    where id = ${change.id} and organization_id = ${caller.organizationId}
      and ${version === undefined ? sql`true` : sql`exists (select 1 from workflow_version v where v.id = ${version} and v.workflow_id = app.workflow_id)`}
    returning ${columns(sql, appDomain)}`;
  if (app) return app;
  throw new ApiError("not_found", { details: { workflow_version_id: "Expected a version of the app's workflow" } });
}

async function deleteApp({ sql, appDomain }: Store, caller: Caller, appId: string): Promise<App> {
  const live = sql`
    exists (select 1 from run where app_id = app.id and status in ('pending', 'running', 'awaiting_input'))`;
  const [app] = await sql<App[]>`
    delete from app where id = ${appId} and organization_id = ${caller.organizationId} and not ${live}
    returning ${columns(sql, appDomain)}`;
  if (app) return app;
  throw new ApiError("conflict", { details: { app_id: "Expected an app without runs under way; cancel them first" } });
}
