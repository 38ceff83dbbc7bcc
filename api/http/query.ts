/** Reads a query string by its schema: numbers and booleans from their text, unknown fields refused. */
import type { Static, TObject } from "@sinclair/typebox";
import { invalidRequest, validatorFor } from "./validation.ts";

/** A reader for `schema`, whose fields are strings, integers, numbers or booleans. */
export function queryReaderFor<S extends TObject>(schema: S): (request: Request) => Static<S> {
  const validator = validatorFor(schema);
  return (request) => {
    const start = request.url.indexOf("?");
    const fields = new Map<string, unknown>();
    if (start >= 0) {
      for (const [name, text] of new URL(request.url).searchParams) {
        if (fields.has(name)) throw invalidRequest("query", name, "Expected one value");
        if (text.includes("\0")) throw invalidRequest("query", name, "Expected text without U+0000");
        fields.set(name, typedValue(text, schema.properties[name]?.type));
      }
    }
    return validator.parse(Object.fromEntries(fields), "query");
  };
}

/** A reader for the parameters of a path, which are text until their schema says otherwise. */
export function pathReaderFor<S extends TObject>(schema: S): (params: Readonly<Record<string, string>>) => Static<S> {
  const validator = validatorFor(schema);
  return (params) => {
    const fields = Object.entries(params).map(([name, text]) => {
      if (text.includes("\0")) throw invalidRequest("path", name, "Expected text without U+0000");
      return [name, typedValue(text, schema.properties[name]?.type)];
    });
    return validator.parse(Object.fromEntries(fields), "path");
  };
}

/** Text that does not fit its type stays text, so that the validator names the expectation. */
function typedValue(text: string, type: string | undefined): unknown {
  if ((type === "integer" && /^-?\d{1,30}$/.test(text)) || (type === "number" && /^-?\d{1,30}(\.\d+)?$/.test(text))) {
    return Number(text);
  }
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}
