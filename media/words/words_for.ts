/** The languages that the pipeline itself speaks. */
import { de } from "./de.ts";
import { en } from "./en.ts";
import { es } from "./es.ts";
import { fr } from "./fr.ts";
import { it } from "./it.ts";
import { nl } from "./nl.ts";
import { pt } from "./pt.ts";
import type { Words } from "./words.ts";

const languages: Readonly<Record<string, Words>> = { de, en, es, fr, it, nl, pt };

/** The words of a language by its BCP 47 tag; English where there are none. */
export function wordsFor(language: string): Words {
  return languages[language.split("-")[0]?.toLowerCase() ?? ""] ?? en;
}
