/** Text that goes into a document: the same in JSON and in XML, whoever reads it. */

/**
 * Control characters but tab and line ends, and what is no character at all: XML 1.0 cannot have most of
 * them, however they are written (section 2.2), and nobody types them.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not get through
const forbidden = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F\uFFFE\uFFFF]|\p{Surrogate}/gu;

export const isDocumentText = (text: string): boolean => text.search(forbidden) === -1;

/** The value with every text in it freed of what no document can hold. */
export function documentTextIn<T>(value: T): T;
export function documentTextIn(value: unknown): unknown {
  if (typeof value === "string") return value.replace(forbidden, "");
  if (Array.isArray(value)) return value.map((one) => documentTextIn(one));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, documentTextIn(one)]));
}
