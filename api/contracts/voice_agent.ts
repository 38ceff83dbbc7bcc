/**
 * Configuration of a voice agent: every field typed, bounded and defaulted. A stored configuration
 * keeps just what the customer wrote (`VoiceAgentConfig`); a call runs on `completeConfig(…)`,
 * in which every default is filled in.
 */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "./named_schema.ts";
import { oneOf } from "./one_of.ts";

/** The stages of a voice pipeline: speech to text, language model, text to speech. */
export const modelStages = ["stt", "llm", "tts"] as const;
export type ModelStage = (typeof modelStages)[number];

const closed = { additionalProperties: false } as const;

/** Text up to `maxLength` characters. */
const text = (maxLength: number, minLength = 0, about?: string) =>
  Type.String({ minLength, maxLength, ...(about !== undefined && { about }) });

const name = Type.String({ minLength: 1, maxLength: 64, pattern: "^[A-Za-z_][A-Za-z0-9_-]*$" });
const uuid = Type.String({ format: "uuid" });
const httpUrl = Type.String({ maxLength: 2048, pattern: "^https?://[^\\s]+$" });
const phoneNumber = Type.String({
  maxLength: 256,
  pattern: "^(\\+[1-9][0-9]{1,14}|sips?:[^\\s@]+@[^\\s]+)$",
  description: "E.164 or a sip: address",
});

/** Options are the provider's own: it checks them itself. */
const modelFields = (providers: readonly string[]) => ({
  provider: Type.Optional({ ...oneOf(providers), about: "the vendor; each stage has a default" }),
  model: Type.Optional(text(200, 0, "one of the vendor's models")),
  connection_id: Type.Optional({ ...uuid, about: "the connection that has the vendor's key" }),
  language: Type.Optional(Type.String({ minLength: 2, maxLength: 35, default: "en", about: "a language tag" })),
  voice: Type.Optional(text(200, 0, "one of the vendor's voices")),
  base_url: Type.Optional({ ...httpUrl, about: "in place of the connection's address" }),
  temperature: Type.Optional(
    Type.Number({ minimum: 0, maximum: 2, about: "how freely a language model chooses its words" }),
  ),
  options: Type.Optional(
    Type.Record(Type.String({ maxLength: 100 }), Type.Unknown(), {
      about: "the vendor's own, as its page has them",
    }),
  ),
});
const modelSettings = (providers: readonly string[]) =>
  Type.Object(
    {
      ...modelFields(providers),
      fallbacks: Type.Optional(
        Type.Array(Type.Object(modelFields(providers), closed), {
          maxItems: 3,
          about: "who is asked, in this order, when the ones before fail",
        }),
      ),
    },
    closed,
  );

const headers = Type.Array(
  Type.Object({ key: text(200, 1, "the header's name"), value: text(8192, 0, "what is sent with it") }, closed),
  { maxItems: 50 },
);
const paramTypes = ["string", "number", "integer", "boolean", "object", "array"] as const;

const param = {
  name: text(100, 1, "what the model calls it"),
  type: Type.Optional({ ...oneOf(paramTypes), about: "what kind of value; string unless given" }),
  description: Type.Optional(text(2000, 0, "what it is, for the model")),
  required: Type.Optional(Type.Boolean({ about: "whether the model must give it" })),
};

/** Of every tool of the agent's own. */
const toolManners = {
  filler: Type.Optional(text(200, 1, "what is said while the caller waits for it")),
  on_interrupt: Type.Optional({
    ...oneOf(["cancel", "finish"]),
    about: "what becomes of it when the caller takes the floor; cancel for GET, else finish",
  }),
  on_duplicate: Type.Optional({
    ...oneOf(["reuse", "run"]),
    about:
      "the same call again, before the caller has heard an answer: `reuse` (default) gives it the first one's result, `run` runs it again",
  }),
  confirm: Type.Optional(
    Type.Boolean({
      about: "true: it runs only when the caller's last turn was a yes, which code checks, not the model",
    }),
  ),
  sensitive: Type.Optional(
    Type.Boolean({ about: "true: what it is given and what it answers is in no record and no event" }),
  ),
};

