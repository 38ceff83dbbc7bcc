/**
 * Credentials of other people's services, encrypted at rest: AES-256-GCM under a key derived from
 * `ENCRYPTION_KEY` with HKDF (RFC 5869). Sealed form: one byte of version, 12 of nonce, the
 * ciphertext, 16 of tag. The row's id is bound in, so that a sealed value moved to another row does not open.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

const version = 1;
const nonceBytes = 12;
const tagBytes = 16;

export interface Encryption {
  seal(text: string, boundTo: string): Buffer;
  /** @throws Error when the value was not sealed with this key for this row */
  open(sealed: Uint8Array, boundTo: string): string;
}

/** @param key any text; its entropy is the strength */
export function createEncryption(key: string): Encryption {
  const derived = Buffer.from(hkdfSync("sha256", key, "", "frontdesk stored credentials v1", 32));
  return {
    seal(text, boundTo) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", derived, nonce).setAAD(Buffer.from(boundTo));
      const ciphertext = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([Buffer.from([version]), nonce, ciphertext, cipher.getAuthTag()]);
    },
    open(sealed, boundTo) {
      const bytes = Buffer.from(sealed);
      if (bytes[0] !== version || bytes.length < 1 + nonceBytes + tagBytes) throw new Error("Expected a sealed value");
      const nonce = bytes.subarray(1, 1 + nonceBytes);
      const decipher = createDecipheriv("aes-256-gcm", derived, nonce).setAAD(Buffer.from(boundTo));
      decipher.setAuthTag(bytes.subarray(-tagBytes));
      const ciphertext = bytes.subarray(1 + nonceBytes, -tagBytes);
      return Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString("utf8");
    },
  };
}
