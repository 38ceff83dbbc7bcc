/** Whether somebody who was asked has agreed: what cannot be undone is done on such words alone. Pure. */
import { plainWords } from "./plain_words.ts";
import type { Words } from "./words.ts";

/** A question, or a word of doubt beside the yes, is no yes: who is asked again loses little. */
export function agrees(text: string, { yes, no }: Pick<Words, "yes" | "no">): boolean {
  const words = plainWords(text);
  if (/[?？]/u.test(text) || words.some((word) => no.includes(word))) return false;
  const said = ` ${words.join(" ")} `;
  return yes.some((phrase) => said.includes(` ${phrase} `));
}
