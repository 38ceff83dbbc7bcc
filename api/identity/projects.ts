/**
 * Projects: what agents, apps and keys belong to. Owners and administrators make and change them;
 * a member sees those that the membership opens. A deleted project stays as a row behind the
 * archived agents and the call records that keep pointing at it.
 */

import { type Static, Type } from "@sinclair/typebox";
import { topics } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { nullableText, Timestamp } from "#http/timestamp.ts";
import { type AnySql, oneRow } from "#store/sql.ts";
import type { ApiDeps } from "./api_deps.ts";
import { type Caller, reachesEveryProject, requireAdministrator, requireProjectAccess } from "./caller.ts";
import { listRoute } from "./list_route.ts";

const TraceRetentionDays = Type.Integer({
  minimum: 1,
  maximum: 400,
  description: "traces are deleted so many days after they began; with what they are the record of, if that goes first",
});
const Project = named(
  "Project",
  Type.Object({
    id: Type.String({ format: "uuid" }),
    organization_id: Type.String({ format: "uuid" }),
    name: Type.String(),
    description: Type.String(),
    trace_retention_days: TraceRetentionDays,
    created_at: Timestamp,
    created_by: nullableText,
    updated_at: Timestamp,
    updated_by: nullableText,
  }),
  {
    name: "what people call it",
    description: "what it is for; may be empty",
  },
);
type Project = Static<typeof Project>;

const name = Type.String({ minLength: 1, maxLength: 200, pattern: "\\S", description: "text that is not blank" });
const description = Type.String({ maxLength: 4000 });
const NewProject = named(
  "NewProject",
  Type.Object({ name, description: Type.Optional(description) }, { additionalProperties: false }),
  {
    name: "what people call it",
    description: "what it is for",
  },
);
const ProjectChange = named(
  "ProjectChange",
  Type.Object(
    {
      name: Type.Optional(name),
      description: Type.Optional(description),
      trace_retention_days: Type.Optional(TraceRetentionDays),
    },
    { additionalProperties: false },
  ),
  {
    name: "another name",
    description: "another description",
  },
);
const OneProject = dataOf(Project);

const sortColumns = ["name", "created_at", "updated_at"] as const;

