/**
 * Workflows and their versions. A version's definition is checked when it is saved and never
 * changes afterwards; an app runs one version. Saving a new definition makes a new version.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError, type ErrorDetails } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { WorkflowDefinition, workflowLimits } from "#contracts/workflow.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { nullableText, Timestamp } from "#http/timestamp.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { type Caller, inReach, requireProjectAccess } from "#identity/caller.ts";
import { listRoute } from "#identity/list_route.ts";
import { requireProjectFor } from "#identity/projects.ts";
import { type AnySql, json, oneRow, violates } from "#store/sql.ts";
import { loadUsedVersions, subworkflowProblems, usedVersionIds } from "./subworkflow_rules.ts";
import { workflowProblems } from "./workflow_rules.ts";

const uuid = Type.String({ format: "uuid" });
const Workflow = named(
  "Workflow",
  Type.Object({
    id: uuid,
    name: Type.String(),
    description: Type.String(),
    project_id: uuid,
    latest_version_id: uuid,
    created_at: Timestamp,
    created_by: nullableText,
    updated_at: Timestamp,
    updated_by: nullableText,
  }),
  {
    name: "what people call it",
    description: "what it is for; may be empty",
    latest_version_id: "its newest version",
  },
);
type Workflow = Static<typeof Workflow>;

const WorkflowVersion = named(
  "WorkflowVersion",
  Type.Object({
    id: uuid,
    workflow_id: uuid,
    version: Type.Integer(),
    definition: WorkflowDefinition,
    created_at: Timestamp,
    created_by: nullableText,
  }),
  {
    version: "its number; the first is 1",
    definition: "the graph, which never changes",
  },
);
type WorkflowVersion = Static<typeof WorkflowVersion>;

const name = Type.String({ minLength: 1, maxLength: 200, pattern: "\\S", description: "text that is not blank" });
const description = Type.String({ maxLength: 4000 });

const NewWorkflow = named(
  "NewWorkflow",
  Type.Object(
    { name, description: Type.Optional(description), project_id: uuid, definition: WorkflowDefinition },
    { additionalProperties: false },
  ),
  {
    name: "what people call it",
    description: "what it is for",
    definition: "the graph of its first version",
  },
);
const WorkflowChange = named(
  "WorkflowChange",
  Type.Object(
    {
      name: Type.Optional(name),
      description: Type.Optional(description),
      definition: Type.Optional(WorkflowDefinition),
    },
    { additionalProperties: false, description: "A definition becomes a new version; apps keep theirs" },
  ),
  {
    name: "another name",
    description: "another description",
    definition: "the graph of a new version",
  },
);
const NewWorkflowVersion = named(
  "NewWorkflowVersion",
  Type.Object({ definition: WorkflowDefinition }, { additionalProperties: false }),
  {
    definition: "the graph",
  },
);
/** Answers what it was asked with. */
const exampleDefinition = {
  schema_version: 1,
  input: { type: "object", properties: { guest: { type: "string", required: true } } },
  nodes: [
    { id: "in", type: "input" },
    { id: "out", type: "output", inputs: { welcome: "$.input.guest" } },
  ],
  edges: [{ from: "in", to: "out" }],
};
const OneWorkflow = dataOf(Workflow);
const OneVersion = dataOf(WorkflowVersion);

const bodyOptions = { bytesMax: workflowLimits.definitionBytesMax + 16 * 1024 };
const sortColumns = ["name", "created_at", "updated_at"] as const;

