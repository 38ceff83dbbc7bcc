/** Countries by what people call them: codes, English names, and names in their own and the most spoken languages. */
import { iso31661 } from "iso-3166";
import { folded } from "../places/jurisdictions.ts";

const languages = ["en", "fr", "es", "de", "it", "pt", "nl"];
/** What is written in place of codes, and is none. */
const customary = { uk: "GB", el: "GR", "great britain": "GB", england: "GB", scotland: "GB", holland: "NL" };

/** Alpha-2 codes by folded code or name; names as the platform's own data (CLDR) has them. */
export function countriesByName(): ReadonlyMap<string, string> {
  const found = new Map<string, string>(Object.entries(customary));
  const add = (name: string | undefined, code: string) => {
    if (name) found.set(folded(name), code);
  };
  const inLanguages = languages.map((language) => new Intl.DisplayNames([language], { type: "region" }));
  for (const { alpha2, alpha3, name } of iso31661) {
    const own = new Intl.DisplayNames([new Intl.Locale(`und-${alpha2}`).maximize().language], { type: "region" });
    for (const names of [own, ...inLanguages]) add(names.of(alpha2), alpha2);
    add(name, alpha2);
    add(alpha3, alpha2);
  }
  // Last, so that no name of another country hides a code.
  for (const { alpha2 } of iso31661) add(alpha2, alpha2);
  return found;
}
