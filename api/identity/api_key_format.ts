/**
 * The text of an API key: `svc_tax_<live|test>_<random><checksum>`, with 32 random base62 digits
 * (190 bits) and the CRC-32 of all before it in 6. The checksum lets scanners and us tell a
 * mistyped key without asking the database.
 */
import { randomBytes } from "node:crypto";

export const keyEnvironments = ["live", "test"] as const;
export type KeyEnvironment = (typeof keyEnvironments)[number];

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const randomDigits = 32;
const checksumDigits = 6;
const pattern = new RegExp(`^svc_tax_(live|test)_[0-9A-Za-z]{${randomDigits + checksumDigits}}$`);

export const prefixOf = (environment: KeyEnvironment) => `svc_tax_${environment}_`;

export function newApiKey(environment: KeyEnvironment): string {
  const body = prefixOf(environment) + randomBase62(randomDigits);
  return body + checksumOf(body);
}

/** Whether `text` can be a key: its form and its checksum are right. */
export function isApiKey(text: string): boolean {
  return pattern.test(text) && checksumOf(text.slice(0, -checksumDigits)) === text.slice(-checksumDigits);
}

/** Digits that are equally likely: bytes beyond the last multiple of 62 are thrown again. */
function randomBase62(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 248 && text.length < length) text += base62.charAt(byte % 62);
    }
  }
  return text;
}

function checksumOf(text: string): string {
  let rest = crc32(Buffer.from(text));
  let digits = "";
  for (let index = 0; index < checksumDigits; index += 1) {
    digits = base62.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

/** CRC-32 of IEEE 802.3, as in zlib. */
export function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}
