/** Ids of our own spans: made of what they tell of, so that a trace that is made again has the same ones. */
import { createHash } from "node:crypto";

/** 16 hex digits, never all zero. */
export function spanIdOf(...parts: readonly (string | number)[]): string {
  const id = createHash("sha256").update(parts.join(" ")).digest("hex").slice(0, 16);
  return id === "0".repeat(16) ? "0000000000000001" : id;
}
