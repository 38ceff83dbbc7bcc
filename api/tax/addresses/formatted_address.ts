/** An address as lines on an envelope, in the order and capitals of its country's post. */
import type { AddressFormat } from "./address_formats.ts";
import type { AddressField } from "./address_schema.ts";
import { isLatin } from "./region_match.ts";

export type AddressParts = Record<AddressField, string | null>;

/** The letters of a format that stand for our fields; the others are the addressee's. */
export const letters: Readonly<Record<Exclude<AddressField, "line1" | "line2">, string>> = {
  city: "C",
  district: "D",
  region: "S",
  postal_code: "Z",
};

/** @param country its name, which ends the address */
export function formattedAddress(parts: AddressParts, format: AddressFormat, country: string): string[] {
  const isInLatin = Object.values(parts).every((part) => part === null || isLatin(part));
  const pattern = isInLatin ? (format.latin_format ?? format.format) : format.format;
  const capitals = (letter: string, text: string) => (format.upper.includes(letter) ? text.toUpperCase() : text);
  const textOf = (letter: string): string => {
    if (letter === "A") return streetLines(parts, pattern).join("\n");
    const field = Object.entries(letters).find(([, one]) => one === letter)?.[0] as AddressField | undefined;
    return (field && parts[field]) ?? "";
  };
  const lines = pattern.split("%n").flatMap((line) => {
    const tokens = [...line.matchAll(/%([A-Z])/g)].map((match) => match[1] ?? "");
    // Without a value for any token its words and prefixes (〒, CH-) go as well.
    if (tokens.length > 0 && tokens.every((letter) => textOf(letter) === "")) return [];
    const filled = withoutEmptyTokens(line, textOf).replaceAll(/%([A-Z])/g, (_, letter: string) =>
      capitals(letter, textOf(letter)),
    );
    return filled.split("\n");
  });
  return [...lines, country.toUpperCase()].map(tidied).filter((line) => line !== "");
}

/**
 * Street lines, with the city among them where the format has no place for it (Japan): after the street,
 * or before it where the wider comes first.
 */
function streetLines({ line1, line2, region, ...parts }: AddressParts, pattern: string): string[] {
  // Dubai in Dubai.
  const city = parts.city === region ? null : parts.city;
  const street = [line1, line2];
  const widerFirst = pattern.includes("%S") && pattern.indexOf("%S") < pattern.indexOf("%A");
  const lines = pattern.includes("%C") ? street : widerFirst ? [city, ...street] : [...street, city];
  return lines.filter((line) => line !== null);
}

/** `CH-%Z %C` without a postal code is `%C`. */
function withoutEmptyTokens(line: string, textOf: (letter: string) => string): string {
  return line.replaceAll(/[^\s%]*%([A-Z])/g, (whole, letter: string) => (textOf(letter) === "" ? "" : whole));
}

const tidied = (line: string) =>
  line
    .replace(/\s+/g, " ")
    .replace(/ ,/g, ",")
    .replace(/^[\s,/-]+|[\s,/-]+$/g, "");
