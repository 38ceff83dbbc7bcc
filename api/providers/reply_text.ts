/** Text of a built-in model, cut as a model streams it. A token here is a word with the white space behind it. */

/** Words with their white space; together they are `text`. */
export function wordsOf(text: string): string[] {
  return text.match(/^\s+|\S+\s*/g) ?? [];
}

/** Tokens as the built-in models report them in `usage`. */
export function countTokens(text: string): number {
  let tokens = 0;
  for (const _ of text.matchAll(/\S+/g)) tokens += 1;
  return tokens;
}
