/**
 * Opens stages by their settings. The code of a stage is loaded when it is asked for, so that the api
 * never loads what only calls need.
 */
import type { TObject } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { ModelSettings, ModelStage } from "#contracts/voice_agent.ts";
import { builtInProviders } from "./catalogue.ts";
import { checkStage } from "./check_settings.ts";
import type {
  Provider,
  ProviderAccess,
  StageDefinition,
  StageKinds,
  StageLife,
  StageModule,
  VendorStageRequest,
} from "./provider.ts";
import { realWaits, type WaitDeps } from "./waiting.ts";

/** @throws Error for a provider that is not built or settings that do not fit it */
type OpenStage<Stage> = (settings: ModelSettings, waits?: WaitDeps) => Stage;

/** The stages of calls, their code loaded: opening one waits for nothing. */
export type LoadedStages = { [S in ModelStage]: OpenStage<StageKinds[S]> } & Required<StageLife>;

type AnyModule<S extends ModelStage> = StageModule<Readonly<Record<string, unknown>>, StageKinds[S]>;

/** Loads every provider that a call may name: once in each thread that serves calls. */
export async function loadStages(): Promise<LoadedStages> {
  const [stt, llm, tts] = await Promise.all([loadAll("stt"), loadAll("llm"), loadAll("tts")]);
  const lives: StageLife[] = [...stt.values(), ...llm.values(), ...tts.values()];
  return {
    stt: (settings, waits) => openLoaded("stt", stt, settings, waits),
    llm: (settings, waits) => openLoaded("llm", llm, settings, waits),
    tts: (settings, waits) => openLoaded("tts", tts, settings, waits),
    warmUp: async () => void (await Promise.all(lives.map((life) => life.warmUp?.()))),
    shutDown: async () => void (await Promise.all(lives.map((life) => life.shutDown?.()))),
  };
}

/**
 * Opens one stage of a provider, with the access that a vendor's needs.
 * @throws Error when the provider has no such stage or the settings do not fit it
 */
export async function openStage<S extends ModelStage>(
  stage: S,
  provider: Provider,
  settings: ModelSettings,
  { waits = realWaits, access }: { waits?: WaitDeps; access?: ProviderAccess } = {},
): Promise<StageKinds[S]> {
  const module = await load(stage, provider);
  if (provider.secrets && !access) throw new Error(`Cannot open ${stage} provider ${provider.name}: expected access`);
  return module.open(requestFor(stage, provider, settings, waits, access));
}

async function load<S extends ModelStage>(stage: S, provider: Provider): Promise<AnyModule<S>> {
  const definition: StageDefinition<TObject, unknown> | undefined = provider[stage];
  if (!definition) throw new Error(`Cannot open ${stage} provider ${provider.name}: it has no such stage`);
  return (await definition.load()) as AnyModule<S>;
}

type Loaded<S extends ModelStage> = AnyModule<S> & { provider: Provider };

async function loadAll<S extends ModelStage>(stage: S): Promise<ReadonlyMap<string, Loaded<S>>> {
  const providers = builtInProviders(stage);
  const loaded = await Promise.all(providers.map(async (provider) => ({ ...(await load(stage, provider)), provider })));
  return new Map(loaded.map((module) => [module.provider.name, module]));
}

function openLoaded<S extends ModelStage>(
  stage: S,
  loaded: ReadonlyMap<string, Loaded<S>>,
  settings: ModelSettings,
  waits: WaitDeps = realWaits,
): StageKinds[S] {
  const module = loaded.get(settings.provider);
  if (!module) {
    const names = [...loaded.keys()].join(", ");
    throw new Error(`Cannot use ${stage} provider ${settings.provider}: expected one of ${names}`);
  }
  return module.open(requestFor(stage, module.provider, settings, waits, undefined));
}

/** @throws Error naming the first setting that does not fit */
function requestFor(
  stage: ModelStage,
  provider: Provider,
  settings: ModelSettings,
  waits: WaitDeps,
  access: ProviderAccess | undefined,
): VendorStageRequest<Readonly<Record<string, unknown>>> {
  const [problem] = checkStage(stage, provider, settings);
  if (problem) throw new Error(`Cannot use ${stage} provider ${provider.name}: ${problem.path}: ${problem.message}`);
  const options = Value.Default(provider[stage]?.options as TObject, structuredClone(settings.options));
  // Only a provider with secrets reads `access`, and it is not opened without.
  return { settings, options: options as Record<string, unknown>, waits, access: access as ProviderAccess };
}
