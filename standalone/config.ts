/**
 * The environment of `npm start`: its own variables here, the gateway's in the gateway's own
 * schema. The only file of this room that reads it.
 */
import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { liveKitEnvironment, liveKitFrom, liveKitProblems, pricesFrom } from "#api/config.ts";
import type { PriceTable } from "#contracts/usage.ts";
import { type GatewayConfig, loadGatewayConfig } from "#gateway/config.ts";
import type { LiveKitSettings } from "#outbound/livekit.ts";
import type { WantedPort } from "./ports.ts";
import type { Secrets } from "./secrets.ts";

const port = (byDefault: number) => Type.Integer({ minimum: 0, maximum: 65_535, default: byDefault });
const secret = Type.Optional(
  Type.String({ minLength: 16, description: "made once and kept under DATA_DIR when unset" }),
);

export const StandaloneEnvironment = Type.Object({
  DATA_DIR: Type.String({ minLength: 1, default: ".data" }),
  DATABASE_URL: Type.Optional(Type.String({ pattern: "^postgres(ql)?://", description: "embedded when unset" })),
  DATABASE_PORT: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, description: "a free one when unset" })),
  MIGRATE: Type.String({ pattern: "^start$", default: "start", description: "this start always migrates" }),
  API_PORT: port(8081),
  WORKER_PORT: port(8082),
  METRICS_PORT: port(8083),
  LOG_LEVEL: Type.String({ pattern: "^(debug|info|warn|error|silent)$", default: "info" }),
  APP_DOMAIN: Type.String({ pattern: "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$", default: "apps.localhost" }),
  ALLOW_PRIVATE_ADDRESSES: Type.Boolean({ default: false, description: "true lets users' addresses lead inside" }),
  REQUIRE_EMAIL_VERIFICATION: Type.Boolean({ default: false, description: "true before anybody may sign in" }),
  SMTP_URL: Type.Optional(Type.String({ pattern: "^smtps?://", description: "files in $DATA_DIR/outbox when unset" })),
  MAIL_FROM: Type.String({ minLength: 3, default: "Frontdesk <frontdesk@localhost>" }),
  PRICES_FILE: Type.Optional(Type.String({ minLength: 1, description: "a JSON file of prices" })),
  REQUEST_LOG_DAYS: Type.Integer({ minimum: 1, maximum: 9999, default: 90, description: "1 to 9999 days" }),
  ...liveKitEnvironment,
  INTERNAL_SECRET: secret,
  ENCRYPTION_KEY: secret,
  JWT_SECRET: secret,
});
type StandaloneEnvironment = Static<typeof StandaloneEnvironment>;

export interface StandaloneConfig {
  dataDir: string;
  databaseUrl: string | undefined;
  databasePort: number | undefined;
  bindAddress: string;
  ports: Record<"GATEWAY_PORT" | "API_PORT" | "WORKER_PORT" | "METRICS_PORT", WantedPort>;
  logLevel: string;
  appDomain: string;
  /** Development only: addresses that users give may be private. */
  allowPrivateAddresses: boolean;
  requireEmailVerification: boolean;
  smtpUrl: string | undefined;
  mailFrom: string;
  requestLogDays: number;
  prices: PriceTable;
  /** A LiveKit server that is there already. */
  liveKit: LiveKitSettings | undefined;
  givenSecrets: Partial<Secrets>;
  /** The gateway's share, once the port and what other parts decide are known. */
  gateway(known: {
    port: number;
    apiUrl: string;
    internalSecret: string;
    liveKitUrl: string | undefined;
  }): Readonly<GatewayConfig>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The environment cannot start Frontdesk; the message has a line for each problem. */
export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(["Cannot start with this environment:", ...problems.map((problem) => `  ${problem}`)].join("\n"));
    this.name = "ConfigError";
  }
}

