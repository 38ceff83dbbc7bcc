/**
 * A certificate for 127.0.0.1 that signs itself (X.509 in DER, RFC 5280), made anew for each use: for
 * tests of clients that insist on TLS.
 */
import { createSign, generateKeyPairSync } from "node:crypto";

export interface TlsIdentity {
  /** PEM; also what a client has to trust (`NODE_EXTRA_CA_CERTS`). */
  cert: string;
  key: string;
}

const tag = { integer: 0x02, bits: 0x03, octets: 0x04, oid: 0x06, text: 0x0c, utc: 0x17, sequence: 0x30, set: 0x31 };
const oid = {
  ecdsaWithSha256: [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02],
  commonName: [0x55, 0x04, 0x03],
  subjectAltName: [0x55, 0x1d, 0x11],
};

function der(kind: number, ...parts: (Uint8Array | readonly number[])[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([kind, ...size]), content]);
}

/** `YYMMDDHHMMSSZ`. */
const utcTime = (date: Date) => Buffer.from(`${date.toISOString().slice(2, 19).replace(/\D/g, "")}Z`);

export function selfSigned(): TlsIdentity {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const dayMs = 86_400_000;
  const algorithm = der(tag.sequence, der(tag.oid, oid.ecdsaWithSha256));
  const name = der(
    tag.sequence,
    der(tag.set, der(tag.sequence, der(tag.oid, oid.commonName), der(tag.text, Buffer.from("127.0.0.1")))),
  );
  const valid = der(
    tag.sequence,
    der(tag.utc, utcTime(new Date(Date.now() - dayMs))),
    der(tag.utc, utcTime(new Date(Date.now() + dayMs))),
  );
  const alternativeName = der(tag.octets, der(tag.sequence, der(0x87, [127, 0, 0, 1])));
  const extensions = der(tag.sequence, der(tag.sequence, der(tag.oid, oid.subjectAltName), alternativeName));
  const toBeSigned = der(
    tag.sequence,
    der(0xa0, der(tag.integer, [2])),
    der(tag.integer, [1]),
    algorithm,
    name,
    valid,
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, extensions),
  );
  const signature = createSign("sha256").update(toBeSigned).sign(privateKey);
  const certificate = der(tag.sequence, toBeSigned, algorithm, der(tag.bits, [0], signature));
  const lines = certificate.toString("base64").replace(/.{64}/g, "$&\n");
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}
