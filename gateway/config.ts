/** The gateway's environment: the only file of this room that reads it. */
import { randomBytes } from "node:crypto";
import { availableParallelism, hostname } from "node:os";
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { parseTrustedProxies, type TrustedProxies, trustedProxiesProblems } from "#contracts/client_address.ts";
import { oneOf } from "#contracts/one_of.ts";
import type { WorkerPoolOptions } from "#media/threads/worker_pool.ts";
import { transportChoices } from "./transport/open_transport.ts";

const port = (byDefault: number) => Type.Integer({ minimum: 0, maximum: 65535, default: byDefault });
const httpUrl = { pattern: "^https?://[^\\s/]+.*$" };

export const GatewayEnvironment = Type.Object({
  GATEWAY_PORT: port(8080),
  BIND_ADDRESS: Type.String({ default: "127.0.0.1" }),
  API_PORT: port(8081),
  METRICS_PORT: port(8083),
  API_URL: Type.Optional(
    Type.String({ ...httpUrl, description: "where the api is; default http://127.0.0.1:$API_PORT" }),
  ),
  PUBLIC_URL: Type.Optional(Type.String({ ...httpUrl, description: "default http://127.0.0.1:$GATEWAY_PORT" })),
  GATEWAY_PUBLIC_URL: Type.Optional(
    Type.String({ ...httpUrl, description: "this very process, for resumed calls; default PUBLIC_URL" }),
  ),
  GATEWAY_ID: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: "default: host name and a random part" }),
  ),
  APP_DOMAIN: Type.String({ default: "apps.localhost" }),
  CALL_SLOTS: Type.Integer({ minimum: 0, maximum: 100_000, default: 64 }),
  VAD: Type.Unsafe<"energy" | "silero">({ ...oneOf(["energy", "silero"]), default: "energy" }),
  MEDIA_THREADS: Type.Optional(Type.Integer({ minimum: 1, maximum: 64, description: "default: one a core" })),
  TRANSPORT: Type.Unsafe<(typeof transportChoices)[number]>({ ...oneOf(transportChoices), default: "auto" }),
  SHUTDOWN_DELAY_S: Type.Integer({ minimum: 0, maximum: 999, default: 5, description: "seconds" }),
  DRAIN_TIMEOUT_S: Type.Integer({ minimum: 0, maximum: 86_400, default: 120, description: "seconds" }),
  DATA_DIR: Type.String({ minLength: 1, default: ".data" }),
  REDIS_URL: Type.Optional(Type.String({ minLength: 1 })),
  ALLOW_PRIVATE_ADDRESSES: Type.Boolean({ default: false, description: "true lets users' addresses lead inside" }),
  STT_LOCAL_URL: Type.Optional(
    Type.String({ ...httpUrl, description: "a server that speaks OpenAI's API, for agents with stt provider local" }),
  ),
  STT_LOCAL_MODEL: Type.Optional(Type.String()),
  STT_LOCAL_KEY: Type.Optional(Type.String()),
  TTS_LOCAL_URL: Type.Optional(Type.String({ ...httpUrl, description: "the same for tts" })),
  TTS_LOCAL_MODEL: Type.Optional(Type.String()),
  TTS_LOCAL_VOICE: Type.Optional(Type.String()),
  TTS_LOCAL_KEY: Type.Optional(Type.String()),
  TRUSTED_PROXIES: Type.Optional(Type.String({ description: "CIDRs with commas between them" })),
  LIVEKIT_URL: Type.Optional(
    Type.String({ pattern: "^(ws|http)s?://[^/\\s]+/?$", description: "ws(s)://host[:port], for the talk page" }),
  ),
  INTERNAL_SECRET: Type.Optional(Type.String({ minLength: 16 })),
  LOG_LEVEL: Type.String({ pattern: "^(debug|info|warn|error|silent)$", default: "info" }),
});
type GatewayEnvironment = Static<typeof GatewayEnvironment>;

type StageWorld = NonNullable<WorkerPoolOptions["world"]>;

