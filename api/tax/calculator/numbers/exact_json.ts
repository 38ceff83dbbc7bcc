/**
 * JSON whose numbers keep their text: a literal that a double cannot hold comes out as a string of
 * the same digits, every other one as the number that prints as it was written. A field that is
 * null comes out undefined: it has no value, yet whoever refuses unknown fields sees its name.
 */
import { Rational } from "./rational.ts";

/** A literal long enough that a double may lose part of it (15 digits always survive). */
const longNumber = /\d[\d.]{15,}|\d[eE]/;
const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** @throws SyntaxError as `JSON.parse` does */
export function parseExactJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!longNumber.test(text)) return withoutNulls(value);
  const exact = text.replace(stringOrNumber, (token) => (isLossy(token) ? JSON.stringify(token) : token));
  return withoutNulls(JSON.parse(exact));
}

/** Makes the fields of `value` that are null undefined. Not recursive: nobody has checked yet how deep it goes. */
function withoutNulls(value: unknown): unknown {
  const open = [value];
  while (open.length > 0) {
    const one = open.pop();
    if (typeof one !== "object" || one === null) continue;
    for (const [name, field] of Object.entries(one)) {
      if (field !== null) open.push(field);
      else if (!Array.isArray(one)) (one as Record<string, unknown>)[name] = undefined;
    }
  }
  return value;
}

function isLossy(token: string): boolean {
  if (token.startsWith('"')) return false;
  const number = Number(token);
  if (!Number.isFinite(number)) return true;
  const exponent = /[eE]([+-]?\d+)$/.exec(token)?.[1];
  if (exponent && Math.abs(Number(exponent)) > 400) return false;
  return Rational.parse(token).compare(Rational.parse(number)) !== 0;
}
