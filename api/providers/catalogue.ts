/** All providers that are built: a new vendor is a folder beside this file and two words here. */
import type { ModelStage } from "#contracts/voice_agent.ts";
import { anthropic } from "./anthropic/provider.ts";
import { cartesia } from "./cartesia/provider.ts";
import { deepgram } from "./deepgram/provider.ts";
import { echo } from "./echo/provider.ts";
import { elevenlabs } from "./elevenlabs/provider.ts";
import { flite } from "./flite/provider.ts";
import { local } from "./local/provider.ts";
import { openai } from "./openai/provider.ts";
import type { Provider } from "./provider.ts";
import { rules } from "./rules/provider.ts";
import { scripted } from "./scripted/provider.ts";

/** In the order in which documents and error messages name them. */
export const catalogue: readonly Provider[] = [
  rules,
  flite,
  echo,
  scripted,
  openai,
  anthropic,
  deepgram,
  elevenlabs,
  cartesia,
  local,
];

/** What settings mean that name no provider. */
export const defaultProviders = { stt: "scripted", llm: "rules", tts: "flite" } as const;

/** What is built in, or runs on the operator's own server: no vendor sends a bill. */
export function billsNobody(name: string): boolean {
  const provider = catalogue.find((known) => known.name === name);
  return provider !== undefined && !provider.secrets;
}

/** Providers of a stage that need no server. */
export function builtInProviders(stage: ModelStage): Provider[] {
  return catalogue.filter((provider) => provider[stage] && !provider.secrets && !provider.ownServer);
}

/** Names that the settings of a call's stage may have. */
export const callProviderNames = { stt: namesOf("stt"), llm: namesOf("llm"), tts: namesOf("tts") } as const;

/** The provider of a stage that `settings` name, or that they mean when they name none. Undefined for one that is not built. */
export function providerOf(stage: ModelStage, { provider }: { provider?: string | undefined }): Provider | undefined {
  const name = provider ?? defaultProviders[stage];
  return catalogue.find((known) => known.name === name && known[stage]);
}

interface AskedModel {
  provider?: string;
  fallbacks?: readonly { provider?: string }[];
}

/** Whether a model of these settings, and each that it falls back on, may be asked for an answer that nobody takes. */
export function asksAhead({ llm = {} }: { llm?: AskedModel | undefined }): boolean {
  return [llm, ...(llm.fallbacks ?? [])].every((one) => providerOf("llm", one)?.llm?.isStateless);
}

/** Kinds of connection that hold a provider's key. */
export const connectionKinds: readonly string[] = [
  ...new Set(catalogue.flatMap(({ secrets }) => secrets?.connection ?? [])),
];

/** The provider of a stage whose key such a connection holds. One of no vendor's is for an endpoint that speaks OpenAI's API. */
export function vendorOf(stage: ModelStage, connectionKind: string): Provider {
  return catalogue.find((provider) => provider[stage] && provider.secrets?.connection === connectionKind) ?? openai;
}

function namesOf(stage: ModelStage): readonly string[] {
  return catalogue.filter((provider) => provider[stage]).map(({ name }) => name);
}
