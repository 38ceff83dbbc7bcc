/**
 * A client's text message: parsed, checked against its schema, reduced to the fields we know.
 * Unknown types and fields are ignored; a known type with a wrong field is bad.
 */
import type { TObject } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { type ClientMessage, type ClientMessageType, clientMessageSchemas } from "#contracts/voice_protocol.ts";

export type Inbound =
  | { kind: "message"; message: ClientMessage }
  | { kind: "ignored" }
  /** `ref` names the type and field, never their content. */
  | { kind: "bad"; problem: string; ref?: string };

/** Deeper nesting than any honest metadata; copying it between threads would exhaust a stack. */
const depthMax = 32;

interface Checked {
  check: TypeCheck<TObject>;
  fields: readonly string[];
}

const checks = new Map<string, Checked>(
  Object.entries(clientMessageSchemas).map(([type, schema]) => [
    type,
    { check: TypeCompiler.Compile(schema), fields: Object.keys(schema.properties) },
  ]),
);

export function parseInbound(text: string): Inbound {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "bad", problem: "Expected a JSON object" };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { kind: "bad", problem: "Expected a JSON object" };
  }
  const fields = value as Record<string, unknown>;
  const { type } = fields;
  if (typeof type !== "string") return { kind: "bad", problem: "Expected a string in type", ref: "type" };
  const known = checks.get(type);
  if (!known) return { kind: "ignored" };

  const first = known.check.Errors(fields).First();
  if (first) {
    const path = first.path.replaceAll("/", ".").slice(0, 200);
    return { kind: "bad", problem: first.message.slice(0, 200), ref: `${type}${path}` };
  }
  if (isDeeperThan(fields, depthMax)) {
    return { kind: "bad", problem: `Expected at most ${depthMax} levels of nesting`, ref: type };
  }
  const message: Record<string, unknown> = {};
  for (const name of known.fields) if (fields[name] !== undefined) message[name] = fields[name];
  return { kind: "message", message: message as { type: ClientMessageType } as ClientMessage };
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((child) => isDeeperThan(child, levels - 1));
}

/** The bytes of a `media` payload, or undefined when it is not base64 (RFC 4648, section 4). */
export function audioFromBase64(payload: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(payload) || payload.replace(/=+$/, "").length % 4 === 1) return undefined;
  return new Uint8Array(Buffer.from(payload, "base64"));
}
