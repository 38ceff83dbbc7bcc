/** Environment of the api and the worker as separate roles: the only file here that reads it. */
import { type Static, type TObject, Type } from "@sinclair/typebox";
import { parseTrustedProxies, type TrustedProxies, trustedProxiesProblems } from "#contracts/client_address.ts";
import type { PriceTable } from "#contracts/usage.ts";
import { validatorFor } from "#http/validation.ts";
import { EmailAddress, NewPassword } from "#identity/credentials_schema.ts";
import type { LiveKitSettings } from "#outbound/livekit.ts";
import { openPriceTable, PriceTableError } from "#providers/price_table.ts";

const port = (byDefault: string) =>
  Type.String({ pattern: "^[0-9]{1,5}$", default: byDefault, description: "a port number; 0 takes a free one" });
const secret = (what: string) => Type.String({ minLength: 16, description: `${what}; at least 16 characters` });

/** The LiveKit server: all of them, or none. */
export const liveKitEnvironment = {
  LIVEKIT_URL: Type.Optional(
    Type.String({ pattern: "^(ws|http)s?://[^/\\s]+/?$", description: "ws(s)://host[:port]; no rooms when unset" }),
  ),
  LIVEKIT_API_KEY: Type.Optional(Type.String({ minLength: 1, description: "the LiveKit server's API key" })),
  LIVEKIT_API_SECRET: Type.Optional(Type.String({ minLength: 1, description: "what tokens are signed with" })),
};
type LiveKitEnvironment = Static<TObject<typeof liveKitEnvironment>>;

/** A line for each variable that is missing beside the others. */
export function liveKitProblems(env: LiveKitEnvironment): string[] {
  const names = Object.keys(liveKitEnvironment) as (keyof LiveKitEnvironment)[];
  const missing = names.filter((name) => !env[name]);
  if (missing.length === names.length) return [];
  return missing.map((name) => `${name}: Expected beside the other LIVEKIT_ variables`);
}

export function liveKitFrom(env: LiveKitEnvironment): LiveKitSettings | undefined {
  const { LIVEKIT_URL: url, LIVEKIT_API_KEY: apiKey, LIVEKIT_API_SECRET: apiSecret } = env;
  return url && apiKey && apiSecret ? { url, apiKey, apiSecret } : undefined;
}

const databaseUrl = Type.String({
  pattern: "^postgres(ql)?://",
  description: "postgres://…, the database that all roles share (npm start brings its own)",
});
const logLevel = Type.String({
  pattern: "^(debug|info|warn|error|silent)$",
  default: "info",
  description: "debug, info, warn, error or silent",
});

/** Every variable that `npm run migrate` knows. */
const migrateEnvironment = Type.Object({ DATABASE_URL: databaseUrl, LOG_LEVEL: logLevel });

/** Every variable that `npm run bootstrap` knows. */
export const bootstrapEnvironment = Type.Object({
  DATABASE_URL: databaseUrl,
  BOOTSTRAP_EMAIL: { ...EmailAddress, description: "the e-mail address of the first platform administrator" },
  BOOTSTRAP_PASSWORD: Type.Optional({
    ...NewPassword,
    description: "8 to 128 characters; when unset, a mail asks the administrator to choose one",
  }),
  LOG_LEVEL: logLevel,
});

/** Every variable that these roles know. */
export const apiEnvironment = Type.Object({
  BIND_ADDRESS: Type.String({ minLength: 1, default: "127.0.0.1", description: "the address to listen on" }),
  GATEWAY_PORT: port("8080"),
  API_PORT: port("8081"),
  WORKER_PORT: port("8082"),
  METRICS_PORT: port("8083"),
  PUBLIC_URL: Type.Optional(
    Type.String({
      pattern: "^https?://[^/\\s]+/?$",
      description: "http(s)://host[:port]; default http://127.0.0.1:$GATEWAY_PORT",
    }),
  ),
  DATABASE_URL: databaseUrl,
  MIGRATE: Type.String({
    pattern: "^(start|never)$",
    default: "start",
    description: "start: each start migrates the database; never: `npm run migrate` does, and a start waits for it",
  }),
  TRUSTED_PROXIES: Type.Optional(
    Type.String({ description: "CIDRs of proxies whose X-Forwarded-For or Forwarded is believed; none when unset" }),
  ),
  SHUTDOWN_DELAY_S: Type.String({
    pattern: "^[0-9]{1,3}$",
    default: "5",
    description: "seconds that an api told to stop serves on, not ready, until balancers know",
  }),
  REDIS_URL: Type.String({
    pattern: "^rediss?://",
    description: "redis://…, because separate roles share reservations and events over it (npm start needs none)",
  }),
  INTERNAL_SECRET: secret("what the gateway shows to the api"),
  ENCRYPTION_KEY: secret("what stored credentials are encrypted with"),
  JWT_SECRET: secret("what sessions are signed with"),
  APP_DOMAIN: Type.String({
    pattern: "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$",
    default: "apps.localhost",
    description: "the domain below which apps answer",
  }),
  ...liveKitEnvironment,
  ALLOW_PRIVATE_ADDRESSES: Type.String({
    pattern: "^(true|false)$",
    default: "false",
    description: "true or false; true lets requests to addresses that users give reach private networks",
  }),
  REQUIRE_EMAIL_VERIFICATION: Type.String({
    pattern: "^(true|false)$",
    default: "false",
    description: "true or false; true lets nobody sign in before the e-mail address is verified",
  }),
  SMTP_URL: Type.Optional(
    Type.String({
      pattern: "^smtps?://",
      description: "smtp[s]://user:password@host:port; mail goes to files when unset",
    }),
  ),
  MAIL_FROM: Type.String({
    minLength: 3,
    default: "Frontdesk <frontdesk@localhost>",
    description: "who mail is from",
  }),
  REQUEST_LOG_DAYS: Type.String({
    pattern: "^([1-9][0-9]{0,3})$",
    default: "90",
    description: "how long the request log is kept: 1 to 9999 days",
  }),
  PRICES_FILE: Type.Optional(
    Type.String({ minLength: 1, description: "a JSON file of prices, before those that vendors list" }),
  ),
  DATA_DIR: Type.String({
    minLength: 1,
    default: ".data",
    description: "mail goes to its outbox when SMTP_URL is unset",
  }),
  LOG_LEVEL: logLevel,
});

