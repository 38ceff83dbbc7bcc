/**
 * Opens stages by their settings. The code of a stage is loaded when it is asked for, so that the api
 * never loads what only calls need, and a thread no vendor that its calls do not name.
 */
import type { TObject } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Credentials } from "#contracts/internal_calls.ts";
import { type ModelSettings, type ModelStage, modelStages } from "#contracts/voice_agent.ts";
import type { GuardedHttp } from "#outbound/guarded_http.ts";
import { VendorBreakers } from "./breaker.ts";
import { builtInProviders, callProviderNames, providerOf } from "./catalogue.ts";
import { checkStage } from "./check_settings.ts";
import { type Biller, metered, type StageUse } from "./metered_stage.ts";
import type {
  OwnServers,
  Provider,
  ProviderAccess,
  StageDefinition,
  StageKinds,
  StageLife,
  StageModule,
  VendorStageRequest,
} from "./provider.ts";
import {
  type ChainDeps,
  type ChainNews,
  chainOfModels,
  chainOfRecognizers,
  chainOfVoices,
  type Link,
} from "./stage_chain.ts";
import { realWaits, type WaitDeps } from "./waiting.ts";

/** What a stage of a call is opened with, beside its settings. */
export interface StageDeps {
  waits?: WaitDeps;
  /** The opened connections of the call. */
  credentials?: Credentials;
  nowMs?: () => number;
  /** Hears who was asked again, who took over, who answers again. */
  tell?: (news: ChainNews) => void;
  /** Hears what a stage used, whichever of its chain it was. */
  used?: (use: StageUse) => void;
}

/** @throws Error for a provider that is not built or not loaded, settings that do not fit it, or a connection that is not there */
type OpenStage<Stage> = (settings: ModelSettings, deps?: StageDeps) => Stage;

/** The stages of calls: once loaded, opening one waits for nothing. */
export type CallStages = { [S in ModelStage]: OpenStage<StageKinds[S]> } & Required<StageLife> & {
    /** Loads the vendors of a call's stages. Undefined when they are there. */
    load(config: StageSettings): Promise<void> | undefined;
    /** Stages of a call that have no way to their vendor; empty when the call can begin. */
    unreachable(config: StageSettings, credentials?: Credentials): UnreachableStage[];
  };

/** A stage whose connection was deleted or is another vendor's, or whose server the operator has not set. */
export interface UnreachableStage {
  stage: ModelStage;
  /** The setting at fault, for example `llm.connection_id`. */
  path: string;
  message: string;
  /** The call can begin without it. */
  isFallback: boolean;
}

/** The settings of a call's stages; `stt` may be missing. */
export type StageSettings = { readonly [S in ModelStage]?: ModelSettings };

/** What the stages of a process may reach. */
export interface StageWorld {
  /** Development only: vendors of connections may have private addresses. */
  allowPrivateAddresses?: boolean;
  ownServers?: OwnServers;
}

type AnyModule<S extends ModelStage> = StageModule<Readonly<Record<string, unknown>>, StageKinds[S]>;

