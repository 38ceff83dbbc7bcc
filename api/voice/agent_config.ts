/**
 * Rules for the configuration of a voice agent that go beyond its schema, and how a call's
 * configuration comes out of the agent's, the reservation's overrides and its variables. Pure.
 */
import type { ErrorDetails } from "#contracts/errors.ts";
import { houseTools } from "#contracts/house_tools.ts";
import {
  builtinToolNames,
  type CallConfig,
  completeConfig,
  modelStages,
  notAvailableIn,
  type VoiceAgentConfig,
  voiceAgentConfig,
} from "#contracts/voice_agent.ts";
import { validatorFor } from "#http/validation.ts";
import { callProviderNames, defaultProviders } from "#providers/catalogue.ts";
import { checkModelSettings } from "#providers/check_settings.ts";
import { ignoredSettings, ignoresInstructions } from "#providers/ignored_settings.ts";
import type { SettingProblem } from "#providers/provider.ts";

/** The schema of a configuration, with the providers of the catalogue. */
export const agentConfigSchema = voiceAgentConfig(callProviderNames);
const validator = validatorFor(agentConfigSchema);

/** Problems of a configuration by field path below `under`, or undefined when it may be saved. */
export function configProblems(config: unknown, under: string): ErrorDetails | undefined {
  const problems = validator.problemsOf(config, under);
  return problems ?? ruleProblems(config as VoiceAgentConfig, under);
}

function ruleProblems(config: VoiceAgentConfig, under: string): ErrorDetails | undefined {
  const problems = new Map<string, string>();
  if (config.mode === "realtime") problems.set(`${under}.mode`, "realtime is not available yet; expected pipeline");
  const idleTimeoutS = config.advanced?.idle_timeout_s;
  if (idleTimeoutS !== undefined && idleTimeoutS > 0 && idleTimeoutS < 5) {
    problems.set(`${under}.advanced.idle_timeout_s`, "Expected 0 (off) or 5 to 3600");
  }
  for (const [path, message] of transferProblems(config)) problems.set(`${under}.${path}`, message);
  for (const [path, message] of toolProblems(config)) problems.set(`${under}.${path}`, message);
  for (const stage of modelStages) {
    const settings = config[stage];
    if (!settings) continue;
    for (const { path, message } of checkModelSettings(stage, settings)) problems.set(`${under}.${path}`, message);
  }
  return problems.size > 0 ? Object.fromEntries(problems) : undefined;
}

/** A destination is chosen by its label; `default` is the `phone_number`'s. */
function* transferProblems({ transfer }: VoiceAgentConfig): Generator<[path: string, message: string]> {
  if (!transfer) return;
  const { enabled, phone_number, destinations = [] } = transfer;
  if (enabled && phone_number === undefined && destinations.length === 0)
    yield ["transfer", "Expected a phone_number or destinations: there is nobody to hand a call on to"];
  const labels = new Set(phone_number === undefined ? [] : ["default"]);
  for (const [at, { label }] of destinations.entries()) {
    if (labels.has(label)) yield [`transfer.destinations.${at}.label`, `Expected each label once, got ${label} again`];
    labels.add(label);
  }
}

