/** A postal code in the form of its country: repaired where spaces, hyphens, case or a prefix are all that is wrong. */
import type { AddressFormat, AddressRegion } from "./address_formats.ts";

/**
 * The code as the country writes it, or undefined where no such code can exist there. A country
 * without postal codes takes none.
 */
export function normalizedPostalCode(text: string, format: AddressFormat): string | undefined {
  if (format.postal_code === undefined) return undefined;
  const isCode = anchored(`(?:${format.postal_code})`, "$");
  const given = halfWidth(text).toUpperCase().trim();
  const bare = withoutPrefix(given, format.postal_prefix);
  const compact = bare.replace(/[\s\p{Pd}.]/gu, "");
  const shaped = (format.postal_examples ?? []).map((example) => inShapeOf(example, compact));
  return [...shaped, bare, compact].find((candidate) => candidate !== undefined && isCode.test(candidate));
}

/** The regions whose postal codes begin like this one. */
export function regionsOfPostalCode(code: string, regions: readonly AddressRegion[]): AddressRegion[] {
  return regions.filter(({ postal_code }) => postal_code !== undefined && anchored(`(?:${postal_code})`).test(code));
}

const patterns = new Map<string, RegExp>();

/** The pattern at the beginning of a text; there are as many as the data has. */
function anchored(pattern: string, end = ""): RegExp {
  const source = `^${pattern}${end}`;
  const known = patterns.get(source) ?? new RegExp(source, "i");
  patterns.set(source, known);
  return known;
}

/** `１００－０００１` and `〒100-0001` as `100-0001`. */
const halfWidth = (text: string) => text.normalize("NFKC").replaceAll("〒", "");

function withoutPrefix(code: string, prefix: string | undefined): string {
  const letters = prefix?.replace(/[\s-]/g, "");
  if (!letters || !code.startsWith(letters)) return code;
  return code.slice(letters.length).replace(/^[\s\p{Pd}]+/u, "");
}

/** The letters and digits with spaces and hyphens where the example has them; undefined for another length. */
function inShapeOf(example: string, compact: string): string | undefined {
  if (example.replace(/[\s-]/g, "").length !== compact.length) return undefined;
  let next = 0;
  return [...example].map((character) => (/[\s-]/.test(character) ? character : compact[next++])).join("");
}