export const HttpTool = named(
  "HttpTool",
  Type.Object(
    {
      name,
      description: Type.Optional(text(4000)),
      method: Type.Optional(oneOf(["GET", "POST", "PUT", "PATCH", "DELETE"])),
      url: httpUrl,
      connection_id: Type.Optional(uuid),
      headers: Type.Optional(headers),
      params: Type.Optional(
        Type.Array(
          Type.Object(
            {
              ...param,
              in: Type.Optional({ ...oneOf(["path", "query", "body", "header"]), about: "where it is put" }),
            },
            closed,
          ),
          {
            maxItems: 100,
          },
        ),
      ),
      long_running: Type.Optional(Type.Boolean()),
      timeout_s: Type.Optional(Type.Number({ minimum: 0.1, maximum: 120 })),
      ...toolManners,
    },
    closed,
  ),
  {
    name: "what the model calls it",
    description: "what it does, for the model",
    method: "of HTTP; GET unless given",
    url: "where it is; `{name}` in its path stands for a param",
    connection_id: "the connection whose secret is sent as a bearer token",
    headers: "sent with every request",
    params: "what the model gives it",
    long_running: "true: the conversation goes on while it works",
    timeout_s: "seconds until it fails",
  },
);

export type HttpTool = Static<typeof HttpTool>;

const ClientTool = named(
  "ClientTool",
  Type.Object(
    {
      name,
      description: Type.Optional(text(4000)),
      params: Type.Optional(Type.Array(Type.Object(param, closed), { maxItems: 100 })),
      expects_response: Type.Optional(Type.Boolean()),
      long_running: Type.Optional(Type.Boolean()),
      timeout_s: Type.Optional(Type.Number({ minimum: 1, maximum: 120 })),
      ...toolManners,
    },
    closed,
  ),
  {
    name: "what the model calls it",
    description: "what it does, for the model",
    params: "what the model gives it",
    long_running: "true: the conversation goes on while it works",
    timeout_s: "seconds until it fails",
    expects_response: "whether the client answers it",
  },
);

export type ClientTool = Static<typeof ClientTool>;

const McpServer = named(
  "McpServer",
  Type.Object(
    {
      name,
      url: httpUrl,
      connection_id: Type.Optional(uuid),
      headers: Type.Optional(headers),
      allowed_tools: Type.Optional(Type.Array(text(200, 1), { maxItems: 200 })),
      long_running: Type.Optional(Type.Boolean()),
    },
    closed,
  ),
  {
    name: "tells it from the agent's other servers",
    url: "where it is",
    connection_id: "the connection that has its credential",
    headers: "sent with every request",
    allowed_tools: "the only ones of its tools; all unless given",
    long_running: "true: the conversation goes on while its tools work",
  },
);

export type McpServer = Static<typeof McpServer>;

const AppTool = named(
  "AppTool",
  Type.Object(
    {
      app_id: uuid,
      name,
      description: Type.Optional(text(4000)),
      long_running: Type.Optional(Type.Boolean({ default: true })),
      timeout_s: Type.Optional(Type.Number({ minimum: 1, maximum: 600, default: 600 })),
      progress: Type.Optional(oneOf(["none", "events", "spoken"])),
      on_call_end: Type.Optional(oneOf(["finish", "cancel"])),
      ...toolManners,
    },
    closed,
  ),
  {
    app_id: "an app of the agent's project; the input of its workflow is what the model gives",
    name: "what the model calls it",
    description: "what it does, for the model",
    long_running: "true: the conversation goes on while it runs",
    timeout_s: "seconds until it is given up, and cancelled",
    progress: "what is told of its nodes: `events` (default) in `tool_event`, `spoken` to the caller too, `none`",
    on_call_end: "whether the run goes on when the call ends (`finish`, default), or is cancelled with it",
  },
);
export type AppTool = Static<typeof AppTool>;

/** As a call has it: with the schema of its workflow's input. */
export interface CallAppTool extends AppTool {
  parameters?: Record<string, unknown>;
}

/** Tools of ours that an agent has when it names them. */
export const builtinToolNames = ["send_dtmf", "find_stay", "quote_stay", "book_stay"] as const;
export type BuiltinToolName = (typeof builtinToolNames)[number];

