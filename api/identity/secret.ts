/** Random credentials and what is kept of them: the SHA-256, the prefix and the last four characters. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { secretBytes } from "#contracts/secrets.ts";

export interface NewSecret {
  /** Shown once, never stored. */
  secret: string;
  sha256: string;
  prefix: string;
  lastFour: string;
}

/** `prefix` followed by 32 random bytes in base64url. */
export function newSecret(prefix = ""): NewSecret {
  const secret = prefix + randomBytes(secretBytes).toString("base64url");
  return { secret, sha256: sha256Hex(secret), prefix, lastFour: secret.slice(-4) };
}

export function sha256Hex(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Compares without telling by its duration where they differ. */
export function equalSecrets(left: string, right: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}
