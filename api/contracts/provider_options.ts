/**
 * Options of the built-in providers: one closed schema each, with bounds and defaults. The api
 * checks them when an agent is saved, a provider reads them when a call begins.
 */
import { type Static, type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { fliteVoices } from "./voice_agent.ts";

export type ModelStage = "stt" | "llm" | "tts";

/** A wrong setting, by its path below `config`, for example `llm.options.rules.0.patterns`. */
export interface SettingProblem {
  path: string;
  message: string;
}

/** Patterns of one agent, over all rules and slots: what a turn may cost stays bounded. */
export const rulePatternsMax = 500;

const options = <P extends TProperties>(properties: P) => Type.Object(properties, { additionalProperties: false });
const text = (maxLength: number, minLength = 0) => Type.String({ minLength, maxLength });
const slotName = Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$", maxLength: 64 });
const toolName = Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_-]*$", maxLength: 64 });
const pattern = text(500, 1);
const turns = (does: string) =>
  Type.Array(Type.Integer({ minimum: 1, maximum: 1_000_000 }), {
    maxItems: 100,
    default: [],
    description: `Turns, the first one is 1, on which the provider ${does}`,
  });

const faults = { fail_on: turns("fails"), hang_on: turns("never answers") };
const delay_ms = Type.Integer({ minimum: 0, maximum: 60_000, default: 0 });

export const EchoOptions = options({ delay_ms, ...faults });
export type EchoOptions = Static<typeof EchoOptions>;

export const ScriptedSttOptions = options({
  transcripts: Type.Array(text(4000), { maxItems: 1000, default: [] }),
  delay_ms,
  partials: Type.Boolean({ default: true }),
  ...faults,
});
export type ScriptedSttOptions = Static<typeof ScriptedSttOptions>;

const ScriptedToolCall = options({
  turn: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  name: toolName,
  arguments: Type.Optional(Type.Record(Type.String({ maxLength: 100 }), Type.Unknown(), { maxProperties: 100 })),
});

export const ScriptedLlmOptions = options({
  replies: Type.Array(text(20_000), { maxItems: 1000, default: [] }),
  delay_ms,
  tokens_per_s: Type.Number({ minimum: 0, maximum: 10_000, default: 0 }),
  tool_calls: Type.Array(ScriptedToolCall, { maxItems: 100, default: [] }),
  ...faults,
});
export type ScriptedLlmOptions = Static<typeof ScriptedLlmOptions>;

export const ScriptedTtsOptions = options({
  ms_per_char: Type.Number({ minimum: 0, maximum: 1000, default: 50 }),
  delay_ms,
  tone_hz: Type.Integer({ minimum: 20, maximum: 7000, default: 440 }),
  ...faults,
});
export type ScriptedTtsOptions = Static<typeof ScriptedTtsOptions>;

const Slot = options({ name: slotName, prompt: text(1000, 1), pattern: Type.Optional(pattern) });
export type Slot = Static<typeof Slot>;

const Rule = options({
  intent: text(64, 1),
  patterns: Type.Array(pattern, { minItems: 1, maxItems: 50 }),
  say: text(4000),
  tool: Type.Optional(toolName),
  slots: Type.Optional(Type.Array(Slot, { maxItems: 20 })),
});
export type Rule = Static<typeof Rule>;

export const RulesOptions = options({
  rules: Type.Array(Rule, { maxItems: 200, default: [] }),
  fallback: Type.String({ maxLength: 4000, default: "I'm sorry, I don't have an answer to that yet." }),
  /** The pace of an answer's words; 0: all at once. */
  tokens_per_s: Type.Number({ minimum: 0, maximum: 10_000, default: 0 }),
  ...faults,
});
export type RulesOptions = Static<typeof RulesOptions>;

export const FliteOptions = options({ ...faults });
export type FliteOptions = Static<typeof FliteOptions>;

