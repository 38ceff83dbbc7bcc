/** Checks the settings of a stage as far as they can be checked without a call: the provider's schema first, its own rules after. */
import { type TObject, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { ModelStage } from "#contracts/voice_agent.ts";
import { callProviderNames, providerOf } from "./catalogue.ts";
import type { Provider, SettingProblem } from "./provider.ts";

/** What is checked of model settings, as a customer writes them. */
export interface CheckedSettings {
  provider?: string | undefined;
  voice?: string | undefined;
  model?: string | undefined;
  connection_id?: string | undefined;
  base_url?: string | undefined;
  temperature?: number | undefined;
  options?: Readonly<Record<string, unknown>> | undefined;
  fallbacks?: readonly CheckedSettings[] | undefined;
}

const problemsMax = 20;

/**
 * Problems of the settings of a call's stage by their path below `config`, for example
 * `llm.options.rules.0.patterns.1`; empty when all is well. Pure.
 */
export function checkModelSettings(stage: ModelStage, settings: CheckedSettings): SettingProblem[] {
  const provider = providerOf(stage, settings);
  // There is a model and a voice for who names none, and nothing that could hear.
  if (!provider || (stage === "stt" && settings.provider === undefined)) {
    return [{ path: `${stage}.provider`, message: `Expected one of ${callProviderNames[stage].join(", ")}` }];
  }
  const problems = accessProblems(stage, provider, settings);
  if (provider[stage]?.needsModel && !settings.model?.trim()) {
    problems.push({ path: `${stage}.model`, message: `Expected the name of a model of ${provider.name}` });
  }
  if (provider[stage]?.needsVoice && !settings.voice?.trim()) {
    problems.push({ path: `${stage}.voice`, message: `Expected the id of a voice of ${provider.name}` });
  }
  const ofFallbacks = (settings.fallbacks ?? []).flatMap((fallback, index) =>
    checkModelSettings(stage, fallback).map(({ path, message }) => ({
      path: path.replace(stage, `${stage}.fallbacks.${index}`),
      message,
    })),
  );
  return [...problems, ...checkStage(stage, provider, settings, problems.length === 0), ...ofFallbacks].slice(
    0,
    problemsMax,
  );
}

/** A vendor's stage needs a connection, and a built-in one uses none. Whether there is such a connection is not told here. */
function accessProblems(stage: ModelStage, { name, secrets }: Provider, settings: CheckedSettings): SettingProblem[] {
  if (secrets) {
    const message = `Expected a connection with provider ${secrets.connection}: it holds the key`;
    return settings.connection_id === undefined ? [{ path: `${stage}.connection_id`, message }] : [];
  }
  return (["connection_id", "base_url"] as const)
    .filter((field) => settings[field] !== undefined)
    .map((field) => ({ path: `${stage}.${field}`, message: `${field} is not used by provider ${name}` }));
}

/** The same of a provider that is known: its voices and options. `deep`: the provider's own rules too. Pure. */
export function checkStage(
  stage: ModelStage,
  provider: Provider,
  { voice, temperature, options = {} }: Pick<CheckedSettings, "voice" | "temperature" | "options">,
  deep = true,
): SettingProblem[] {
  const definition = provider[stage];
  if (!definition) return [];
  const problems: SettingProblem[] = [];
  if (definition.voices && voice !== undefined && !definition.voices.includes(voice)) {
    problems.push({ path: `${stage}.voice`, message: `Expected one of ${definition.voices.join(", ")}` });
  }
  if (definition.takesNoTemperature && temperature !== undefined) {
    problems.push({ path: `${stage}.temperature`, message: `Models of ${provider.name} take no temperature` });
  }
  for (const error of Value.Errors(allOptional(definition.options), options)) {
    const path = `${stage}.options${error.path.replaceAll("/", ".")}`;
    if (problems.some((problem) => problem.path === path)) continue;
    problems.push({ path, message: error.message });
    if (problems.length >= problemsMax) return problems;
  }
  if (problems.length > 0 || !deep) return problems;
  return (definition.check?.(options) ?? []).map((problem) => ({
    path: `${stage}.options.${problem.path}`,
    message: problem.message,
  }));
}

const optionalOnes = new WeakMap<TObject, TSchema>();

/** Every property may be left out; what is given must fit. Nested objects keep what they require. */
function allOptional(schema: TObject): TSchema {
  let optional = optionalOnes.get(schema);
  if (!optional) {
    optional = Type.Partial(schema, { additionalProperties: false });
    optionalOnes.set(schema, optional);
  }
  return optional;
}
