/** The request that an HTTP tool makes of a model's arguments: params go where `in` says. Pure; calls and runs share it. */
import type { ToolParam } from "#contracts/tool_params.ts";

export interface HttpToolDefinition {
  name: string;
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `{name}` stands for a param in the path. */
  url: string;
  headers?: readonly { key: string; value: string }[];
  params?: readonly (ToolParam & { in?: "path" | "query" | "body" | "header" })[];
}

export interface HttpToolRequest {
  url: string;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  headers: Record<string, string>;
  body?: string;
}

/** What the model asked for cannot be sent. The message is for the model or the author of the workflow. */
export class HttpToolError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "HttpToolError";
  }
}

/** Headers that a model's argument may not set: they belong to the connection, or prove who asks. */
const ownHeaders = new Set(["host", "authorization", "cookie", "content-length", "transfer-encoding", "connection"]);

/** @throws HttpToolError */
export function httpToolRequest(tool: HttpToolDefinition, given: Readonly<Record<string, unknown>>): HttpToolRequest {
  const sentIn = (place: "path" | "query" | "body" | "header") =>
    (tool.params ?? [])
      .filter((param) => (param.in ?? "body") === place && given[param.name] !== undefined)
      .map(({ name }): [string, unknown] => [name, given[name]]);
  const method = tool.method ?? "GET";
  const body = sentIn("body");
  const sendsBody = body.length > 0 && method !== "GET";
  const url = urlOf(tool, sentIn("path"), sendsBody ? sentIn("query") : [...sentIn("query"), ...body]);
  return {
    url,
    method,
    headers: {
      ...(sendsBody && { "content-type": "application/json" }),
      ...Object.fromEntries((tool.headers ?? []).map(({ key, value }) => [key.toLowerCase(), headerValue(key, value)])),
      ...Object.fromEntries(sentIn("header").map(([name, value]) => givenHeader(name, textOf(value)))),
    },
    ...(sendsBody && { body: JSON.stringify(Object.fromEntries(body)) }),
  };
}

function urlOf(
  tool: HttpToolDefinition,
  path: readonly [string, unknown][],
  query: readonly [string, unknown][],
): string {
  let target = tool.url;
  for (const [name, value] of path) {
    const text = textOf(value);
    if (text === "." || text === "..") throw new HttpToolError(`Cannot call ${tool.name}: /${name} may not be ${text}`);
    target = target.replaceAll(`{${name}}`, encodeURIComponent(text));
  }
  if (!URL.canParse(target)) throw new HttpToolError(`Cannot call ${tool.name}: ${tool.url} is no URL`);
  const url = new URL(target);
  for (const [name, value] of query) url.searchParams.append(name, textOf(value));
  return url.href;
}

function givenHeader(name: string, value: string): [string, string] {
  const lower = name.toLowerCase();
  if (ownHeaders.has(lower)) throw new HttpToolError(`The header ${name} cannot be an argument`);
  return [lower, headerValue(name, value)];
}

function headerValue(name: string, value: string): string {
  for (const character of value) {
    const code = character.codePointAt(0) ?? 0;
    if ((code < 0x20 && code !== 0x09) || code === 0x7f || code > 0xff) {
      throw new HttpToolError(`The header ${name} has a character that no header may have`);
    }
  }
  return value;
}

function textOf(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