const Transfer = named(
  "Transfer",
  Type.Object(
    {
      enabled: Type.Optional(Type.Boolean()),
      phone_number: Type.Optional(phoneNumber),
      destinations: Type.Optional(
        Type.Array(
          Type.Object(
            { label: text(100, 1, "what the model calls it"), phone_number: { ...phoneNumber, about: "where to" } },
            closed,
          ),
          { maxItems: 50 },
        ),
      ),
    },
    closed,
  ),
  {
    enabled: "whether calls may be handed on",
    phone_number: "where to",
    destinations: "further ones, which the model chooses from by their label",
  },
);

const Stays = named(
  "Stays",
  Type.Object(
    {
      jurisdiction_code: text(64, 1),
      currency: Type.String({ pattern: "^[A-Z]{3}$", description: "an ISO 4217 code such as EUR" }),
      nightly_rate: Type.String({ pattern: "^[0-9]{1,7}(\\.[0-9]{1,3})?$", description: "an amount such as 120.00" }),
      rooms: Type.Integer({ minimum: 1, maximum: 10_000 }),
      property_type: Type.Optional(text(64, 1)),
      star_rating: Type.Optional(Type.Integer({ minimum: 1, maximum: 5 })),
    },
    closed,
  ),
  {
    jurisdiction_code: "where the house is, as `/v1/jurisdictions` has it",
    currency: "of the rate",
    nightly_rate: "of a room, before tax",
    rooms: "how many there are",
    property_type: "as `/v1/tax/calculate` takes it",
    star_rating: "as `/v1/tax/calculate` takes it",
  },
);
/** The house that `find_stay`, `quote_stay` and `book_stay` are about. */
export type Stays = Static<typeof Stays>;

export const backgroundSounds = ["none", "office", "cafe", "call_center", "keyboard"] as const;

const Advanced = named(
  "AdvancedSettings",
  Type.Object(
    {
      max_call_duration_s: Type.Optional(Type.Integer({ minimum: 10, maximum: 43200, default: 1800 })),
      idle_timeout_s: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 3600, default: 60, description: "0 turns it off; otherwise 5 or more" }),
      ),
      max_tool_steps: Type.Optional(Type.Integer({ minimum: 1, maximum: 20, default: 3 })),
      eos_silence_ms: Type.Optional(Type.Integer({ minimum: 100, maximum: 5000, default: 500 })),
      turn_sensitivity: Type.Optional(oneOf(["auto", "low", "medium", "high"])),
      preemptive_tts: Type.Optional(Type.Boolean({ default: false })),
      backchannels: Type.Optional(Type.Array(text(60, 1), { maxItems: 200 })),
      min_interrupt_words: Type.Optional(Type.Integer({ minimum: 0, maximum: 5, default: 0 })),
      noise_cancellation: Type.Optional(oneOf(["auto", "off", "near_field", "far_field", "telephony"])),
      allow_interruptions: Type.Optional(Type.Boolean({ default: true })),
      background_sound: Type.Optional(
        Type.String({ maxLength: 2048, pattern: `^(${backgroundSounds.join("|")}|https://[^\\s]+)$`, default: "none" }),
      ),
    },
    closed,
  ),
  {
    max_call_duration_s: "a call ends after so many seconds",
    idle_timeout_s: "a call ends after so many seconds in which nobody speaks",
    max_tool_steps: "tools that the model may call one after the other for one answer",
    eos_silence_ms:
      "silence after which the caller's turn is over; by turn_sensitivity and the words so far unless given",
    turn_sensitivity: "how soon a turn is taken for over: high waits least",
    preemptive_tts:
      "make the answer, and the sound of its first clause, as soon as the caller seems to have finished; it is thrown away when more follows",

    backchannels: "what a listener says over the agent without wanting the floor, in place of the language's list",
    min_interrupt_words: "a caller who says fewer words over the agent does not interrupt it",
    noise_cancellation: "for what kind of microphone",
    allow_interruptions: "whether a caller can break in while the agent speaks",
    background_sound: "what is heard behind the agent",
  },
);

