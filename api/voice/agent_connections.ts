/**
 * Connections of an agent's stages and tools: which a configuration names, whether its project has them, and what
 * they open to. Both are asked twice: when a configuration is saved, and when a call begins.
 */
import { type OpenedConnection, openConnections } from "#connections/connections.ts";
import { ApiError, type ErrorDetails } from "#contracts/errors.ts";
import type { Credentials } from "#contracts/internal_calls.ts";
import {
  type CallAppTool,
  type CallConfig,
  type ModelStage,
  modelStages,
  type VoiceAgentConfig,
} from "#contracts/voice_agent.ts";
import { AddressRefusedError, parsePublicUrl } from "#outbound/address_guard.ts";
import { providerOf } from "#providers/catalogue.ts";
import type { Encryption } from "#store/encryption.ts";
import type { AnySql } from "#store/sql.ts";
import { configProblems } from "./agent_config.ts";
import type { AppInputs } from "./app_inputs.ts";

export interface AgentCheckDeps {
  sql: AnySql;
  /** Development only: users' addresses may be private. */
  allowPrivateAddresses: boolean;
  appInputs: AppInputs;
}

/** @throws ApiError bad_request by field path below `config`, for what the project's agent must not be saved with */
export async function requireConfig(
  { sql, allowPrivateAddresses, appInputs }: AgentCheckDeps,
  projectId: string,
  value: unknown,
): Promise<VoiceAgentConfig> {
  const under = "config";
  const problems = configProblems(value, under);
  if (problems) throw new ApiError("bad_request", { details: problems });
  const config = value as VoiceAgentConfig;
  const details: ErrorDetails = {
    ...addressProblems(config, under, allowPrivateAddresses),
    ...(await connectionProblems(sql, projectId, config, under)),
    ...(await appProblems(appInputs, projectId, config, under)),
  };
  if (Object.keys(details).length > 0) throw new ApiError("bad_request", { details });
  return config;
}

/** Tools that may name a connection. */
const callingOut = ["tools", "mcp_servers"] as const;

interface NamedSettings {
  stage: ModelStage;
  /** `llm`, `llm.fallbacks.0` */
  path: string;
  settings: { provider?: string; connection_id?: string; base_url?: string };
}

/** The settings of each stage, and of those that it falls back on. */
function settingsIn(config: VoiceAgentConfig | CallConfig): NamedSettings[] {
  return modelStages.flatMap((stage) => {
    const settings = config[stage];
    if (!settings) return [];
    const fallbacks = (settings.fallbacks ?? []).map((fallback, at) => ({
      stage,
      path: `${stage}.fallbacks.${at}`,
      settings: fallback,
    }));
    return [{ stage, path: stage, settings }, ...fallbacks];
  });
}

/** What can be told of the addresses that a configuration has without asking a resolver; each is checked again when it is dialled. */
function addressProblems(config: VoiceAgentConfig, under: string, allowPrivateAddresses: boolean): ErrorDetails {
  const given: [path: string, url: string | undefined][] = [
    ...settingsIn(config).map(({ path, settings }): [string, string | undefined] => [
      `${path}.base_url`,
      settings.base_url,
    ]),
    ...(config.mcp_servers ?? []).map(({ url }, at): [string, string] => [`mcp_servers.${at}.url`, url]),
    // What stands in braces is the model's to say, and is no part of the host.
    ...(config.tools ?? []).map(({ url }, at): [string, string] => [`tools.${at}.url`, url.replace(/\{[^}]*\}/g, "x")]),
  ];
  const problems = given.flatMap(([path, url]) => {
    if (url === undefined) return [];
    try {
      parsePublicUrl(url, { protocols: ["https:", "http:"], allowPrivateAddresses });
      return [];
    } catch (error) {
      if (!(error instanceof AddressRefusedError)) throw error;
      return [[`${under}.${path}`, error.message]];
    }
  });
  return Object.fromEntries(problems);
}

async function connectionProblems(
  sql: AnySql,
  projectId: string,
  config: VoiceAgentConfig,
  under: string,
): Promise<ErrorDetails> {
  const ofStages = settingsIn(config).flatMap(({ stage, path, settings }) => {
    const id = settings.connection_id;
    const kind = providerOf(stage, settings)?.secrets?.connection;
    return id === undefined || kind === undefined ? [] : [{ place: path, id, kind }];
  });
  // Any secret may be a server's bearer token.
  const ofTools = callingOut.flatMap((field) =>
    (config[field] ?? []).flatMap(({ connection_id: id }, at) =>
      id === undefined ? [] : [{ place: `${field}.${at}`, id, kind: undefined }],
    ),
  );
  const named = [...ofStages, ...ofTools];
  if (named.length === 0) return {};
  const rows = await sql<{ id: string; provider: string }[]>`
    select id, provider from connection
    where project_id = ${projectId} and id = any (${named.map(({ id }) => id)}::uuid[])`;
  const kindOf = new Map(rows.map(({ id, provider }) => [id, provider]));
  const wrong = named.filter(({ id, kind }) => {
    const found = kindOf.get(id.toLowerCase());
    return found === undefined || (kind !== undefined && found !== kind);
  });
  return Object.fromEntries(
    wrong.map(({ place, kind }) => [
      `${under}.${place}.connection_id`,
      `Expected a connection of the agent's project${kind === undefined ? "" : ` with provider ${kind}`}`,
    ]),
  );
}

async function appProblems(
  appInputs: AppInputs,
  projectId: string,
  { app_tools = [] }: VoiceAgentConfig,
  under: string,
): Promise<ErrorDetails> {
  const ids = app_tools.map(({ app_id }) => app_id);
  const found = await appInputs(projectId, ids);
  const wrong = ids.flatMap((id, at) => (found.has(id) ? [] : [at]));
  return Object.fromEntries(
    wrong.map((at) => [`${under}.app_tools.${at}.app_id`, "Expected an app of the agent's project"]),
  );
}

/** The tools that are apps, each with what it takes; one that the project no longer has is left out, and told of. */
export async function withAppInputs(appInputs: AppInputs, projectId: string, config: CallConfig): Promise<CallConfig> {
  const inputs = await appInputs(
    projectId,
    config.app_tools.map(({ app_id }) => app_id),
  );
  const gone = config.app_tools.flatMap(({ app_id }, at) => (inputs.has(app_id) ? [] : [`app_tools.${at}`]));
  const app_tools = config.app_tools.flatMap((tool): CallAppTool[] => {
    const parameters = inputs.get(tool.app_id);
    return parameters ? [{ ...tool, parameters }] : [];
  });
  return { ...config, app_tools, not_available: [...config.not_available, ...gone] };
}

/** The connections that a call's stages and tools name, opened. One that the project no longer has is not among them. */
export async function openCredentials(
  deps: { sql: AnySql; encryption: Encryption },
  projectId: string,
  config: CallConfig,
): Promise<Credentials> {
  const ofStages = settingsIn(config).flatMap(({ settings }) => settings.connection_id ?? []);
  const ofTools = callingOut.flatMap((field) => config[field].flatMap(({ connection_id }) => connection_id ?? []));
  const ids = [...ofStages, ...ofTools];
  if (ids.length === 0) return {};
  const opened = await openConnections(deps, projectId, ids);
  return Object.fromEntries([...opened].map(([id, connection]) => [id, credentialOf(connection)]));
}

function credentialOf({ provider, baseUrl, secret }: OpenedConnection): Credentials[string] {
  return { provider, secret, ...(baseUrl !== undefined && { base_url: baseUrl }) };
}
