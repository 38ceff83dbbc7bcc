/**
 * What vendors did for a call or a run, and what it cost. A cost is what the price table says of the
 * amounts; where the table has no price, or the vendor told no amount, the cost is null and never 0.
 */
import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "./one_of.ts";
import { modelStages } from "./voice_agent.ts";

const amount = (description: string) => Type.Number({ minimum: 0, description });
const count = (description: string) => Type.Integer({ minimum: 0, description });
const money = (description: string) =>
  Type.Unsafe<number | null>({ type: ["number", "null"], minimum: 0, description });

/** What one model of a vendor did. The amounts are those that its stage is billed by. */
export const VendorUse = Type.Object({
  stage: { ...oneOf(modelStages), description: "what it was asked for" },
  provider: Type.String({ description: "the vendor, or what is built in" }),
  model: Type.Optional(Type.String({ description: "the vendor's model" })),
  requests: count("how often it was asked, and answered"),
  prompt: Type.Optional(count("`llm`: tokens that the model was given, the cached ones included")),
  completion: Type.Optional(count("`llm`: tokens that it answered")),
  cached: Type.Optional(count("`llm`: of prompt, those that the vendor had kept")),
  audio_ms: Type.Optional(amount("`stt`: audio that it was sent, silence included where it hears all; milliseconds")),
  characters: Type.Optional(count("`tts`: characters that it spoke")),
  unreported: Type.Optional(count("requests of which the vendor told no tokens: their cost is unknown")),
  cost: money("null: no price is known of it, or not all of what it used"),
});
export type VendorUse = Static<typeof VendorUse>;

export const Cost = Type.Object({
  currency: Type.String({ description: "an ISO 4217 code" }),
  amount: money("the whole; null where a part of it is unknown"),
  known: amount("what is known of it"),
  unknown: Type.Array(Type.String(), { description: "what has no price, as `llm openai gpt-x`" }),
});
export type Cost = Static<typeof Cost>;

/** Two sums in one currency. */
export function costsTogether(a: Cost | undefined, b: Cost | undefined): Cost | undefined {
  if (!a || !b) return a ?? b;
  const known = Math.round((a.known + b.known) * 1e9) / 1e9;
  const unknown = [...new Set([...a.unknown, ...b.unknown])];
  return { currency: b.currency, amount: unknown.length > 0 ? null : known, known, unknown };
}

const per = (about: string) => Type.Optional(Type.Number({ minimum: 0, about }));

/** One row of the price table. */
export const Price = Type.Object(
  {
    stage: oneOf(modelStages),
    provider: Type.String({ minLength: 1 }),
    /** Its name, or the beginning of it and `*`; every model of the vendor's unless given. */
    model: Type.Optional(Type.String({ minLength: 1 })),
    /** For what is reached at this address; the vendor's own unless given. */
    base_url: Type.Optional(Type.String({ minLength: 1 })),
    per_million_input_tokens: per("llm"),
    per_million_cached_tokens: per("llm"),
    per_million_output_tokens: per("llm"),
    per_minute: per("stt"),
    per_million_characters: per("tts"),
    source: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);
export type Price = Static<typeof Price>;

export const PriceTable = Type.Object(
  {
    currency: Type.String({ pattern: "^[A-Z]{3}$", description: "an ISO 4217 code" }),
    prices: Type.Array(Price, { maxItems: 10_000 }),
  },
  { additionalProperties: false },
);
export type PriceTable = Static<typeof PriceTable>;