/**
 * The `config` of a voice agent as customers write it. Unknown fields are refused.
 * @param providers names that the settings of each stage may have
 */
export const voiceAgentConfig = (providers: Readonly<Record<ModelStage, readonly string[]>>) =>
  named(
    "VoiceAgentConfig",
    Type.Object(
      {
        name: Type.Optional(text(200)),
        instructions: Type.Optional(text(100_000)),
        welcome_message: Type.Optional(text(4000)),
        mode: Type.Optional(oneOf(["pipeline", "realtime"])),
        stt: Type.Optional(modelSettings(providers.stt)),
        llm: Type.Optional(modelSettings(providers.llm)),
        tts: Type.Optional(modelSettings(providers.tts)),
        realtime: Type.Optional(modelSettings([])),
        tools: Type.Optional(Type.Array(HttpTool, { maxItems: 64 })),
        client_tools: Type.Optional(Type.Array(ClientTool, { maxItems: 64 })),
        mcp_servers: Type.Optional(Type.Array(McpServer, { maxItems: 16 })),
        app_tools: Type.Optional(Type.Array(AppTool, { maxItems: 16 })),
        builtin_tools: Type.Optional(Type.Array(oneOf(builtinToolNames), { maxItems: 16, uniqueItems: true })),
        stays: Type.Optional(Stays),
        transfer: Type.Optional(Transfer),
        end_call_enabled: Type.Optional(Type.Boolean({ default: false })),
        recording_enabled: Type.Optional(Type.Boolean({ default: false })),
        advanced: Type.Optional(Advanced),
      },
      closed,
    ),
    {
      name: "its name in its own mouth: the model is told it, and `{{agent_name}}` in its texts stands for it",
      instructions: "what the model is told",
      welcome_message: "what it says first; nothing unless given",
      mode: "`pipeline`: recognition, model and speech; `realtime`: one model that hears and speaks",
      stt: "how speech is recognized; without it the agent takes typed text and keys alone",
      llm: "what answers",
      tts: "what speaks",
      realtime: "the model of that mode",
      tools: "HTTP endpoints that the model may call",
      client_tools: "what the model may ask of the caller's program",
      mcp_servers: "servers whose tools the model may call",
      app_tools: "apps that the model may run",
      builtin_tools: "tools of ours that the model may call: keys, and stays that our booking service quotes and books",
      stays: "the house that the tools of stays are about",
      transfer: "to whom calls may be handed on",
      end_call_enabled: "whether the model may end the call",
      recording_enabled: "whether calls are recorded",
      advanced: "timing and sound",
    },
  );
export type VoiceAgentConfig = Static<ReturnType<typeof voiceAgentConfig>>;

export const voiceAgentStatuses = ["draft", "deploying", "deployed", "failed", "archived"] as const;

/** Model settings as a call runs on them. */
export interface ModelSettings {
  provider: string;
  language: string;
  model?: string;
  voice?: string;
  temperature?: number;
  /** Of a vendor's stage: the connection whose key it is reached with. The key itself is never part of settings. */
  connection_id?: string;
  /** In place of the connection's address. */
  base_url?: string;
  options: Readonly<Record<string, unknown>>;
  /** Who is asked, in this order, when the ones before fail. */
  fallbacks?: readonly ModelSettings[];
}

/** What a call runs on: every default filled in. `stt` is absent when the agent recognizes nothing. */
export interface CallConfig {
  instructions: string;
  welcome_message: string;
  stt?: ModelSettings;
  llm: ModelSettings;
  tts: ModelSettings;
  end_call_enabled: boolean;
  tools: readonly HttpTool[];
  client_tools: readonly ClientTool[];
  mcp_servers: readonly McpServer[];
  app_tools: readonly CallAppTool[];
  builtin_tools: readonly BuiltinToolName[];
  /** Where the agent may send a caller; none where transfers are off. */
  destinations: readonly { label: string; phone_number: string }[];
  advanced: {
    max_call_duration_s: number;
    idle_timeout_s: number;
    max_tool_steps: number;
    eos_silence_ms: number;
    turn_sensitivity: "auto" | "low" | "medium" | "high";
    /** The caller's words shorten and lengthen the wait; not where the customer says how long it is. */
    heeds_endings: boolean;
    preemptive_tts: boolean;
    /** In place of the language's. */
    backchannels?: readonly string[];
    min_interrupt_words: number;
    allow_interruptions: boolean;
  };
  /** What is set and has no effect, by its path; told once in the call. */
  ignored_settings?: readonly string[];
  /** The model acts on no context that a client adds. */
  ignores_context?: boolean;
  /** Configured fields whose machinery is not built yet; each becomes a `warning not_available`. */
  not_available: readonly string[];
}

