/** Writes XML 1.0 from elements in the order they are given. */

export interface Element {
  name: string;
  attributes: Readonly<Record<string, string>>;
  /** Text, or elements; no element is ever empty. */
  content: string | readonly Element[];
}

/** Characters that XML 1.0 cannot have, however they are written (section 2.2). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that must not get through
const forbidden = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]|\p{Surrogate}/gu;

type Content = string | null | undefined | readonly (Element | undefined)[];

/** An element, or undefined where it would be empty. */
export function element(
  name: string,
  content: Content,
  attributes: Readonly<Record<string, string | null>> = {},
): Element | undefined {
  if (content === null || content === undefined) return undefined;
  const kept =
    typeof content === "string"
      ? content.replace(forbidden, "")
      : content.filter((one): one is Element => one !== undefined);
  if (kept.length === 0) return undefined;
  const given = Object.entries(attributes).filter((entry): entry is [string, string] => entry[1] !== null);
  return { name, attributes: Object.fromEntries(given), content: kept };
}

/** The document, indented, with its declaration. */
export function xmlText(root: Element): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${textOf(root, "")}`;
}

function textOf({ name, attributes, content }: Element, indent: string): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escaped(value)}"`);
  const open = `${indent}<${name}${written.join("")}>`;
  if (typeof content === "string") return `${open}${escaped(content)}</${name}>\n`;
  return `${open}\n${content.map((child) => textOf(child, `${indent}  `)).join("")}${indent}</${name}>\n`;
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => entities[character] ?? character);
}
