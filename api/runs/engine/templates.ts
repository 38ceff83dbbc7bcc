/** Mustache over a node's inputs: text in, text out, no code. Nothing is escaped but where it is said. */
import Mustache from "mustache";

/** @param escapeValue for values between `{{…}}`; `{{{…}}}` is never escaped */
export function renderTemplate(
  template: string,
  view: object,
  escapeValue: (text: string) => string = (text) => text,
): string {
  return Mustache.render(template, view, {}, { escape: (value) => escapeValue(textOf(value)) });
}

/** A value as a template shows it: objects as JSON, nothing for nothing. */
function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