export interface GatewayConfig {
  gatewayId: string;
  bindAddress: string;
  port: number;
  /** Unset (tests): no figures are served. */
  metricsPort?: { port: number; isGiven: boolean };
  apiUrl: string;
  /** What clients dial. Unset (tests on port 0): this process's own address. */
  publicUrl: string | undefined;
  /** Names this very process in `call_started.resume`. Unset: `publicUrl`. */
  gatewayPublicUrl: string | undefined;
  appDomain: string;
  callSlots: number;
  mediaThreads: number;
  /** Voice activity detection of the media threads. Unset (tests): energy. */
  vad?: "energy" | "silero";
  /** What the stages of calls may reach. Unset: public addresses alone. */
  world?: StageWorld;
  transport: (typeof transportChoices)[number];
  drainTimeoutS: number;
  /** A gateway without calls serves on for so long when it is told to stop, until balancers have noticed. */
  shutdownDelayS?: number;
  dataDir: string;
  redisUrl: string | undefined;
  /** Proxies before us whose word on a caller's address is believed. Unset: none. */
  trustedProxies?: TrustedProxies;
  /** Where the talk page may find a LiveKit server. The agent's seat learns its address with each room. */
  liveKitUrl?: string | undefined;
  internalSecret: string;
  /** Of the process of its own. Unset (tests): info. */
  logLevel?: string;
}

export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(`Cannot start with this environment:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.name = "ConfigError";
  }
}

/**
 * @param options.separate the gateway is a process of its own: then the bus and the secret must be given
 * @throws ConfigError with every problem at once
 */
export function loadGatewayConfig(
  env: Readonly<Record<string, string | undefined>> = process.env,
  options: { separate?: boolean } = {},
): Readonly<GatewayConfig> {
  const given = Object.fromEntries(
    Object.keys(GatewayEnvironment.properties).flatMap((name) => (env[name] ? [[name, env[name]]] : [])),
  );
  const values = Value.Convert(GatewayEnvironment, Value.Default(GatewayEnvironment, given));
  const problems = [...Value.Errors(GatewayEnvironment, values)].map(
    ({ path, message }) => `${path.slice(1)}: ${message}`,
  );
  if (options.separate) {
    if (!env.REDIS_URL) {
      problems.push("REDIS_URL: Expected in a separate gateway: without Redis it shares no reservations with the api");
    }
    if (!env.INTERNAL_SECRET) {
      problems.push("INTERNAL_SECRET: Expected in a separate gateway: the api answers to nobody else");
    }
  }
  problems.push(...trustedProxiesProblems(env.TRUSTED_PROXIES));
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
  return Object.freeze(configFrom(values as GatewayEnvironment, { isMetricsPortGiven: Boolean(env.METRICS_PORT) }));
}

function configFrom(env: GatewayEnvironment, { isMetricsPortGiven }: { isMetricsPortGiven: boolean }): GatewayConfig {
  const publicUrl = env.PUBLIC_URL ?? (env.GATEWAY_PORT === 0 ? undefined : `http://127.0.0.1:${env.GATEWAY_PORT}`);
  return {
    gatewayId: env.GATEWAY_ID ?? `${hostname().slice(0, 80)}-${randomBytes(4).toString("hex")}`,
    bindAddress: env.BIND_ADDRESS,
    port: env.GATEWAY_PORT,
    metricsPort: { port: env.METRICS_PORT, isGiven: isMetricsPortGiven },
    apiUrl: env.API_URL ?? `http://127.0.0.1:${env.API_PORT}`,
    publicUrl,
    gatewayPublicUrl: env.GATEWAY_PUBLIC_URL ?? publicUrl,
    appDomain: env.APP_DOMAIN,
    callSlots: env.CALL_SLOTS,
    mediaThreads: env.MEDIA_THREADS ?? availableParallelism(),
    vad: env.VAD,
    world: { allowPrivateAddresses: env.ALLOW_PRIVATE_ADDRESSES, ownServers: ownServersFrom(env) },
    transport: env.TRANSPORT,
    drainTimeoutS: env.DRAIN_TIMEOUT_S,
    shutdownDelayS: env.SHUTDOWN_DELAY_S,
    dataDir: env.DATA_DIR,
    redisUrl: env.REDIS_URL,
    trustedProxies: parseTrustedProxies(env.TRUSTED_PROXIES ?? ""),
    liveKitUrl: env.LIVEKIT_URL,
    internalSecret: env.INTERNAL_SECRET ?? "",
    logLevel: env.LOG_LEVEL,
  };
}

function ownServersFrom(env: GatewayEnvironment): NonNullable<StageWorld["ownServers"]> {
  const server = (url: string | undefined, more: Record<string, string | undefined>) =>
    url === undefined ? undefined : { url, ...Object.fromEntries(Object.entries(more).filter(([, value]) => value)) };
  const stt = server(env.STT_LOCAL_URL, { key: env.STT_LOCAL_KEY, model: env.STT_LOCAL_MODEL });
  const tts = server(env.TTS_LOCAL_URL, {
    key: env.TTS_LOCAL_KEY,
    model: env.TTS_LOCAL_MODEL,
    voice: env.TTS_LOCAL_VOICE,
  });
  return { ...(stt && { stt }), ...(tts && { tts }) };
}