/** The options of each provider, by stage and name. The first name of a stage is its default. */
export const providerOptions = {
  stt: { scripted: ScriptedSttOptions, echo: EchoOptions },
  llm: { rules: RulesOptions, scripted: ScriptedLlmOptions, echo: EchoOptions },
  tts: { flite: FliteOptions, scripted: ScriptedTtsOptions, echo: EchoOptions },
} as const;

const defaultProvider = { stt: "scripted", llm: "rules", tts: "flite" } as const;

/** What is checked of model settings, as a customer writes them. */
export interface CheckedSettings {
  provider?: string | undefined;
  voice?: string | undefined;
  model?: string | undefined;
  connection_id?: string | undefined;
  base_url?: string | undefined;
  options?: Readonly<Record<string, unknown>> | undefined;
}

/** Every property may be left out; what is given must fit. Nested objects keep what they require. */
function allOptional(schema: TObject): TSchema {
  return Type.Partial(schema, { additionalProperties: false });
}

const checks = new Map<TObject, TSchema>(
  Object.values(providerOptions)
    .flatMap((byName) => Object.values(byName) as TObject[])
    .map((schema) => [schema, allOptional(schema)]),
);

const problemsMax = 20;

/** Problems of a stage's `options` and `voice`, each by its path below `config`; empty when all is well. Pure. */
export function checkProviderOptions(stage: ModelStage, settings: CheckedSettings): SettingProblem[] {
  const provider = settings.provider ?? defaultProvider[stage];
  const byName: Readonly<Record<string, TObject>> = providerOptions[stage];
  const schema = Object.hasOwn(byName, provider) ? byName[provider] : undefined;
  if (!schema) {
    return [{ path: `${stage}.provider`, message: `Expected one of ${Object.keys(byName).join(", ")}` }];
  }
  const problems: SettingProblem[] = [];
  for (const field of ["connection_id", "base_url"] as const) {
    if (settings[field] !== undefined) {
      problems.push({ path: `${stage}.${field}`, message: `${field} is not used by provider ${provider}` });
    }
  }
  if (
    provider === "flite" &&
    settings.voice !== undefined &&
    !(fliteVoices as readonly string[]).includes(settings.voice)
  ) {
    problems.push({ path: `${stage}.voice`, message: `Expected one of ${fliteVoices.join(", ")}` });
  }
  for (const error of Value.Errors(checks.get(schema) as TSchema, settings.options ?? {})) {
    const path = `${stage}.options${error.path.replaceAll("/", ".")}`;
    if (problems.some((problem) => problem.path === path)) continue;
    problems.push({ path, message: error.message });
    if (problems.length >= problemsMax) return problems;
  }
  if (problems.length === 0 && schema === RulesOptions) problems.push(...checkRules(settings.options ?? {}));
  return problems;
}

function checkRules(given: Readonly<Record<string, unknown>>): SettingProblem[] {
  const rules = (given.rules ?? []) as Rule[];
  const patterns = rules.reduce(
    (sum, rule) => sum + rule.patterns.length + (rule.slots ?? []).filter((slot) => slot.pattern !== undefined).length,
    0,
  );
  if (patterns > rulePatternsMax) {
    return [
      { path: "llm.options.rules", message: `Expected at most ${rulePatternsMax} patterns in all, got ${patterns}` },
    ];
  }
  return rules.flatMap((rule, i) => {
    const names = (rule.slots ?? []).map((slot) => slot.name);
    const twice = names.findIndex((name, at) => names.indexOf(name) !== at);
    return twice < 0
      ? []
      : [{ path: `llm.options.rules.${i}.slots.${twice}.name`, message: `Slot ${names[twice]} is there twice` }];
  });
}

/**
 * Options with every default filled in.
 * @throws Error when they do not fit the schema, naming the first problem's path
 */
export function completeOptions<S extends TObject>(schema: S, given: Readonly<Record<string, unknown>>): Static<S> {
  const complete = Value.Default(schema, structuredClone(given));
  const problem = Value.Errors(schema, complete).First();
  if (problem) throw new Error(`Cannot use provider options: ${problem.path || "/"}: ${problem.message}`);
  return complete as Static<S>;
}
