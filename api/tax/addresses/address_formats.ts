/** How addresses are written in each country: Google's libaddressinput data, read and checked once. */
import { readFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { validatorFor } from "#http/validation.ts";

const text = Type.String({ minLength: 1 });
const closed = { additionalProperties: false } as const;

const AddressRegion = Type.Object(
  {
    /** What the post writes: `CA`, `RM`, `東京都`. */
    key: text,
    name: Type.Optional(text),
    latin_name: Type.Optional(text),
    other_names: Type.Optional(Type.Array(text)),
    /** ISO 3166-2. */
    code: Type.Optional(text),
    /** How its postal codes begin, as a regular expression. */
    postal_code: Type.Optional(text),
  },
  closed,
);
export type AddressRegion = Static<typeof AddressRegion>;

const AddressFormat = Type.Object(
  {
    /** %A lines, %D district, %C city, %S region, %Z postal code, %n a new line; %N and %O the addressee. */
    format: text,
    latin_format: Type.Optional(text),
    /** Letters of the format without which nothing arrives. */
    require: Type.String(),
    /** Letters that the post writes in capitals. */
    upper: Type.String(),
    postal_code: Type.Optional(text),
    postal_examples: Type.Optional(Type.Array(text)),
    /** Written before the postal code, and no part of it: `CH-`. */
    postal_prefix: Type.Optional(text),
    region_word: Type.Optional(text),
    languages: Type.Optional(Type.Array(text)),
    regions: Type.Optional(Type.Array(AddressRegion)),
  },
  closed,
);
export type AddressFormat = Static<typeof AddressFormat>;

const AddressFormatFile = Type.Object({ about: text, countries: Type.Record(text, AddressFormat) }, closed);

/** By ISO 3166-1 alpha-2 code. @throws Error naming what does not fit */
export function loadAddressFormats(): ReadonlyMap<string, AddressFormat> {
  const file = new URL("./data/address_formats.json", import.meta.url);
  const content: unknown = JSON.parse(readFileSync(file, "utf8"));
  const problems = Object.entries(validatorFor(AddressFormatFile).problemsOf(content) ?? {});
  if (problems.length > 0) {
    throw new Error(`address_formats.json: ${problems.map(([path, what]) => `${path}: ${what}`).join("; ")}`);
  }
  return new Map(Object.entries((content as Static<typeof AddressFormatFile>).countries));
}
