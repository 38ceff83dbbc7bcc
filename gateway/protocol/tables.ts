/**
 * The tables of README.md, made from the contracts: they stand between `<!-- begin NAME -->` and
 * `<!-- end NAME -->`, and whatever is between those marks is replaced by `withTables`.
 */
import type { TObject } from "@sinclair/typebox";
import {
  clientMessageSchemas,
  closeCodes,
  endReasons,
  refusals,
  serverMessageSchemas,
} from "#contracts/voice_protocol.ts";
import {
  clientMessageWording,
  closeWording,
  endReasonWording,
  refusalWording,
  serverMessageWording,
} from "./wording.ts";

type JsonSchema = {
  type?: string;
  enum?: readonly unknown[];
  const?: unknown;
  anyOf?: readonly JsonSchema[];
  pattern?: string;
  properties?: Record<string, JsonSchema>;
  patternProperties?: unknown;
  required?: readonly string[];
  minLength?: number;
  maxLength?: number;
};

const commonFields = ["type", "seq", "t"];

/** A value's type in a few characters, as a reader of the table wants it. */
function typeOf(schema: JsonSchema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.join(" \\| ");
  if (schema.anyOf) return schema.anyOf.map((one) => String(one.const)).join(" \\| ");
  if (schema.properties) return `{${fieldsOf(schema)}}`;
  if (schema.patternProperties) return "object";
  const length = schema.maxLength === undefined ? "" : ` ≤ ${schema.maxLength}`;
  return `${schema.type ?? "any"}${schema.pattern ? ` \`${schema.pattern}\`` : length}`;
}

function fieldsOf({ properties = {}, required = [] }: JsonSchema): string {
  return Object.entries(properties)
    .filter(([name]) => !commonFields.includes(name))
    .map(([name, schema]) => `\`${name}\`${required.includes(name) ? "" : "?"}: ${typeOf(schema)}`)
    .join(", ");
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function messageTable(schemas: Record<string, TObject>, wording: Readonly<Record<string, string>>): string {
  const rows = Object.entries(schemas).map(([type, schema]) => [
    `\`${type}\``,
    fieldsOf(schema as JsonSchema) || "–",
    wording[type] ?? "",
  ]);
  return table(["type", "fields", "meaning"], rows);
}

/** Every generated table by the name of its marks. */
export function protocolTables(): Readonly<Record<string, string>> {
  return {
    "server messages": messageTable(serverMessageSchemas, serverMessageWording),
    "client messages": messageTable(clientMessageSchemas, clientMessageWording),
    "close codes": table(
      ["code", "reason", "come back?", "meaning"],
      Object.entries(closeCodes).map(([reason, { code, mayResume }]) => [
        String(code),
        `\`${reason}\``,
        mayResume ? "yes, with the resume token" : "no",
        closeWording[reason as keyof typeof closeCodes],
      ]),
    ),
    refusals: table(
      ["status", "body", "meaning"],
      Object.entries(refusals).map(([code, status]) => [
        String(status),
        `\`{"code":"${code}"}\``,
        refusalWording[code as keyof typeof refusals],
      ]),
    ),
    "end reasons": table(
      ["reason", "when"],
      endReasons.map((reason) => [`\`${reason}\``, endReasonWording[reason]]),
    ),
  };
}

/** `document` with its tables made anew. Throws when a pair of marks is missing. */
export function withTables(document: string): string {
  return Object.entries(protocolTables()).reduce((text, [name, content]) => {
    const [begin, end] = [`<!-- begin ${name} -->`, `<!-- end ${name} -->`];
    const from = text.indexOf(begin);
    const to = text.indexOf(end);
    if (from < 0 || to < from) throw new Error(`Cannot place the table "${name}": expected ${begin} … ${end}`);
    return `${text.slice(0, from + begin.length)}\n${content}\n${text.slice(to)}`;
  }, document);
}
