/** Countries, as requests name them. */
import { FormatRegistry, Type } from "@sinclair/typebox";
import { iso31661 } from "iso-3166";

const countries = new Set(iso31661.map(({ alpha2 }) => alpha2));
const format = "iso-3166-1-alpha-2";
FormatRegistry.Set(format, (text) => countries.has(text));

/** One of the 249 codes that ISO 3166-1 has assigned. */
export const CountryCode = Type.String({ format, description: "an ISO 3166-1 alpha-2 code" });
