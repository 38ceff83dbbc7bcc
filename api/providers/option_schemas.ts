/** Parts that the options of several providers are made of. Each provider has one closed schema a stage, with bounds and defaults. */
import { type TProperties, Type } from "@sinclair/typebox";

/** The options of a stage: nothing but `properties`. */
export const options = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });

/** Text of `minLength` to `maxLength` characters. */
export const text = (maxLength: number, minLength = 0) => Type.String({ minLength, maxLength });

export const toolName = Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_-]*$", maxLength: 64 });

const turns = (does: string) =>
  Type.Array(Type.Integer({ minimum: 1, maximum: 1_000_000 }), {
    maxItems: 100,
    default: [],
    description: `Turns, the first one is 1, on which the provider ${does}`,
  });

/** Turns on which a built-in provider misbehaves; `passFaults` plays them. */
export const faults = { fail_on: turns("fails"), hang_on: turns("never answers") };

/** Milliseconds before an answer. */
export const delay_ms = Type.Integer({ minimum: 0, maximum: 60_000, default: 0 });

/** The pace of an answer's words; 0: all at once. */
export const tokens_per_s = Type.Number({ minimum: 0, maximum: 10_000, default: 0 });
