/** What the words so far say about whether the caller has finished: a sentence that is whole, or one that goes on. Pure. */

import { plainWords } from "../words/plain_words.ts";
import type { Words } from "../words/words.ts";

/** `whole`: a sentence has ended. `open`: the last word wants another, or a number is being told. */
export type Ending = "whole" | "open";

/** Of the silence that otherwise ends a turn. */
const wholeFactor = 0.6;
const openFactor = 2;
const openSilenceMsMax = 2000;
/** So many digits one after the other are a number that is being told; fewer are an amount. */
const toldDigits = 2;

export type EndingWords = Pick<Words, "goesOn" | "digits">;

export function endingOf(text: string, words: EndingWords): Ending | undefined {
  const said = plainWords(text);
  const last = said.at(-1);
  if (last === undefined) return undefined;
  if (words.goesOn.includes(last)) return "open";
  const isDigit = (word: string) => /^\p{N}{1,4}$/u.test(word) || words.digits.includes(word);
  if (said.length >= toldDigits && said.slice(-toldDigits).every(isDigit)) return "open";
  return /[.!?…。？！]["'”’»)\]]*\s*$/u.test(text) ? "whole" : undefined;
}

/** Milliseconds of silence that end a turn with this ending, where `silenceMs` end any other. */
export function silenceFor(ending: Ending | undefined, silenceMs: number): number {
  if (ending === "whole") return silenceMs * wholeFactor;
  if (ending === "open") return Math.max(silenceMs, Math.min(silenceMs * openFactor, openSilenceMsMax));
  return silenceMs;
}
