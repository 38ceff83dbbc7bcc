/** Writes XML 1.0 from elements in the order they are given. */
import { documentTextIn } from "./document_text.ts";

export interface Element {
  name: string;
  attributes: Readonly<Record<string, string>>;
  /** Text, or elements; no element is ever empty. */
  content: string | readonly Element[];
}

type Content = string | null | undefined | readonly (Element | undefined)[];

/** An element, or undefined where it would be empty. */
export function element(
  name: string,
  content: Content,
  attributes: Readonly<Record<string, string | null>> = {},
): Element | undefined {
  if (content === null || content === undefined) return undefined;
  const kept =
    typeof content === "string" ? documentTextIn(content) : content.filter((one): one is Element => one !== undefined);
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

/** A carriage return that stands as itself is read as a line feed (section 2.11). */
const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\r": "&#13;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"\r]/g, (character) => entities[character] ?? character);
}