/** Reads the configuration. @throws ConfigError with all problems */
export function readStandaloneConfig(given: Environment = process.env): Readonly<StandaloneConfig> {
  const names = Object.keys(StandaloneEnvironment.properties);
  const set = Object.fromEntries(names.flatMap((name) => (given[name] ? [[name, given[name]]] : [])));
  const values = Value.Convert(StandaloneEnvironment, Value.Default(StandaloneEnvironment, set));
  const problems = [...Value.Errors(StandaloneEnvironment, values)].map(
    ({ path, message }) => `${path.slice(1)}: ${message}`,
  );
  problems.push(...liveKitProblems(values as StandaloneEnvironment));
  problems.push(...gatewayProblems(given));
  problems.push(...pricesFrom(set.PRICES_FILE).problems);
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
  return Object.freeze(configFrom(values as StandaloneEnvironment, given));
}

/** Of `npm run drill:restore`. @throws ConfigError without a DATABASE_URL */
export function readDrillConfig(environment: Environment = process.env): {
  databaseUrl: string;
  encryptionKey: string | undefined;
  searchPath: string | undefined;
} {
  const { DATABASE_URL: databaseUrl, ENCRYPTION_KEY: encryptionKey, PATH: searchPath } = environment;
  if (!/^postgres(ql)?:\/\//.test(databaseUrl ?? "")) {
    throw new ConfigError(["DATABASE_URL: Expected postgres://…, the database whose backup is tried"]);
  }
  return { databaseUrl: databaseUrl ?? "", encryptionKey: encryptionKey || undefined, searchPath };
}

function configFrom(own: StandaloneEnvironment, environment: Environment): StandaloneConfig {
  const { bindAddress, port: gatewayPort } = loadGatewayConfig(environment);
  const wanted = (name: string, port: number): WantedPort => ({ port, isGiven: Boolean(environment[name]) });
  return {
    dataDir: own.DATA_DIR,
    databaseUrl: own.DATABASE_URL,
    databasePort: own.DATABASE_PORT,
    bindAddress,
    ports: {
      // A given PUBLIC_URL leads to this very port, by itself or through a proxy.
      GATEWAY_PORT: { port: gatewayPort, isGiven: Boolean(environment.GATEWAY_PORT || environment.PUBLIC_URL) },
      API_PORT: wanted("API_PORT", own.API_PORT),
      WORKER_PORT: wanted("WORKER_PORT", own.WORKER_PORT),
      METRICS_PORT: wanted("METRICS_PORT", own.METRICS_PORT),
    },
    logLevel: own.LOG_LEVEL,
    appDomain: own.APP_DOMAIN,
    allowPrivateAddresses: own.ALLOW_PRIVATE_ADDRESSES,
    requireEmailVerification: own.REQUIRE_EMAIL_VERIFICATION,
    smtpUrl: own.SMTP_URL,
    mailFrom: own.MAIL_FROM,
    requestLogDays: own.REQUEST_LOG_DAYS,
    prices: pricesFrom(own.PRICES_FILE).table,
    liveKit: liveKitFrom(own),
    givenSecrets: {
      ...(own.INTERNAL_SECRET ? { INTERNAL_SECRET: own.INTERNAL_SECRET } : {}),
      ...(own.ENCRYPTION_KEY ? { ENCRYPTION_KEY: own.ENCRYPTION_KEY } : {}),
      ...(own.JWT_SECRET ? { JWT_SECRET: own.JWT_SECRET } : {}),
    },
    gateway: ({ port, apiUrl, internalSecret, liveKitUrl }) =>
      loadGatewayConfig({
        ...environment,
        GATEWAY_PORT: String(port),
        API_URL: apiUrl,
        INTERNAL_SECRET: internalSecret,
        LIVEKIT_URL: liveKitUrl,
      }),
  };
}

function gatewayProblems(environment: Environment): string[] {
  try {
    loadGatewayConfig(environment);
    return [];
  } catch (error) {
    // Its message is our own form: a heading, then a line for each problem.
    return (error as Error).message
      .split("\n")
      .slice(1)
      .map((line) => line.trim());
  }
}