/** Names that a call gives to tools of its own. */
const takenNames: readonly string[] = ["end_call", "transfer_call", "list_tasks", "cancel_task", ...builtinToolNames];
/** RFC 9110, section 5.6.2. */
const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** What stands in braces is the model's to say: it may not choose who is sent the tool's headers. */
const hostInBraces = /^https?:\/\/[^/?#]*[{}]/;

/** A tool is told from the others by its name, a header by its key. */
function* toolProblems(config: VoiceAgentConfig): Generator<[path: string, message: string]> {
  const names = new Set(takenNames);
  for (const field of ["tools", "client_tools", "app_tools"] as const) {
    for (const [at, { name }] of (config[field] ?? []).entries()) {
      if (names.has(name)) yield [`${field}.${at}.name`, `Expected a name that no other tool has, got ${name}`];
      names.add(name);
    }
  }
  for (const [at, { url }] of (config.tools ?? []).entries()) {
    if (hostInBraces.test(url)) yield [`tools.${at}.url`, "Expected params in the path or the query, not in the host"];
  }
  const asksForStays = (config.builtin_tools ?? []).some((name) => name in houseTools);
  if (asksForStays && !config.stays) yield ["stays", "Expected the house that the tools of stays are about"];
  const servers = new Set<string>();
  for (const [at, { name }] of (config.mcp_servers ?? []).entries()) {
    if (servers.has(name)) yield [`mcp_servers.${at}.name`, `Expected a name that no other server has, got ${name}`];
    servers.add(name);
  }
  for (const field of ["tools", "mcp_servers"] as const) {
    for (const [at, { headers = [], connection_id }] of (config[field] ?? []).entries()) {
      const keys = new Set<string>();
      for (const [n, { key }] of headers.entries()) {
        const path = `${field}.${at}.headers.${n}.key`;
        if (!headerName.test(key)) yield [path, "Expected the name of an HTTP header"];
        else if (keys.has(key.toLowerCase())) yield [path, `Expected each header once, got ${key} again`];
        else if (connection_id !== undefined && key.toLowerCase() === "authorization")
          yield [path, "Expected no authorization beside a connection, whose secret is sent there"];
        keys.add(key.toLowerCase());
      }
    }
  }
}

/** What a configuration sets in vain, or asks for before it is built, by field path below `under`. */
export function configWarnings(config: VoiceAgentConfig, under: string): SettingProblem[] {
  const missing = notAvailableIn(config).map((path) => ({ path, message: `${path} is not available yet` }));
  return [...ignoredSettings(config), ...missing].map(({ path, message }) => ({ path: `${under}.${path}`, message }));
}

/** What only the agent itself may set: whoever starts a call must not point it at other machines. */
const agentOnlyFields = new Set(["connection_id", "base_url", "headers", "url"]);

/** Problems of a reservation's overrides on an agent's configuration, by field path. */
export function overrideProblems(config: VoiceAgentConfig, overrides: unknown): ErrorDetails | undefined {
  const under = "config_overrides";
  const problems = validator.problemsOf(overrides, under);
  if (problems) return problems;
  const checked = overrides as VoiceAgentConfig;
  return agentOnlyProblems(checked, under) ?? ruleProblems(mergeOverrides(config, checked), under);
}

function agentOnlyProblems(overrides: VoiceAgentConfig, under: string): ErrorDetails | undefined {
  const problems = new Map<string, string>();
  const refuse = (path: string) => problems.set(path, "Expected to be set on the agent, not for one call");
  const open: { value: unknown; path: string }[] = [{ value: overrides, path: under }];
  for (let item = open.pop(); item; item = open.pop()) {
    if (typeof item.value !== "object" || item.value === null) continue;
    for (const [name, value] of Object.entries(item.value)) {
      const path = `${item.path}.${name}`;
      if (agentOnlyFields.has(name)) refuse(path);
      else open.push({ value, path });
    }
  }
  if (overrides.app_tools) refuse(`${under}.app_tools`);
  if (overrides.mcp_servers) refuse(`${under}.mcp_servers`);
  if (overrides.advanced?.background_sound?.startsWith("https:")) refuse(`${under}.advanced.background_sound`);
  for (const [index, { phone_number: number }] of (overrides.transfer?.destinations ?? []).entries()) {
    if (isSipAddress(number)) refuse(`${under}.transfer.destinations.${index}.phone_number`);
  }
  if (isSipAddress(overrides.transfer?.phone_number)) refuse(`${under}.transfer.phone_number`);
  return problems.size > 0 ? Object.fromEntries(problems) : undefined;
}

const isSipAddress = (number: string | undefined) => /^sips?:/.test(number ?? "");

/**
 * `overrides` laid over `config`: a field replaces its field, within `stt`, `llm`, `tts`, `transfer`
 * and `advanced` field by field. Lists and `options` are replaced as wholes. Where the override names
 * another provider, nothing of the old provider's settings stays.
 */
export function mergeOverrides(config: VoiceAgentConfig, overrides: VoiceAgentConfig): VoiceAgentConfig {
  const merged: VoiceAgentConfig = { ...config, ...overrides };
  if (overrides.advanced) merged.advanced = { ...config.advanced, ...overrides.advanced };
  if (overrides.transfer) merged.transfer = { ...config.transfer, ...overrides.transfer };
  for (const stage of modelStages) {
    const over = overrides[stage];
    if (over) merged[stage] = mergeSettings(config[stage], over, defaultProviders[stage]);
  }
  return merged;
}

/** `defaultProvider` is what settings mean that name none, as in `completeConfig`. */
function mergeSettings<S extends { provider?: string }>(base: S | undefined, over: S, defaultProvider: string): S {
  const staysWithProvider = over.provider === undefined || over.provider === (base?.provider ?? defaultProvider);
  return staysWithProvider ? { ...base, ...over } : over;
}

export type Variables = Readonly<Record<string, string | number | boolean>>;

/**
 * `text` with each `{{name}}` filled in; a name without a value becomes empty, because a caller
 * should never hear braces. Values are not filled in again.
 */
export function fillVariables(text: string, variables: Variables): string {
  return text.replace(/\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}/g, (_match, name: string) =>
    Object.hasOwn(variables, name) ? String(variables[name]) : "",
  );
}

/** What a call runs on: the agent's configuration, overrides merged, defaults and variables filled in. `{{agent_name}}` is its `name`, unless given. */
export function callConfigFor(config: VoiceAgentConfig, overrides: VoiceAgentConfig, variables: Variables): CallConfig {
  const merged = mergeOverrides(config, overrides);
  const complete = completeConfig(merged, defaultProviders);
  const name = merged.name?.trim();
  const all = { ...(name && { agent_name: name }), ...variables };
  const ignoresContext = ignoresInstructions(merged);
  const instructions =
    name && !ignoresContext ? `Your name is ${name}.\n${complete.instructions}` : complete.instructions;
  return {
    ...complete,
    ignored_settings: ignoredSettings(merged).map(({ path }) => path),
    ignores_context: ignoresContext,
    instructions: fillVariables(instructions, all).trim(),
    welcome_message: fillVariables(complete.welcome_message, all),
    tools: complete.tools.map((tool) => withVariables(tool, all)),
    mcp_servers: complete.mcp_servers.map((server) => withVariables(server, all)),
  };
}

/** `{{name}}` in the values of headers, filled in. */
function withVariables<T extends { headers?: { key: string; value: string }[] }>(entry: T, variables: Variables): T {
  if (!entry.headers) return entry;
  const filled = entry.headers.map(({ key, value }) => ({ key, value: fillVariables(value, variables) }));
  return { ...entry, headers: filled };
}
