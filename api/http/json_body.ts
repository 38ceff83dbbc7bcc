/** Reads a JSON body within a bound of bytes, whatever the request says of its length. */
import { ApiError } from "#contracts/errors.ts";
import { invalidRequest, textProblemIn } from "./validation.ts";

export const bodyBytesMaxDefault = 1024 * 1024;

export interface JsonBodyOptions {
  bytesMax?: number | undefined;
  /**
   * Puts U+FFFD where text cannot be stored instead of refusing it: for reports of our own gateway,
   * of which one odd character of one caller must not lose the rest.
   */
  repairText?: boolean | undefined;
  /**
   * Reads the text instead of `JSON.parse`, where numbers must keep their digits. A field that is to count as
   * absent is undefined: a strict schema sees its name, the handler does not. @throws SyntaxError
   */
  parse?: ((text: string) => unknown) | undefined;
}

/**
 * A body's JSON value; an empty body is `{}`, so that requests whose fields are all optional need none.
 * @throws ApiError bad_request for what is no JSON in UTF-8
 */
export function parseJsonBody(bytes: Uint8Array, options: JsonBodyOptions = {}): unknown {
  if (bytes.length === 0) return {};
  const value = parseJson(bytes, options);
  const problem = textProblemIn(value);
  if (problem) throw invalidRequest("body", problem.path, problem.message);
  return value;
}

function parseJson(bytes: Uint8Array, { repairText = false, parse = JSON.parse }: JsonBodyOptions): unknown {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (repairText && /\\u(0000|d[89a-f])/i.test(text)) return JSON.parse(text, repaired);
    return parse(text);
  } catch {
    throw invalidRequest("body", "", "Expected JSON in UTF-8", "json_invalid");
  }
}

const repaired = (_key: string, value: unknown) =>
  typeof value === "string" ? value.replace(/\p{Surrogate}|\0/gu, "\uFFFD") : value;

/** Takes the fields that are undefined out of `value` itself. */
export function withoutAbsent(value: unknown): unknown {
  const open = [value];
  while (open.length > 0) {
    const one = open.pop();
    if (typeof one !== "object" || one === null) continue;
    for (const [name, field] of Object.entries(one)) {
      if (field !== undefined) open.push(field);
      else if (!Array.isArray(one)) delete (one as Record<string, unknown>)[name];
    }
  }
  return value;
}

/**
 * Whether a body of this content type is read as JSON: one that says so, or says nothing.
 * JSON is UTF-8 (RFC 8259, section 8.1): another charset is another type.
 */
export function isJsonType(contentType: string | null): boolean {
  if (contentType === null) return true;
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  const charset = parameters.map((one) => /^\s*charset\s*=\s*"?([^"\s]*)/.exec(one)?.[1]).find(Boolean);
  return (
    /^\s*(application\/([\w.-]+\+)?json|text\/json)\s*$/.test(type) && /^(utf-?8|us-ascii)$/.test(charset ?? "utf-8")
  );
}

/** A body's bytes. @throws ApiError payload_too_large above `bytesMax` */
export async function readBodyBytes(request: Request, bytesMax = bodyBytesMaxDefault): Promise<Uint8Array> {
  const tooLarge = () => new ApiError("payload_too_large", { details: { body: `Expected at most ${bytesMax} bytes` } });
  if (Number(request.headers.get("content-length") ?? 0) > bytesMax) throw tooLarge();
  if (!request.body) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.byteLength;
    if (length > bytesMax) {
      await reader.cancel().catch(() => undefined);
      throw tooLarge();
    }
    chunks.push(value);
  }
  if (chunks.length === 1 && chunks[0]) return chunks[0];
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}
