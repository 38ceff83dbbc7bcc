/** What is set and has no effect on the provider that it is set for: saved, and told wherever it is used. Pure. */
import { type ModelStage, modelStages, type VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { asksAhead, providerOf } from "./catalogue.ts";
import type { IgnorableSetting, Provider, SettingProblem } from "./provider.ts";

type Settings = Omit<NonNullable<VoiceAgentConfig[ModelStage]>, "fallbacks">;

/** Settings of `config` without effect, by their path, for example `llm.temperature`. */
export function ignoredSettings(config: VoiceAgentConfig): SettingProblem[] {
  const ignored = modelStages.flatMap((stage) => {
    const { fallbacks = [], ...first } = config[stage] ?? {};
    const ofFallbacks = fallbacks.flatMap((settings, at) => ignoredIn(stage, settings, `${stage}.fallbacks.${at}`));
    return [...ignoredIn(stage, first, stage), ...ofFallbacks];
  });
  const llm = providerOf("llm", config.llm ?? {});
  if (ignoresInstructions(config)) {
    const isNameSaid = config.welcome_message?.includes("agent_name");
    if (config.name?.trim() && !isNameSaid) ignored.unshift(withoutEffect("name", llm));
    if (config.instructions?.trim()) ignored.unshift(withoutEffect("instructions", llm));
  }
  if (config.realtime && Object.keys(config.realtime).length > 0)
    ignored.push({ path: "realtime", message: "realtime has no effect in mode pipeline" });
  if (config.advanced?.preemptive_tts && !asksAhead(config))
    ignored.push(withoutEffect("advanced.preemptive_tts", llm));
  return ignored;
}

/** `path`: where `settings` stand. */
function ignoredIn(stage: ModelStage, settings: Settings, path: string): SettingProblem[] {
  const provider = providerOf(stage, settings);
  const isSet = (field: IgnorableSetting) =>
    field !== "instructions" &&
    settings[field] !== undefined &&
    // English is what every provider that knows one language speaks.
    !(field === "language" && settings.language?.toLowerCase().startsWith("en"));
  return ignoredBy(provider, stage)
    .filter(isSet)
    .map((field) => withoutEffect(`${path}.${field}`, provider));
}

/** Whether the agent's model acts on neither `instructions` nor what a `context_update` adds. */
export function ignoresInstructions(config: Pick<VoiceAgentConfig, "llm">): boolean {
  return ignoredBy(providerOf("llm", config.llm ?? {}), "llm").includes("instructions");
}

const ignoredBy = (provider: Provider | undefined, stage: "stt" | "llm" | "tts") => provider?.[stage]?.ignores ?? [];

const withoutEffect = (path: string, provider: Provider | undefined): SettingProblem => ({
  path,
  message: `${path.split(".").at(-1)} has no effect on provider ${provider?.name}`,
});