/** Loads the built-in providers: once in each thread that serves calls. */
export async function loadStages({
  allowPrivateAddresses = false,
  ownServers = {},
}: StageWorld = {}): Promise<CallStages> {
  const modules = new Map<string, AnyModule<ModelStage>>();
  let clients: { guarded: GuardedHttp; own: GuardedHttp } | undefined;
  const loadOne = async (stage: ModelStage, provider: Provider) => {
    modules.set(keyOf(stage, provider), await load(stage, provider));
  };
  const loadVendors = async (missing: readonly [ModelStage, Provider][]) => {
    const { createGuardedHttp } = await import("#outbound/guarded_http.ts");
    // Models and voices think longer than an ordinary host: the stages have their own limits.
    const timeouts = { headersTimeoutMs: 0, bodyTimeoutMs: 0 };
    clients ??= {
      guarded: createGuardedHttp({ allowPrivateAddresses, ...timeouts }),
      own: createGuardedHttp({ allowPrivateAddresses: true, ...timeouts }),
    };
    await Promise.all(missing.map(([stage, provider]) => loadOne(stage, provider)));
  };
  /** Undefined where the call has no way to the vendor. */
  const openOne = <S extends ModelStage>(stage: S, settings: ModelSettings, deps: StageDeps) => {
    const provider = providerOf(stage, settings);
    const names = callProviderNames[stage].join(", ");
    if (!provider) throw new Error(`Cannot use ${stage} provider ${settings.provider}: expected one of ${names}`);
    const way = wayTo(stage, provider, settings, ownServers, deps.credentials);
    if (way === "none") return undefined;
    const module = modules.get(keyOf(stage, provider)) as AnyModule<S> | undefined;
    if (!module) throw new Error(`Cannot use ${stage} provider ${provider.name}: it is not loaded`);
    const http = provider.ownServer ? clients?.own : clients?.guarded;
    const access = way && http && { ...way, http };
    const opened = module.open(requestFor(stage, provider, settings, deps.waits ?? realWaits, access));
    const biller = billerOf(stage, provider, settings, access);
    return deps.used ? metered(opened, biller, deps.used, deps.nowMs) : opened;
  };
  const breakers = new VendorBreakers();
  const open = <S extends ModelStage>(stage: S, settings: ModelSettings, deps: StageDeps = {}): StageKinds[S] => {
    const first = openOne(stage, settings, deps);
    if (!first) throw new Error(`Cannot open ${stage} provider ${settings.provider}: expected its connection`);
    const { fallbacks = [] } = settings;
    // What is built in and stands alone has no vendor to be asked again.
    if (fallbacks.length === 0 && !isVendor(providerOf(stage, settings))) return first;
    const others = fallbacks.flatMap((fallback) => {
      const opened = openOne(stage, fallback, deps);
      return opened ? [linkOf(stage, fallback, opened)] : [];
    });
    const { waits = realWaits, nowMs = () => performance.now(), tell = () => {} } = deps;
    return chains[stage]([linkOf(stage, settings, first), ...others], { waits, nowMs, tell, breakers });
  };
  await Promise.all(
    modelStages.flatMap((stage) => builtInProviders(stage).map((provider) => loadOne(stage, provider))),
  );
  return {
    stt: (settings, deps) => open("stt", settings, deps),
    llm: (settings, deps) => open("llm", settings, deps),
    tts: (settings, deps) => open("tts", settings, deps),
    load(config) {
      const missing = providersOf(config)
        .filter(({ stage, provider }) => !modules.has(keyOf(stage, provider)))
        .map(({ stage, provider }): [ModelStage, Provider] => [stage, provider]);
      return missing.length > 0 ? loadVendors(missing) : undefined;
    },
    unreachable: (config, credentials) =>
      providersOf(config)
        .filter(({ stage, provider, settings }) => wayTo(stage, provider, settings, ownServers, credentials) === "none")
        .map(({ stage, provider, path, isFallback }) => ({ ...unreachableStage(stage, path, provider), isFallback })),
    warmUp: async () => void (await Promise.all([...modules.values()].map((module) => module.warmUp?.()))),
    shutDown: async () => {
      await Promise.all([...modules.values()].map((module) => module.shutDown?.()));
      await clients?.guarded.close();
      await clients?.own.close();
    },
  };
}

interface NamedProvider {
  stage: ModelStage;
  provider: Provider;
  settings: ModelSettings;
  /** `llm`, `llm.fallbacks.0` */
  path: string;
  isFallback: boolean;
}

function providersOf(config: StageSettings): NamedProvider[] {
  return modelStages.flatMap((stage) => {
    const first = config[stage];
    const all = first ? [first, ...(first.fallbacks ?? [])] : [];
    return all.flatMap((settings, index): NamedProvider[] => {
      const provider = providerOf(stage, settings);
      const isFallback = index > 0;
      const path = isFallback ? `${stage}.fallbacks.${index - 1}` : stage;
      return provider ? [{ stage, provider, settings, path, isFallback }] : [];
    });
  });
}

const isVendor = (provider: Provider | undefined) => Boolean(provider?.secrets || provider?.ownServer);