export function projectRoutes({ sql, bus, now, personalAccessToken }: ApiDeps): Route[] {
  const path = "/v1/projects";
  const pathOfOne = "/v1/projects/{project_id}";
  return [
    route({
      method: "POST",
      path,
      summary: "Create a project",
      guard: personalAccessToken,
      body: NewProject,
      reply: { status: 201, body: OneProject },
      errors: ["forbidden"],
      examples: { a_desk: { body: { name: "Front desk", description: "Calls and messages of the inn" } } },
      handle: async ({ principal, body }) => {
        requireAdministrator(principal);
        return { data: await insertProject(sql, principal, body, now()) };
      },
    }),
    listRoute(sql, {
      path,
      summary: "List the projects that the token reaches",
      guard: personalAccessToken,
      row: Project,
      sort: sortColumns,
      examples: { second_page: { query: { page: 2, page_size: 10, sort: "-created_at" } } },
      rows: ({ principal }) => ({
        columns: columns(sql),
        from: sql`project`,
        where: sql`organization_id = ${principal.organizationId} and deleted_at is null and ${visible(sql, principal)}`,
      }),
    }),
    route({
      method: "GET",
      path: pathOfOne,
      summary: "Get a project",
      guard: personalAccessToken,
      reply: { status: 200, body: OneProject },
      errors: ["forbidden"],
      paramsFrom: { project_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { a_project: {} },
      handle: async ({ principal, params }) => {
        const project = await findProject(sql, principal, params.project_id);
        await requireProjectAccess(sql, principal, project.id);
        return { data: project };
      },
    }),
    route({
      method: "PATCH",
      path: pathOfOne,
      summary: "Change a project",
      guard: personalAccessToken,
      body: ProjectChange,
      reply: { status: 200, body: OneProject },
      errors: ["forbidden"],
      paramsFrom: { project_id: { route: `POST ${path}`, field: "data.id" } },
      examples: {
        another_name: { body: { name: "Night desk" } },
        traces_for_a_week: { body: { trace_retention_days: 7 } },
      },
      handle: async ({ principal, params, body }) => {
        await findProject(sql, principal, params.project_id);
        requireAdministrator(principal);
        const [project] = await sql<Project[]>`
          update project
          set name = coalesce(${body.name ?? null}, name),
              description = coalesce(${body.description ?? null}, description),
              trace_retention_days = coalesce(${body.trace_retention_days ?? null}, trace_retention_days),
              updated_at = ${now()}, updated_by = ${principal.userId}
          where id = ${params.project_id} and organization_id = ${principal.organizationId} and deleted_at is null
          returning ${columns(sql)}`;
        if (!project) throw new ApiError("not_found");
        return { data: project };
      },
    }),
    route({
      method: "DELETE",
      path: pathOfOne,
      summary: "Delete a project without agents and apps; its access keys are revoked",
      guard: personalAccessToken,
      reply: { status: 200, body: OneProject },
      errors: ["forbidden", "conflict"],
      paramsFrom: { project_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { an_empty_project: {} },
      handle: async ({ principal, params }) => {
        await findProject(sql, principal, params.project_id);
        requireAdministrator(principal);
        const { project, revoked } = await sql.begin((transaction) =>
          deleteProject(transaction, principal, params.project_id, now()),
        );
        await Promise.all(revoked.map((sha256) => bus.publish(topics.credentialRevoked, sha256)));
        return { data: project };
      },
    }),
  ];
}

const columns = (sql: AnySql) =>
  sql`id, organization_id, name, description, trace_retention_days, created_at, created_by, updated_at, updated_by`;

/** As `visibleProjects`, on the project table itself. */
function visible(sql: AnySql, caller: Caller) {
  if (reachesEveryProject(caller)) return sql`true`;
  return sql`id in (select project_id from project_member where user_id = ${caller.userId})`;
}

export async function insertProject(
  sql: AnySql,
  caller: Caller,
  project: { name: string; description?: string },
  now: Date,
): Promise<Project> {
  return oneRow(
    await sql<Project[]>`
      insert into project (organization_id, name, description, created_at, created_by, updated_at, updated_by)
      values (${caller.organizationId}, ${project.name}, ${project.description ?? ""},
              ${now}, ${caller.userId}, ${now}, ${caller.userId})
      returning ${columns(sql)}`,
  );
}

/** A living project of the caller's organization. @throws ApiError not_found */
async function findProject(sql: AnySql, caller: Caller, projectId: string): Promise<Project> {
  const [project] = await sql<Project[]>`
    select ${columns(sql)} from project
    where id = ${projectId} and organization_id = ${caller.organizationId} and deleted_at is null`;
  if (!project) throw new ApiError("not_found");
  return project;
}

/** A project that the path names. @throws ApiError not_found, forbidden */
export async function requireProject(sql: AnySql, caller: Caller, projectId: string): Promise<void> {
  await findProject(sql, caller, projectId);
  await requireProjectAccess(sql, caller, projectId);
}

/**
 * Makes sure that the caller may put something into the project.
 * @throws ApiError bad_request at `project_id` for a project that does not exist for the caller, forbidden
 */
export async function requireProjectFor(sql: AnySql, caller: Caller, projectId: string): Promise<void> {
  const rows = await sql`
    select 1 from project
    where id = ${projectId} and organization_id = ${caller.organizationId} and deleted_at is null`;
  if (rows.length === 0)
    throw new ApiError("not_found", { details: { project_id: "Expected a project of your organization" } });
  await requireProjectAccess(sql, caller, projectId);
}

/** The lock makes agents that are being created at the same moment visible, or wait. */
async function deleteProject(sql: AnySql, caller: Caller, projectId: string, now: Date) {
  await sql`select 1 from project where id = ${projectId} for update`;
  const [project] = await sql<Project[]>`
    update project set deleted_at = ${now}, updated_at = ${now}, updated_by = ${caller.userId}
    where id = ${projectId} and organization_id = ${caller.organizationId} and deleted_at is null
      and not exists (select 1 from voice_agent where project_id = ${projectId} and deleted_at is null)
      and not exists (select 1 from app where project_id = ${projectId})
      and not exists (select 1 from workflow where project_id = ${projectId})
      and not exists (select 1 from connection where project_id = ${projectId})
    returning ${columns(sql)}`;
  if (!project) {
    await findProject(sql, caller, projectId);
    throw new ApiError("conflict", {
      details: {
        project_id:
          "Expected a project without voice agents, apps, workflows and connections; archive or delete them first",
      },
    });
  }
  const keys = await sql<{ secret_sha256: string }[]>`
    update access_key set revoked_at = ${now} where project_id = ${projectId} and revoked_at is null
    returning secret_sha256`;
  return { project, revoked: keys.map((key) => key.secret_sha256) };
}