function settingsFor(
  settings: { provider?: string; language?: string } & Record<string, unknown>,
  provider: string,
): ModelSettings {
  const { model, voice, temperature, connection_id, base_url, options, fallbacks } = settings as Partial<ModelSettings>;
  return {
    provider: settings.provider ?? provider,
    language: settings.language ?? "en",
    ...(model !== undefined && { model }),
    ...(voice !== undefined && { voice }),
    ...(temperature !== undefined && { temperature }),
    ...(connection_id !== undefined && { connection_id }),
    ...(base_url !== undefined && { base_url }),
    options: options ?? {},
    ...(fallbacks?.length && { fallbacks: fallbacks.map((one) => settingsFor({ ...one }, provider)) }),
  };
}

/** How long silence lasts before a turn is taken, where `eos_silence_ms` does not say so itself. */
const eosSilenceMsFor = { auto: 500, low: 800, medium: 500, high: 300 } as const;

/**
 * `config` with every default of the field table filled in. Pure; expects a validated config.
 * @param defaults what settings mean that name no provider
 */
export function completeConfig(config: VoiceAgentConfig, defaults: Readonly<Record<ModelStage, string>>): CallConfig {
  const advanced = config.advanced ?? {};
  return {
    instructions: config.instructions ?? "",
    welcome_message: config.welcome_message ?? "",
    ...(config.stt?.provider && { stt: settingsFor(config.stt, defaults.stt) }),
    llm: settingsFor(config.llm ?? {}, defaults.llm),
    tts: settingsFor(config.tts ?? {}, defaults.tts),
    end_call_enabled: config.end_call_enabled ?? false,
    tools: config.tools ?? [],
    client_tools: config.client_tools ?? [],
    mcp_servers: config.mcp_servers ?? [],
    app_tools: config.app_tools ?? [],
    builtin_tools: config.builtin_tools ?? [],
    destinations: destinationsIn(config),
    advanced: {
      max_call_duration_s: advanced.max_call_duration_s ?? 1800,
      idle_timeout_s: advanced.idle_timeout_s ?? 60,
      max_tool_steps: advanced.max_tool_steps ?? 3,
      eos_silence_ms: advanced.eos_silence_ms ?? eosSilenceMsFor[advanced.turn_sensitivity ?? "auto"],
      turn_sensitivity: advanced.turn_sensitivity ?? "auto",
      heeds_endings: advanced.eos_silence_ms === undefined,
      preemptive_tts: advanced.preemptive_tts ?? false,
      ...(advanced.backchannels && { backchannels: advanced.backchannels }),
      min_interrupt_words: advanced.min_interrupt_words ?? 0,
      allow_interruptions: advanced.allow_interruptions ?? true,
    },
    not_available: notAvailableIn(config),
  };
}

function destinationsIn({ transfer }: VoiceAgentConfig): CallConfig["destinations"] {
  if (!transfer?.enabled) return [];
  const { phone_number, destinations = [] } = transfer;
  return phone_number === undefined ? destinations : [{ label: "default", phone_number }, ...destinations];
}

/** Field paths in `config` that ask for machinery that does not exist yet. */
export function notAvailableIn(config: VoiceAgentConfig): string[] {
  const advanced = config.advanced ?? {};
  const asked: [string, boolean][] = [
    ["recording_enabled", Boolean(config.recording_enabled)],
    ["advanced.background_sound", (advanced.background_sound ?? "none") !== "none"],
    ["advanced.noise_cancellation", !["auto", "off"].includes(advanced.noise_cancellation ?? "auto")],
  ];
  return asked.filter(([, isAsked]) => isAsked).map(([field]) => field);
}
