/** The providers that are built, by stage and name; the names are those of the enums in `#contracts/voice_agent.ts`. */

import type { ModelStage } from "#contracts/provider_options.ts";
import type { ModelSettings } from "#contracts/voice_agent.ts";
import { checkModelSettings } from "#outbound/models/check_settings.ts";
import { createEchoModel } from "#outbound/models/echo_model.ts";
import { createRulesModel } from "#outbound/models/rules_model.ts";
import { createScriptedModel } from "#outbound/models/scripted_model.ts";
import { createEchoStt, createEchoTts } from "./echo.ts";
import { closeFlite, createFliteTts, warmUpFlite } from "./flite.ts";
import type { LanguageModel, ProviderFactory, SpeechToText, TextToSpeech, WaitDeps } from "./provider.ts";
import { createScriptedStt } from "./scripted_stt.ts";
import { createScriptedTts } from "./scripted_tts.ts";

type Create<Stage> = (settings: ModelSettings, deps?: WaitDeps) => Stage;

function factories<Stage>(
  stage: ModelStage,
  creates: Record<string, Create<Stage>>,
): ReadonlyMap<string, ProviderFactory<Stage>> {
  return new Map(
    Object.entries(creates).map(([name, create]) => [
      name,
      { check: (settings) => checkModelSettings(stage, settings), create },
    ]),
  );
}

export const sttFactories = factories<SpeechToText>("stt", { echo: createEchoStt, scripted: createScriptedStt });
export const llmFactories = factories<LanguageModel>("llm", {
  rules: createRulesModel,
  echo: createEchoModel,
  scripted: createScriptedModel,
});
export const ttsFactories = factories<TextToSpeech>("tts", {
  flite: createFliteTts,
  echo: createEchoTts,
  scripted: createScriptedTts,
});

/** @throws Error for a provider that is not built or options that do not fit it */
export function createStt(settings: ModelSettings, deps?: WaitDeps): SpeechToText {
  return factoryOf("stt", sttFactories, settings).create(settings, deps);
}

/** @throws Error for a provider that is not built or options that do not fit it */
export function createLlm(settings: ModelSettings, deps?: WaitDeps): LanguageModel {
  return factoryOf("llm", llmFactories, settings).create(settings, deps);
}

/** @throws Error for a provider that is not built or options that do not fit it */
export function createTts(settings: ModelSettings, deps?: WaitDeps): TextToSpeech {
  return factoryOf("tts", ttsFactories, settings).create(settings, deps);
}

function factoryOf<Stage>(
  stage: ModelStage,
  built: ReadonlyMap<string, ProviderFactory<Stage>>,
  settings: ModelSettings,
): ProviderFactory<Stage> {
  const factory = built.get(settings.provider);
  if (!factory)
    throw new Error(
      `Cannot use ${stage} provider ${settings.provider}: expected one of ${[...built.keys()].join(", ")}`,
    );
  return factory;
}

/** Loads what the first call would otherwise wait for. Call once in each thread that serves calls. */
export function warmUp(): Promise<void> {
  return warmUpFlite();
}

/** Stops the threads that the providers of this thread run. */
export function closeProviders(): Promise<void> {
  return closeFlite();
}
