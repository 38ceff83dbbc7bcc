/**
 * The WebSocket protocol `voice.v1`. Binary frames are audio; a text frame is one flat JSON
 * object with a `type`. The client is the player, the gateway is the talker. These schemas are
 * the single source: `gateway/protocol/` publishes an AsyncAPI document generated from them.
 */
import { type Static, type TObject, type TSchema, Type } from "@sinclair/typebox";
import { AudioFormat } from "./audio_format.ts";
import { type CallErrorCode, callErrorCodes, callWarningCodes, codeOf, providerErrorKinds } from "./codes.ts";
import { oneOf } from "./one_of.ts";
import { Cost, VendorUse } from "./usage.ts";
import { modelStages } from "./voice_agent.ts";

export const voiceProtocol = "voice.v1";

/** Bounds of the wire. Units last. */
export const voiceLimits = {
  /** Largest message in either direction; a larger one closes with 1009. */
  messageBytesMax: 64 * 1024,
  /** The bad message with this number closes with 1008. */
  badMessagesMax: 20,
  reservationTtlS: 120,
  /** How long "used" stays distinguishable from "unknown". */
  tombstoneTtlS: 15 * 60,
  openReservationsMax: 10_000,
  clientBufferMsDefault: 400,
  clientBufferMsMin: 60,
  clientBufferMsMax: 30_000,
  pingIntervalS: 20,
  /** A link without any frame for this long is lost. */
  deadLinkS: 60,
  resumeWindowS: 30,
  /** Of the window: from then on a lost call gives its slot to a newcomer who would find none. */
  lostSlotKeptS: 5,
  replayMessagesMax: 256,
  usageIntervalS: 60,
} as const;

/** WebSocket close codes. The reason text is the machine code; `mayResume` tells the client whether to come back. */
export const closeCodes = {
  normal: { code: 1000, mayResume: false },
  drained: { code: 1001, mayResume: false },
  unsupported_data: { code: 1003, mayResume: false },
  bad_encoding: { code: 1007, mayResume: false },
  policy: { code: 1008, mayResume: false },
  too_big: { code: 1009, mayResume: false },
  internal: { code: 1011, mayResume: false },
  restart: { code: 1012, mayResume: true },
  idle_timeout: { code: 4008, mayResume: false },
  superseded: { code: 4009, mayResume: false },
  max_duration: { code: 4010, mayResume: false },
  slow_consumer: { code: 4014, mayResume: false },
  input_flood: { code: 4015, mayResume: false },
} as const;
export type CloseReason = keyof typeof closeCodes;

/** Flat `{code}` bodies of refused upgrades. */
export const refusals = {
  bad_request: 400,
  bad_subprotocol: 400,
  forbidden_origin: 403,
  not_found: 404,
  expired: 410,
  consumed: 410,
  gone: 410,
  usage_limit: 402,
  capacity: 503,
  unavailable: 503,
} as const;
export type RefusalCode = keyof typeof refusals;

const errorMessageCodes = Object.keys({ ...callErrorCodes, ...refusals }) as (CallErrorCode | RefusalCode)[];

export const endReasons = [
  "client_hangup",
  "agent_hangup",
  "transferred",
  "max_duration",
  "idle_timeout",
  "usage_limit",
  "error",
  "drained",
  "superseded",
] as const;
export type EndReason = (typeof endReasons)[number];

const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const ms = (what?: string) => Type.Number({ minimum: 0, description: what ? `${what}, milliseconds` : "milliseconds" });
const count = (description?: string) => Type.Integer({ minimum: 0, ...(description !== undefined && { description }) });
const textOf = (maxLength: number) => Type.String({ maxLength });
const id = () => Type.String();
/** `apology`: an answer failed, and the agent says so. */
const speechSource = () => oneOf(["welcome", "model", "say", "filler", "apology"]);

export const Usage = Type.Object({
  input_audio_ms: ms("what was heard"),
  output_audio_ms: ms("what was said"),
  llm: Type.Object(
    {
      prompt: count("tokens that the model was given"),
      completion: count("tokens that it answered"),
      cached: count("of prompt, those that the vendor had kept"),
    },
    { description: "the language model's tokens" },
  ),
  tts_characters: count("characters that were spoken"),
  stt_ms: ms("speech that was recognized"),
  tool_calls: count("tools that were called"),
  vendors: optional(Type.Array(VendorUse, { description: "the same by stage, vendor and model, with what it cost" })),
  cost: optional({ ...Cost, about: "what that cost, by the price table" }),
});
export type Usage = Static<typeof Usage>;

/** Of a call that has used nothing yet; each has its own to count in. */
export const emptyUsage = (): Usage => ({
  input_audio_ms: 0,
  output_audio_ms: 0,
  llm: { prompt: 0, completion: 0, cached: 0 },
  tts_characters: 0,
  stt_ms: 0,
  tool_calls: 0,
});

