/**
 * Closed sets of words, and the text formats that our schemas name: taught to TypeBox once, so that
 * every compiled check of a contract works wherever it is compiled.
 */
import { FormatRegistry, Kind, type TSchema, type TUnsafe, Type, TypeRegistry } from "@sinclair/typebox";
import { isUuid } from "./secrets.ts";

/** RFC 3339, section 5.6, with the offset that it demands. */
const rfc3339Pattern = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

/** Whether `text` is a moment in RFC 3339 form. */
export function isDateTime(text: string): boolean {
  return rfc3339Pattern.test(text) && !Number.isNaN(Date.parse(text));
}

TypeRegistry.Set<TSchema & { enum?: readonly unknown[] }>("Unsafe", (schema, value) => {
  return schema.enum === undefined || schema.enum.includes(value);
});
TypeRegistry.Set<TSchema & { maxLength: number }>(
  "Characters",
  (schema, value) => typeof value === "string" && [...value].length <= schema.maxLength,
);
FormatRegistry.Set("uuid", isUuid);
FormatRegistry.Set("date-time", isDateTime);

/** One of `values`: an `enum` in JSON Schema, a union of words in TypeScript. */
export function oneOf<const T extends readonly string[]>(values: T): TUnsafe<T[number]> {
  return Type.Unsafe<T[number]>({ type: "string", enum: [...values] });
}

/** Text of at most so many characters, counted as JSON Schema does: code points, not UTF-16 units. */
export function characters(maxLength: number, options: { description?: string } = {}): TUnsafe<string> {
  return { ...Type.Unsafe<string>({ type: "string", maxLength, ...options }), [Kind]: "Characters" } as TUnsafe<string>;
}
