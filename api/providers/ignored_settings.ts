/** What is set and has no effect on the provider that it is set for: saved, and told wherever it is used. Pure. */
import { modelStages, type VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { providerOf } from "./catalogue.ts";
import type { IgnorableSetting, Provider, SettingProblem } from "./provider.ts";

/** Settings of `config` without effect, by their path, for example `llm.temperature`. */
export function ignoredSettings(config: VoiceAgentConfig): SettingProblem[] {
  const ignored = modelStages.flatMap((stage) => {
    const settings = config[stage] ?? {};
    const provider = providerOf(stage, settings);
    const isSet = (field: IgnorableSetting) =>
      field !== "instructions" &&
      settings[field] !== undefined &&
      // English is what every provider that knows one language speaks.
      !(field === "language" && settings.language?.toLowerCase().startsWith("en"));
    return ignoredBy(provider, stage)
      .filter(isSet)
      .map((field) => withoutEffect(`${stage}.${field}`, provider));
  });
  const llm = providerOf("llm", config.llm ?? {});
  const isInstructed = Boolean(config.instructions?.trim());
  if (isInstructed && ignoresInstructions(config)) ignored.unshift(withoutEffect("instructions", llm));
  return ignored;
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