export function workflowRoutes({ sql, now, personalAccessToken: guard }: ApiDeps): Route[] {
  const path = "/v1/workflows";
  const pathOfOne = "/v1/workflows/{workflow_id}";
  const pathOfVersions = "/v1/workflows/{workflow_id}/versions";
  return [
    route({
      method: "POST",
      path,
      summary: "Create a workflow with its first version",
      guard,
      body: NewWorkflow,
      bodyOptions,
      reply: { status: 201, body: OneWorkflow },
      errors: ["forbidden", "not_found"],
      examples: {
        a_greeting: { body: { name: "Greeting", project_id: "{{project_id}}", definition: exampleDefinition } },
      },
      handle: async ({ principal, body }) => {
        requireDefinition(body.definition);
        await requireProjectFor(sql, principal, body.project_id);
        await requireSubworkflows(sql, body.definition, { projectId: body.project_id });
        return { data: await sql.begin((transaction) => insertWorkflow(transaction, principal, body, now())) };
      },
    }),
    listRoute(sql, {
      path,
      summary: "List workflows",
      guard,
      row: Workflow,
      filters: { project_id: { ...uuid, about: "workflows of one project" } },
      sort: sortColumns,
      examples: { of_a_project: { query: { project_id: "{{project_id}}", sort: "name" } } },
      rows: ({ principal }) => ({ columns: columns(sql), from: sql`workflow`, where: inReach(sql, principal) }),
    }),
    route({
      method: "GET",
      path: pathOfOne,
      summary: "Get a workflow",
      guard,
      reply: { status: 200, body: OneWorkflow },
      errors: ["forbidden"],
      paramsFrom: { workflow_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { a_workflow: {} },
      handle: async ({ principal, params }) => ({ data: await findWorkflow(sql, principal, params.workflow_id) }),
    }),
    route({
      method: "PATCH",
      path: pathOfOne,
      summary: "Change a workflow; a definition becomes its newest version",
      guard,
      body: WorkflowChange,
      bodyOptions,
      reply: { status: 200, body: OneWorkflow },
      errors: ["forbidden"],
      paramsFrom: { workflow_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { another_name: { body: { name: "Welcome" } } },
      handle: async ({ principal, params, body }) => {
        if (body.definition) requireDefinition(body.definition);
        const { project_id } = await findWorkflow(sql, principal, params.workflow_id);
        if (body.definition) {
          await requireSubworkflows(sql, body.definition, { projectId: project_id, workflowId: params.workflow_id });
        }
        const change = { ...body, id: params.workflow_id };
        return { data: await sql.begin((transaction) => updateWorkflow(transaction, principal, change, now())) };
      },
    }),
    route({
      method: "DELETE",
      path: pathOfOne,
      summary: "Delete a workflow that no app uses",
      guard,
      reply: { status: 200, body: OneWorkflow },
      errors: ["forbidden", "conflict"],
      paramsFrom: { workflow_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { a_workflow: {} },
      handle: async ({ principal, params }) => {
        await findWorkflow(sql, principal, params.workflow_id);
        return { data: await deleteWorkflow(sql, principal, params.workflow_id) };
      },
    }),
    route({
      method: "POST",
      path: pathOfVersions,
      summary: "Save a new version",
      guard,
      body: NewWorkflowVersion,
      bodyOptions,
      reply: { status: 201, body: OneVersion },
      errors: ["forbidden"],
      paramsFrom: { workflow_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { the_same_again: { body: { definition: exampleDefinition } } },
      handle: async ({ principal, params, body }) => {
        requireDefinition(body.definition);
        const { project_id } = await findWorkflow(sql, principal, params.workflow_id);
        await requireSubworkflows(sql, body.definition, { projectId: project_id, workflowId: params.workflow_id });
        const version = await sql.begin((transaction) =>
          insertVersion(transaction, principal, params.workflow_id, body.definition, now()),
        );
        return { data: version };
      },
    }),
    listRoute(sql, {
      path: pathOfVersions,
      summary: "List a workflow's versions, the highest first",
      guard,
      row: WorkflowVersion,
      sort: [],
      order: [{ column: "version", descending: true }],
      errors: ["forbidden"],
      paramsFrom: { workflow_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { newest_first: { query: { page: 1, page_size: 10 } } },
      rows: async ({ principal, params: { workflow_id = "" } }) => {
        await findWorkflow(sql, principal, workflow_id);
        return {
          columns: versionColumns(sql),
          from: sql`workflow_version`,
          where: sql`workflow_id = ${workflow_id} and organization_id = ${principal.organizationId}`,
        };
      },
    }),
    route({
      method: "GET",
      path: "/v1/workflows/{workflow_id}/versions/{version_id}",
      summary: "Get a version",
      guard,
      reply: { status: 200, body: OneVersion },
      errors: ["forbidden"],
      paramsFrom: {
        workflow_id: { route: `POST ${path}`, field: "data.id" },
        version_id: { route: `POST ${path}`, field: "data.latest_version_id" },
      },
      examples: { the_newest: {} },
      handle: async ({ principal, params }) => {
        await findWorkflow(sql, principal, params.workflow_id);
        const [version] = await sql<WorkflowVersion[]>`
          select ${versionColumns(sql)} from workflow_version
          where id = ${params.version_id} and workflow_id = ${params.workflow_id}
            and organization_id = ${principal.organizationId}`;
        if (!version) throw new ApiError("not_found");
        return { data: version };
      },
    }),
  ];
}

/** @throws ApiError bad_request with a detail for each offending node and edge */
function requireDefinition(definition: WorkflowDefinition): void {
  refuse(workflowProblems(definition));
}

/** @throws ApiError bad_request with a detail for each subworkflow node that cannot be executed */
async function requireSubworkflows(
  sql: AnySql,
  definition: WorkflowDefinition,
  { projectId, workflowId }: { projectId: string; workflowId?: string },
): Promise<void> {
  if (usedVersionIds(definition).length === 0) return;
  const versions = await loadUsedVersions(sql, definition, projectId);
  refuse(subworkflowProblems(definition, workflowId, versions));
}

function refuse(found: ErrorDetails): void {
  const problems = Object.entries(found);
  if (problems.length === 0) return;
  const details = Object.fromEntries(problems.map(([path, message]) => [`definition.${path}`, message]));
  throw new ApiError("bad_request", { details });
}

const columns = (sql: AnySql) =>
  sql`id, name, description, project_id, latest_version_id, created_at, created_by, updated_at, updated_by`;
const versionColumns = (sql: AnySql) => sql`id, workflow_id, version, definition, created_at, created_by`;

/**
 * Stores a workflow whose definition has been checked, inside a transaction. The lock on the
 * project keeps it from being deleted at the same moment. @throws ApiError not_found when that was faster
 */
export async function insertWorkflow(
  sql: AnySql,
  caller: Caller,
  workflow: Static<typeof NewWorkflow>,
  now: Date,
): Promise<Workflow> {
  const [row] = await sql<{ id: string }[]>`
    insert into workflow (organization_id, project_id, name, description, created_at, created_by, updated_at, updated_by)
    select organization_id, id, ${workflow.name}, ${workflow.description ?? ""},
           ${now}, ${caller.userId}, ${now}, ${caller.userId}
    from project
    where id = ${workflow.project_id} and organization_id = ${caller.organizationId} and deleted_at is null
    for share
    returning id`;
  if (!row) throw new ApiError("not_found", { details: { project_id: "Expected a project of your organization" } });
  await insertVersion(sql, caller, row.id, workflow.definition, now);
  return oneRow(await sql<Workflow[]>`select ${columns(sql)} from workflow where id = ${row.id}`);
}

/** The workflow's row lock makes versions that are saved at once follow each other. */
async function insertVersion(
  sql: AnySql,
  caller: Caller,
  workflowId: string,
  definition: WorkflowDefinition,
  now: Date,
): Promise<WorkflowVersion> {
  const [workflow] = await sql`
    select 1 from workflow where id = ${workflowId} and organization_id = ${caller.organizationId} for update`;
  if (!workflow) throw new ApiError("not_found");
  const version = oneRow(
    await sql<WorkflowVersion[]>`
      insert into workflow_version (workflow_id, organization_id, version, definition, created_at, created_by)
      select ${workflowId}, ${caller.organizationId}, coalesce(max(version), 0) + 1, ${json(sql, definition)},
             ${now}, ${caller.userId}
      from workflow_version where workflow_id = ${workflowId}
      returning ${versionColumns(sql)}`,
  );
  const uses = usedVersionIds(definition);
  if (uses.length > 0) {
    await sql`
      insert into workflow_use (version_id, uses_version_id) select ${version.id}, unnest(${uses}::uuid[])`;
  }
  await sql`
    update workflow set latest_version_id = ${version.id}, updated_at = ${now}, updated_by = ${caller.userId}
    where id = ${workflowId}`;
  return version;
}

/** @throws ApiError not_found, or forbidden for a project that the caller does not reach */
async function findWorkflow(sql: AnySql, caller: Caller, workflowId: string): Promise<Workflow> {
  const [workflow] = await sql<Workflow[]>`
    select ${columns(sql)} from workflow where id = ${workflowId} and organization_id = ${caller.organizationId}`;
  if (!workflow) throw new ApiError("not_found");
  await requireProjectAccess(sql, caller, workflow.project_id);
  return workflow;
}

async function updateWorkflow(
  sql: AnySql,
  caller: Caller,
  change: Static<typeof WorkflowChange> & { id: string },
  now: Date,
): Promise<Workflow> {
  if (change.definition) await insertVersion(sql, caller, change.id, change.definition, now);
  const [workflow] = await sql<Workflow[]>`
    update workflow
    set name = coalesce(${change.name ?? null}, name),
        description = coalesce(${change.description ?? null}, description),
        updated_at = ${now}, updated_by = ${caller.userId}
    where id = ${change.id} and organization_id = ${caller.organizationId}
    returning ${columns(sql)}`;
  if (!workflow) throw new ApiError("not_found");
  return workflow;
}

/** What is said of a workflow that stays, by the constraint that keeps it. */
const usesThatKeep = {
  app_workflow_id_fkey: "Expected a workflow without apps; delete them first",
  workflow_use_uses_version_id_fkey: "Expected a workflow that is no other's subworkflow",
};

/** Its versions go with it; one that an app runs or ran, or that another workflow uses, keeps it. */
async function deleteWorkflow(sql: AnySql, caller: Caller, workflowId: string): Promise<Workflow> {
  try {
    const [workflow] = await sql<Workflow[]>`
      delete from workflow where id = ${workflowId} and organization_id = ${caller.organizationId}
      returning ${columns(sql)}`;
    if (!workflow) throw new ApiError("not_found");
    return workflow;
  } catch (error) {
    const used = Object.entries(usesThatKeep).find(([constraint]) => violates(error, constraint));
    if (!used) throw error;
    throw new ApiError("conflict", { details: { workflow_id: used[1] }, cause: error });
  }
}