/** What may be behind a tool. */
export const toolSources = ["http", "mcp", "client", "builtin", "app"] as const;

const TurnMetrics = {
  turn_id: Type.String({ description: "the turn's id in its call" }),
  eos_wait_ms: ms("silence waited for before the turn was taken"),
  stt_final_ms: ms("until the recognizer was sure"),
  llm_ttft_ms: ms("until the model's first words"),
  tts_ttfb_ms: ms("until the first sound of the answer"),
  gateway_ms: ms("what the gateway added: the whole less the wait and the providers"),
  end_of_turn_to_audio_ms: ms("from the frame that completed the end-of-speech wait to the first byte of the answer"),
  to_playout_ms: optional(
    ms("from the same frame to the client's report that the answer plays (`mark`), where it reports"),
  ),
  interrupted: Type.Boolean({ description: "whether the caller broke in" }),
  tool_ms: optional(ms("what tools took")),
  vendors: optional(Type.Array(VendorUse, { description: "what the turn used, by stage, vendor and model" })),
  cost: optional({ ...Cost, about: "what that cost, by the price table" }),
  preemptive_hit: Type.Boolean({ description: "whether the answer was begun before the turn was over, and kept" }),
};

/** Server to client, without the common fields `seq` and `t`. */
const serverMessages = {
  call_started: {
    call_id: id(),
    /** Absent in a draft session. */
    agent_id: optional(id()),
    protocol: Type.Literal(voiceProtocol),
    input: AudioFormat,
    output: Type.Composite([AudioFormat, Type.Object({ frame_ms: Type.Integer() })]),
    limits: Type.Object({
      max_call_duration_s: Type.Integer(),
      idle_timeout_s: Type.Integer(),
      max_message_bytes: Type.Integer(),
    }),
    keepalive: Type.Object({ ping_interval_s: Type.Integer() }),
    resume: Type.Object({ url: Type.String(), token: Type.String(), window_s: Type.Integer() }),
  },
  state: { state: oneOf(["initializing", "listening", "thinking", "tool", "speaking"]), turn_id: optional(id()) },
  user_speech_started: { turn_id: id(), audio_ms: ms() },
  user_speech_stopped: { turn_id: id(), audio_ms: ms() },
  user_backchannel: { turn_id: id(), item_id: id(), text: Type.String(), start_ms: ms(), end_ms: ms() },
  transcript: {
    role: oneOf(["user", "agent"]),
    turn_id: id(),
    item_id: id(),
    /** The whole text so far; partial user transcripts replace each other. */
    text: optional(Type.String()),
    /** What was added to the item's text since its last message. */
    delta: optional(Type.String()),
    final: Type.Boolean(),
    language: optional(Type.String()),
    start_ms: optional(ms()),
    end_ms: optional(ms()),
  },
  agent_speech_started: { turn_id: id(), utterance_id: id(), source: speechSource() },
  agent_speech_done: {
    turn_id: id(),
    utterance_id: id(),
    source: speechSource(),
    audio_ms: ms(),
    interrupted: Type.Boolean(),
  },
  clear: { utterance_id: id(), reason: oneOf(["user_speech", "client_interrupt", "say", "error"]) },
  mark: { name: Type.String() },
  truncated: { utterance_id: id(), played_ms: ms(), spoken_text: Type.String(), full_text: Type.String() },
  client_tool_call: {
    tool_call_id: id(),
    name: Type.String(),
    arguments: Type.Record(Type.String(), Type.Unknown()),
    expects_response: Type.Boolean(),
    long_running: Type.Boolean(),
    timeout_ms: ms(),
  },
  client_tool_cancel: { tool_call_id: id(), reason: oneOf(["timeout", "interrupted", "call_ended"]) },
  tool_event: {
    tool_call_id: id(),
    name: Type.String(),
    source: oneOf(toolSources),
    phase: oneOf(["started", "progress", "completed", "failed", "timeout", "cancelled"]),
    duration_ms: optional(ms()),
    error: optional(Type.String()),
    /** Of a tool that goes on by itself. */
    task_id: optional(id()),
    /** Of `app`, once it runs. */
    run_id: optional(id()),
    /** Of `progress`. */
    text: optional(Type.String()),
    percent: optional(Type.Number({ minimum: 0, maximum: 100 })),
  },
  transfer: {
    destination: Type.Object({ label: Type.String(), phone_number: Type.String() }),
    message: optional(Type.String()),
  },
  send_dtmf: { digits: Type.String() },
  turn_metrics: TurnMetrics,
  usage: Usage.properties,
  flow: { state: oneOf(["pause", "resume"]), buffered_ms: ms() },
  warning: {
    code: codeOf(callWarningCodes),
    message: Type.String(),
    fatal: Type.Literal(false),
    ref: optional(Type.String()),
    /** Of `provider_…`: whose part of the answer, and who failed or answers again. */
    stage: optional(oneOf(modelStages)),
    provider: optional(Type.String()),
    /** How it failed. */
    kind: optional(oneOf(providerErrorKinds)),
  },
  error: {
    code: oneOf(errorMessageCodes),
    message: Type.String(),
    fatal: Type.Boolean(),
    ref: optional(Type.String()),
    /** Of `…_failed`. */
    stage: optional(oneOf(modelStages)),
    kind: optional(oneOf(providerErrorKinds)),
  },
  draining: { deadline: Type.String({ format: "date-time" }), resume: Type.Boolean() },
  pong: { timestamp: optional(Type.Unknown()), server_time: Type.String({ format: "date-time" }) },
  call_ended: { reason: oneOf(endReasons), duration_ms: ms(), usage: Usage },
} as const;

