/** The words of `text` in lower case, without punctuation but apostrophes and hyphens. Pure. */
export function plainWords(text: string): string[] {
  const plain = text.toLowerCase().replaceAll("’", "'");
  return plain.match(/[\p{L}\p{N}]+(?:['-][\p{L}\p{N}]+)*/gu) ?? [];
}
