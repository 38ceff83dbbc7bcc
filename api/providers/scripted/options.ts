/** Options of `scripted`, by stage. */
import { type Static, Type } from "@sinclair/typebox";
import { delay_ms, faults, options, text, tokens_per_s, toolName } from "../option_schemas.ts";

export const ScriptedSttOptions = options({
  transcripts: Type.Array(text(4000), { maxItems: 1000, default: [] }),
  delay_ms,
  partials: Type.Boolean({ default: true }),
  ...faults,
});
export type ScriptedSttOptions = Static<typeof ScriptedSttOptions>;

const ScriptedToolCall = options({
  turn: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  name: toolName,
  arguments: Type.Optional(Type.Record(Type.String({ maxLength: 100 }), Type.Unknown(), { maxProperties: 100 })),
});

export const ScriptedLlmOptions = options({
  replies: Type.Array(text(20_000), { maxItems: 1000, default: [] }),
  delay_ms,
  tokens_per_s,
  tool_calls: Type.Array(ScriptedToolCall, { maxItems: 100, default: [] }),
  ...faults,
});
export type ScriptedLlmOptions = Static<typeof ScriptedLlmOptions>;

export const ScriptedTtsOptions = options({
  ms_per_char: Type.Number({ minimum: 0, maximum: 1000, default: 50 }),
  delay_ms,
  tone_hz: Type.Integer({ minimum: 20, maximum: 7000, default: 440 }),
  ...faults,
});
export type ScriptedTtsOptions = Static<typeof ScriptedTtsOptions>;
