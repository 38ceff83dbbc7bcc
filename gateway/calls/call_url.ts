/** The gateway's own addresses below `/v1/voice/calls/`, and what an upgrade asks for. Pure. */
import { createHash, timingSafeEqual } from "node:crypto";
import { isUuid } from "#contracts/secrets.ts";
import { voiceProtocol } from "#contracts/voice_protocol.ts";

export type CallPath =
  | { kind: "call"; callId: string; secret: string }
  | { kind: "resume"; callId: string; token: string };

const secretPattern = /^[A-Za-z0-9_-]{20,200}$/;

/** Whether `path` belongs to the gateway, well-formed or not. */
export function isCallPath(path: string): boolean {
  return path.startsWith("/v1/voice/calls/");
}

/** What `path` names; undefined for what cannot exist. */
export function parseCallPath(path: string): CallPath | undefined {
  if (!isCallPath(path)) return undefined;
  const [callId = "", second = "", third, ...rest] = path.slice("/v1/voice/calls/".length).split("/");
  if (!isUuid(callId) || rest.length > 0) return undefined;
  const id = callId.toLowerCase();
  if (third === undefined) return secretPattern.test(second) ? { kind: "call", callId: id, secret: second } : undefined;
  return second === "resume" && secretPattern.test(third) ? { kind: "resume", callId: id, token: third } : undefined;
}

/** `last_seq` of a resume: 0 when absent, undefined when it is no whole number. */
export function lastSeqOf(query: string): number | undefined {
  const text = new URLSearchParams(query).get("last_seq") ?? "0";
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

/** Where a client comes back after a lost link: `…/resume/{token}`, to which it adds `?last_seq=N`. */
export function resumeUrlFor(gatewayPublicUrl: string, callId: string, token: string): string {
  return `${gatewayPublicUrl.replace(/^http/, "ws").replace(/\/+$/, "")}/v1/voice/calls/${callId}/resume/${token}`;
}

export type Subprotocol = { ok: true; chosen: string } | { ok: false };

/** Nothing asked is fine; when something is asked, ours must be among it. */
export function subprotocolFor(header: string | undefined): Subprotocol {
  if (header === undefined || header.trim() === "") return { ok: true, chosen: "" };
  const asked = header.split(",").map((name) => name.trim());
  return asked.includes(voiceProtocol) ? { ok: true, chosen: voiceProtocol } : { ok: false };
}

/** An empty list admits everyone; a client that sends no Origin is no browser and is admitted. */
export function isOriginAllowed(origin: string | undefined, allowed: readonly string[]): boolean {
  return allowed.length === 0 || origin === undefined || allowed.includes(origin);
}

export function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Compares a secret with a stored SHA-256 (hex) in constant time. */
export function matchesSha256(secret: string, sha256Hex: string): boolean {
  const expected = Buffer.from(sha256Hex, "hex");
  return expected.byteLength === 32 && timingSafeEqual(sha256(secret), expected);
}