export interface ApiConfig {
  bindAddress: string;
  apiPort: number;
  workerPort: number;
  metricsPort: { port: number; isGiven: boolean };
  publicUrl: string;
  trustedProxies: TrustedProxies;
  databaseUrl: string;
  migrate: "start" | "never";
  shutdownDelayS: number;
  redisUrl: string;
  internalSecret: string;
  encryptionKey: string;
  jwtSecret: string;
  appDomain: string;
  allowPrivateAddresses: boolean;
  /** Undefined: no rooms. */
  liveKit: LiveKitSettings | undefined;
  requireEmailVerification: boolean;
  smtpUrl: string | undefined;
  mailFrom: string;
  /** How long the request log is kept. */
  requestLogDays: number;
  prices: PriceTable;
  dataDir: string;
  logLevel: string;
}

/** The environment cannot start a role; the message has a line for each problem. */
export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(["Cannot start with this environment:", ...problems.map((problem) => `  ${problem}`)].join("\n"));
    this.name = "ConfigError";
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The variables that a schema names, with their defaults, and a line for each that is wrong. An empty one is unset. */
function readEnvironment<Schema extends TObject>(schema: Schema, environment: Environment) {
  const given = Object.fromEntries(
    Object.entries(schema.properties).map(([name, { default: byDefault }]) => [name, environment[name] || byDefault]),
  );
  const found = validatorFor(schema).problemsOf(JSON.parse(JSON.stringify(given))) ?? {};
  const problems = Object.entries(found).map(([name, message]) => {
    const description: string = schema.properties[name]?.description ?? "";
    return `${name}: ${message === "Required" || !message.includes(description) ? `${message} (${description})` : message}`;
  });
  return { env: given as Static<Schema>, problems };
}

/** Reads the configuration, frozen. @throws ConfigError with all problems */
export function readApiConfig(environment: Environment = process.env): Readonly<ApiConfig> {
  const { env, problems } = readEnvironment(apiEnvironment, environment);
  const prices = pricesFrom(env.PRICES_FILE);
  problems.push(...liveKitProblems(env), ...trustedProxiesProblems(env.TRUSTED_PROXIES), ...prices.problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze({
    bindAddress: env.BIND_ADDRESS,
    apiPort: Number(env.API_PORT),
    workerPort: Number(env.WORKER_PORT),
    metricsPort: { port: Number(env.METRICS_PORT), isGiven: Boolean(environment.METRICS_PORT) },
    publicUrl: (env.PUBLIC_URL ?? `http://127.0.0.1:${env.GATEWAY_PORT}`).replace(/\/$/, ""),
    trustedProxies: parseTrustedProxies(env.TRUSTED_PROXIES ?? ""),
    databaseUrl: env.DATABASE_URL,
    migrate: env.MIGRATE as ApiConfig["migrate"],
    shutdownDelayS: Number(env.SHUTDOWN_DELAY_S),
    redisUrl: env.REDIS_URL,
    internalSecret: env.INTERNAL_SECRET,
    encryptionKey: env.ENCRYPTION_KEY,
    jwtSecret: env.JWT_SECRET,
    appDomain: env.APP_DOMAIN,
    liveKit: liveKitFrom(env),
    allowPrivateAddresses: env.ALLOW_PRIVATE_ADDRESSES === "true",
    requireEmailVerification: env.REQUIRE_EMAIL_VERIFICATION === "true",
    smtpUrl: env.SMTP_URL,
    mailFrom: env.MAIL_FROM,
    requestLogDays: Number(env.REQUEST_LOG_DAYS),
    prices: prices.table,
    dataDir: env.DATA_DIR,
    logLevel: env.LOG_LEVEL,
  });
}

/** The table, and a line for a file that cannot be used. */
export function pricesFrom(path: string | undefined): { table: PriceTable; problems: string[] } {
  try {
    return { table: openPriceTable(path), problems: [] };
  } catch (error) {
    if (!(error instanceof PriceTableError)) throw error;
    return { table: openPriceTable(), problems: [`PRICES_FILE: ${error.message}`] };
  }
}

/** @throws ConfigError with all problems */
export function readMigrateConfig(environment: Environment = process.env) {
  const { env, problems } = readEnvironment(migrateEnvironment, environment);
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze({ databaseUrl: env.DATABASE_URL, logLevel: env.LOG_LEVEL });
}

/** @throws ConfigError with all problems */
export function readBootstrapConfig(environment: Environment = process.env) {
  const { env, problems } = readEnvironment(bootstrapEnvironment, environment);
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze({
    databaseUrl: env.DATABASE_URL,
    email: env.BOOTSTRAP_EMAIL,
    password: env.BOOTSTRAP_PASSWORD,
    logLevel: env.LOG_LEVEL,
  });
}
