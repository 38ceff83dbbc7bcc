/**
 * Voice agents: configuration, with a life from draft to archived. A change takes effect on the
 * next call; calls in progress keep what they began with. Archiving keeps the call records.
 */

import { type Static, Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { type VoiceAgentConfig, voiceAgentStatuses } from "#contracts/voice_agent.ts";
import { dataOf } from "#http/paging.ts";
import { type Route, route } from "#http/route.ts";
import { nullableText, OptionalTimestamp, Timestamp } from "#http/timestamp.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { type Caller, inReach, requireProjectAccess } from "#identity/caller.ts";
import { listRoute } from "#identity/list_route.ts";
import { requireProjectFor } from "#identity/projects.ts";
import type { Encryption } from "#store/encryption.ts";
import { type AnySql, json } from "#store/sql.ts";
import { agentConfigSchema, configWarnings } from "./agent_config.ts";
import { requireConfig } from "./agent_connections.ts";
import type { AppInputs } from "./app_inputs.ts";
import { sealHeaders } from "./header_secrets.ts";

const VoiceAgent = named(
  "VoiceAgent",
  Type.Object({
    id: Type.String({ format: "uuid" }),
    name: Type.String(),
    description: Type.String(),
    project_id: Type.String({ format: "uuid" }),
    status: oneOf(voiceAgentStatuses),
    config: agentConfigSchema,
    allowed_origins: Type.Array(Type.String()),
    agent_name: nullableText,
    deploy_error: nullableText,
    deployed_at: OptionalTimestamp,
    phone_numbers: Type.Array(Type.String()),
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: OptionalTimestamp,
  }),
  {
    name: "what people call it",
    description: "what it is for; may be empty",
    status: "`archived` agents take no calls",
    config: "what it says and how",
    allowed_origins: "origins whose pages may connect to a call; none means any",
    agent_name: "its name as a worker of LiveKit",
    deploy_error: "why its deployment failed; null otherwise",
    deployed_at: "when it was deployed; null before",
    phone_numbers: "numbers at which it answers",
    deleted_at: "when it was archived; null before",
  },
);
export type VoiceAgent = Static<typeof VoiceAgent>;

const name = Type.String({ minLength: 1, maxLength: 200, pattern: "\\S", description: "text that is not blank" });
const description = Type.String({ maxLength: 4000 });
const allowedOrigins = Type.Array(
  Type.String({
    maxLength: 300,
    pattern: "^[A-Za-z][A-Za-z0-9+.-]*://[^/\\s?#]+$",
    description: "an origin such as https://www.example.com",
  }),
  { maxItems: 100, description: "Origins whose pages may connect to a call; none means any" },
);
/** Checked by `configProblems`, whose messages know the providers; described by the schema. */
const config = Type.Unsafe<unknown>(agentConfigSchema);

const NewVoiceAgent = named(
  "NewVoiceAgent",
  Type.Object(
    {
      name,
      description: Type.Optional(description),
      project_id: Type.String({ format: "uuid" }),
      config,
      allowed_origins: Type.Optional(allowedOrigins),
    },
    { additionalProperties: false },
  ),
  {
    name: "what people call it",
    description: "what it is for",
    config: "what it says and how",
  },
);
const VoiceAgentChange = named(
  "VoiceAgentChange",
  Type.Object(
    {
      name: Type.Optional(name),
      description: Type.Optional(description),
      config: Type.Optional(config),
      allowed_origins: Type.Optional(allowedOrigins),
    },
    { additionalProperties: false, description: "Absent fields stay; `config` is replaced as a whole" },
  ),
  {
    name: "another name",
    description: "another description",
    config: "takes the place of the old one, whole",
  },
);
const exampleAgent = {
  name: "Front desk",
  description: "Says again what the caller says",
  project_id: "{{project_id}}",
  config: { instructions: "Be kind and brief", llm: { provider: "echo" } },
};
const OneVoiceAgent = dataOf(VoiceAgent);
const SettingWarning = named("SettingWarning", Type.Object({ path: Type.String(), message: Type.String() }), {
  path: "the field that is set, for example `config.llm.temperature`",
  message: "why it has no effect",
});
const SavedVoiceAgent = named(
  "SavedVoiceAgent",
  Type.Object({ data: VoiceAgent, warnings: Type.Array(SettingWarning) }),
  { data: "the resource as it is now", warnings: "what its configuration sets in vain; a call says so too" },
);
/** An agent as it was saved. */
const saved = (agent: VoiceAgent) => ({ data: agent, warnings: configWarnings(agent.config, "config") });

const sortColumns = ["name", "status", "created_at", "updated_at"] as const;

export interface VoiceAgentDeps extends ApiDeps {
  allowPrivateAddresses: boolean;
  encryption: Encryption;
  appInputs: AppInputs;
}

export function voiceAgentRoutes(deps: VoiceAgentDeps): Route[] {
  const { sql, now, personalAccessToken, encryption } = deps;
  const path = "/v1/agents/voice/agents";
  const pathOfOne = "/v1/agents/voice/agents/{agent_id}";
  return [
    route({
      method: "POST",
      path,
      summary: "Create a voice agent",
      guard: personalAccessToken,
      body: NewVoiceAgent,
      reply: { status: 201, body: SavedVoiceAgent },
      errors: ["forbidden", "not_found"],
      examples: { one_that_repeats: { body: exampleAgent } },
      handle: async ({ principal, body }) => {
        await requireProjectFor(sql, principal, body.project_id);
        await requireConfig(deps, body.project_id, body.config);
        const id = crypto.randomUUID();
        const agent = body as NewAgent;
        const sealed = sealHeaders(encryption, id, agent.config);
        return saved(await insertVoiceAgent(sql, principal, { ...agent, ...sealed, id }, now()));
      },
    }),
    listRoute(sql, {
      path,
      summary: "List voice agents; archived ones only with status=archived",
      guard: personalAccessToken,
      row: VoiceAgent,
      filters: {
        project_id: Type.String({ format: "uuid", about: "agents of one project" }),
        status: { ...oneOf(voiceAgentStatuses), about: "agents in this status; all but archived ones unless given" },
      },
      sort: sortColumns,
      examples: { of_a_project: { query: { project_id: "{{project_id}}", page_size: 10 } } },
      rows: ({ principal, query }) => ({
        columns: columns(sql),
        from: sql`voice_agent`,
        where: sql`${inReach(sql, principal)} and ${query.status === undefined ? sql`status <> 'archived'` : sql`true`}`,
      }),
    }),
    route({
      method: "GET",
      path: pathOfOne,
      summary: "Get a voice agent",
      guard: personalAccessToken,
      reply: { status: 200, body: OneVoiceAgent },
      errors: ["forbidden"],
      paramsFrom: { agent_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { an_agent: {} },
      handle: async ({ principal, params }) => ({ data: await findVoiceAgent(sql, principal, params.agent_id) }),
    }),
    route({
      method: "PATCH",
      path: pathOfOne,
      summary: "Change a voice agent, from the next call on; config is replaced as a whole",
      guard: personalAccessToken,
      body: VoiceAgentChange,
      reply: { status: 200, body: SavedVoiceAgent },
      errors: ["forbidden", "conflict"],
      paramsFrom: { agent_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { another_name: { body: { name: "Night desk" } } },
      handle: async ({ principal, params, body }) => {
        const { project_id } = await findVoiceAgent(sql, principal, params.agent_id);
        if (body.config !== undefined) await requireConfig(deps, project_id, body.config);
        const agent = await updateVoiceAgent(deps, principal, params.agent_id, body as Partial<NewAgent>);
        if (!agent) throw new ApiError("conflict", { details: { status: "Expected an agent that is not archived" } });
        return saved(agent);
      },
    }),
    route({
      method: "DELETE",
      path: pathOfOne,
      summary: "Archive a voice agent: no further calls; its records stay",
      guard: personalAccessToken,
      reply: { status: 200, body: OneVoiceAgent },
      errors: ["forbidden"],
      paramsFrom: { agent_id: { route: `POST ${path}`, field: "data.id" } },
      examples: { an_agent: {} },
      handle: async ({ principal, params }) => {
        await findVoiceAgent(sql, principal, params.agent_id);
        const [agent] = await sql<VoiceAgent[]>`
          update voice_agent
          set status = 'archived', phone_numbers = '{}',
              deleted_at = coalesce(deleted_at, ${now()}),
              updated_at = case when deleted_at is null then ${now()} else updated_at end,
              updated_by = case when deleted_at is null then ${principal.userId} else updated_by end
          where id = ${params.agent_id} and organization_id = ${principal.organizationId}
          returning ${columns(sql)}`;
        if (!agent) throw new ApiError("not_found");
        return { data: agent };
      },
    }),
  ];
}

const columns = (sql: AnySql) => sql`
  id, name, description, project_id, status, config, allowed_origins, agent_name, deploy_error, deployed_at,
  phone_numbers, created_at, updated_at, deleted_at`;

const lowerCased = (origins: readonly string[]) => origins.map((origin) => origin.toLowerCase());

export interface NewAgent {
  name: string;
  description?: string;
  project_id: string;
  /** Without the values of its headers, which are in `secrets`. */
  config: VoiceAgentConfig;
  secrets?: Buffer | null;
  allowed_origins?: string[];
  /** What `secrets` are sealed under; a new one unless given. */
  id?: string;
}

/**
 * Stores an agent whose configuration has been checked. The lock on the project keeps it from being
 * deleted at the same moment. @throws ApiError not_found when that was faster
 */
export async function insertVoiceAgent(sql: AnySql, caller: Caller, agent: NewAgent, now: Date): Promise<VoiceAgent> {
  const id = agent.id ?? crypto.randomUUID();
  const [row] = await sql<VoiceAgent[]>`
    insert into voice_agent
      (id, organization_id, project_id, name, description, config, header_secrets, allowed_origins, agent_name,
       created_at, created_by, updated_at, updated_by)
    select ${id}, organization_id, id, ${agent.name}, ${agent.description ?? ""}, ${json(sql, agent.config)},
           ${agent.secrets ?? null}, ${lowerCased(agent.allowed_origins ?? [])}::text[], ${`va_${id}`},
           ${now}, ${caller.userId}, ${now}, ${caller.userId}
    from project
    where id = ${agent.project_id} and organization_id = ${caller.organizationId} and deleted_at is null
    for share
    returning ${columns(sql)}`;
  if (!row) throw new ApiError("not_found", { details: { project_id: "Expected a project of your organization" } });
  return row;
}

/** @throws ApiError not_found, or forbidden for a project that the caller does not reach */
async function findVoiceAgent(sql: AnySql, caller: Caller, agentId: string): Promise<VoiceAgent> {
  const [agent] = await sql<VoiceAgent[]>`
    select ${columns(sql)} from voice_agent
    where id = ${agentId} and organization_id = ${caller.organizationId}`;
  if (!agent) throw new ApiError("not_found");
  await requireProjectAccess(sql, caller, agent.project_id);
  return agent;
}

/** Undefined when the agent is archived. A masked value of a header stands for what is stored. */
async function updateVoiceAgent(
  { sql, encryption, now }: VoiceAgentDeps,
  caller: Caller,
  agentId: string,
  change: Partial<NewAgent>,
): Promise<VoiceAgent | undefined> {
  return sql.begin(async (transaction) => {
    const [stored] = await transaction<{ config: VoiceAgentConfig; header_secrets: Buffer | null }[]>`
      select config, header_secrets from voice_agent
      where id = ${agentId} and organization_id = ${caller.organizationId} and deleted_at is null
      for update`;
    if (!stored) return undefined;
    const { config, secrets } = change.config
      ? sealHeaders(encryption, agentId, change.config, stored.header_secrets)
      : { config: stored.config, secrets: stored.header_secrets };
    const origins = change.allowed_origins;
    const newOrigins = origins === undefined ? sql`allowed_origins` : sql`${lowerCased(origins)}::text[]`;
    const [agent] = await transaction<VoiceAgent[]>`
      update voice_agent
      set name = coalesce(${change.name ?? null}, name),
          description = coalesce(${change.description ?? null}, description),
          config = ${json(transaction, config)}, header_secrets = ${secrets}, allowed_origins = ${newOrigins},
          updated_at = ${now()}, updated_by = ${caller.userId}
      where id = ${agentId}
      returning ${columns(transaction)}`;
    return agent;
  });
}