/** Client to server. Unknown types and fields are ignored; a bad field is `error bad_message`. */
const clientMessages = {
  start: {
    metadata: optional(Type.Record(Type.String(), Type.Unknown())),
    client: optional(Type.Object({ name: optional(textOf(200)), version: optional(textOf(200)) })),
    capabilities: optional(
      Type.Object({
        marks: optional(Type.Boolean()),
        clear: optional(Type.Boolean()),
        text_only: optional(Type.Boolean()),
        echo_cancellation: optional(Type.Boolean()),
        transcripts: optional(Type.Boolean()),
      }),
    ),
  },
  media: { payload: Type.String({ description: "base64 of the audio that a binary frame would carry" }) },
  mark: { name: textOf(200), cleared: optional(Type.Boolean()) },
  interrupt: {},
  dtmf: { digit: Type.String({ pattern: "^[0-9*#A-D]$" }), duration_ms: optional(ms()) },
  user_message: {
    text: Type.String({ minLength: 1, maxLength: 16_000 }),
    urgency: optional(oneOf(["immediate", "soon", "later"])),
  },
  context_update: { text: Type.String({ minLength: 1, maxLength: 16_000 }) },
  say: {
    text: Type.String({ minLength: 1, maxLength: 16_000 }),
    interruptible: optional(Type.Boolean()),
    behavior: optional(oneOf(["default", "queue", "interrupt"])),
  },
  client_tool_result: {
    tool_call_id: textOf(200),
    result: optional(Type.Unknown()),
    is_error: optional(Type.Boolean()),
    final: optional(Type.Boolean()),
    reaction: optional(oneOf(["speak", "listen"])),
  },
  client_transcript: {
    segment_id: Type.String({ minLength: 1, maxLength: 100 }),
    text: textOf(4000),
    final: Type.Boolean(),
    language: optional(textOf(35)),
    confidence: optional(Type.Number({ minimum: 0, maximum: 1 })),
  },
  transfer_result: { ok: Type.Boolean(), error: optional(textOf(2000)) },
  mute: {},
  unmute: {},
  user_activity: {},
  ping: { timestamp: optional(Type.Unknown()) },
  hang_up: { message: optional(Type.String({ maxLength: 4000 })) },
} as const;

type Fields = Record<string, TSchema>;
type MessageOf<M extends Record<string, Fields>> = {
  [K in keyof M]: { type: K } & Static<ReturnType<typeof Type.Object<M[K]>>>;
}[keyof M];

/** A message as a call's session emits it; the gateway adds `seq` and `t` when it sends it. */
export type ServerMessage = MessageOf<typeof serverMessages>;
export type ServerMessageType = ServerMessage["type"];
export type ServerMessageOf<K extends ServerMessageType> = Extract<ServerMessage, { type: K }>;
/** As it is on the wire. */
export type SentMessage = ServerMessage & { seq: number; t: number };

export type ClientMessage = MessageOf<typeof clientMessages>;
export type ClientMessageType = ClientMessage["type"];
export type ClientMessageOf<K extends ClientMessageType> = Extract<ClientMessage, { type: K }>;

const commonFields = {
  seq: Type.Integer({ minimum: 1, description: "1, 2, 3 … in each call, resumes included" }),
  t: Type.Integer({ minimum: 0, description: "milliseconds since call_started" }),
};

/** One object schema for each message, its `type` and the `common` fields included. */
function schemasOf<K extends string>(messages: Record<K, Fields>, common: Fields): Record<K, TObject> {
  const schemas = {} as Record<K, TObject>;
  for (const [type, fields] of Object.entries(messages) as [K, Fields][]) {
    schemas[type] = Type.Object({ type: Type.Literal(type), ...common, ...fields });
  }
  return schemas;
}

/** Schemas by `type`, as on the wire: for validation, documentation and tests. */
export const serverMessageSchemas = schemasOf<ServerMessageType>(serverMessages, commonFields);
export const clientMessageSchemas = schemasOf<ClientMessageType>(clientMessages, {});
