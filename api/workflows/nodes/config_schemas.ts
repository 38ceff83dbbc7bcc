/** Parts that the configs of several node kinds are made of. */

import { type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";
import { inputAudiences } from "#contracts/run_event.ts";

/** The config of a kind: nothing but `properties`. */
export const config = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });

export const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);

/** Text of `minLength` to `maxLength` characters. */
export const text = (maxLength: number, minLength = 0) => Type.String({ minLength, maxLength });

/** A JSONPath (RFC 9535) such as `$.input.question`, or a literal: anything that is not a string beginning with `$`. */
export const reference = () => Type.Unknown({ description: "JSONPath beginning with $, or a literal" });

export const uuid = () => Type.String({ format: "uuid" });

/** Headers and query parameters. */
export const pairs = (max: number) => Type.Array(config({ key: text(200, 1), value: text(8192) }), { maxItems: max });

/** Names of edges out of a node. */
export const handle = () => Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_-]{0,63}$" });

/** Seconds until nobody is waited for any more: 30 days at most. */
export const longTimeoutS = (minimum: number) => Type.Number({ minimum, maximum: 30 * 86_400 });

/** Who may answer; `caller`: also whoever started the run of a public app without a key, where the app lets them respond. */
export const audience = () => oneOf(inputAudiences);