/** How long the others behind it are kept waiting by one that gives no sign, unless it is known to be slow. */
const handOverMs: { [S in ModelStage]: number } = { stt: 2500, llm: 2500, tts: 1500 };

/**
 * How long who may fall back on others is waited for before the next one is asked; the last one has the
 * limit of the call. `first_byte_timeout_ms` is how slow a server may be that somebody runs himself.
 */
export function firstSignMsOf(stage: ModelStage, { options }: Pick<ModelSettings, "options">): number {
  const given = options.first_byte_timeout_ms;
  return typeof given === "number" ? given : handOverMs[stage];
}

const chains: { [S in ModelStage]: (links: readonly Link<StageKinds[S]>[], deps: ChainDeps) => StageKinds[S] } = {
  stt: chainOfRecognizers,
  llm: chainOfModels,
  tts: chainOfVoices,
};

function linkOf<Stage>(stage: ModelStage, settings: ModelSettings, opened: Stage): Link<Stage> {
  const { provider, connection_id } = settings;
  const key = `${stage}/${provider}/${connection_id ?? ""}`;
  return { provider, key, stage: opened, firstSignMs: firstSignMsOf(stage, settings) };
}

function unreachableStage(stage: ModelStage, path: string, { ownServer, secrets }: Provider) {
  const variable = `${stage.toUpperCase()}_LOCAL_URL`;
  return ownServer
    ? { stage, path: `${path}.provider`, message: `Expected ${variable} in the environment: the server is not set` }
    : {
        stage,
        path: `${path}.connection_id`,
        message: `Expected a connection of the agent's project with provider ${secrets?.connection}: it is gone`,
      };
}

/** Whose bill a stage with these settings is on. @param access of a vendor */
export function billerOf<S extends ModelStage>(
  stage: S,
  provider: Provider,
  settings: ModelSettings,
  access: ProviderAccess | undefined,
): Biller & { stage: S } {
  const model = settings.model ?? access?.defaults?.model ?? provider[stage]?.defaultModel;
  const baseUrl = access?.baseUrl === provider.secrets?.baseUrl ? undefined : access?.baseUrl;
  return {
    stage,
    provider: provider.name,
    ...(model !== undefined && { model }),
    ...(baseUrl !== undefined && { baseUrl }),
  };
}

const keyOf = (stage: ModelStage, { name }: Provider) => `${stage}/${name}`;

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
  if ((provider.secrets || provider.ownServer) && !access)
    throw new Error(`Cannot open ${stage} provider ${provider.name}: expected access`);
  return module.open(requestFor(stage, provider, settings, waits, access));
}

async function load<S extends ModelStage>(stage: S, provider: Provider): Promise<AnyModule<S>> {
  const definition: StageDefinition<TObject, unknown> | undefined = provider[stage];
  if (!definition) throw new Error(`Cannot open ${stage} provider ${provider.name}: it has no such stage`);
  return (await definition.load()) as AnyModule<S>;
}

/** How a stage reaches its vendor: undefined for a built-in provider, `none` where the call has no way. */
function wayTo(
  stage: ModelStage,
  { secrets, ownServer }: Provider,
  settings: ModelSettings,
  ownServers: OwnServers,
  credentials: Credentials = {},
): Omit<ProviderAccess, "http"> | "none" | undefined {
  if (ownServer) {
    const server = ownServers[stage];
    if (!server) return "none";
    const { url: baseUrl, key = "none", model, voice } = server;
    return { secret: key, baseUrl, defaults: { ...(model && { model }), ...(voice && { voice }) } };
  }
  if (!secrets) return undefined;
  const credential = settings.connection_id === undefined ? undefined : credentials[settings.connection_id];
  if (credential?.provider !== secrets.connection) return "none";
  const baseUrl = settings.base_url ?? credential.base_url;
  return { secret: credential.secret, ...(baseUrl !== undefined && { baseUrl }) };
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
  // Only a vendor reads `access`, and it is not opened without.
  return { settings, options: options as Record<string, unknown>, waits, access: access as ProviderAccess };
}
