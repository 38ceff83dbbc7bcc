import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { decodeAlaw, decodeMulaw, encodeAlaw, encodeMulaw } from "./g711.ts";

const everySample = Int16Array.from({ length: 65_536 }, (_, index) => index - 32_768);
const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte);
const sha256 = (values: Uint8Array | Int16Array): string => createHash("sha256").update(values).digest("hex");

const laws = [
  {
    name: "mu-law",
    encode: encodeMulaw,
    decode: decodeMulaw,
    // Digests of what ulaw_compress of the ITU's G.191 library and Python's audioop.ulaw2lin answer.
    encodedSha256: "90c29de505fb68e766118303bd552a16005dcf810873698bee1d8f3b247ce28c",
    decodedSha256: "3dab54339e520bb2c924826e3b72a917a2b612e9fd12fc867500f1d983a75827",
    known: [
      [0, 0xff],
      [-1, 0x7f],
      [31 * 4, 0xef],
      [8031 * 4, 0x80],
      [-8031 * 4, 0x00],
      [32_767, 0x80],
      [-32_768, 0x00],
    ],
    negativeZero: [0x7f],
  },
  {
    name: "A-law",
    encode: encodeAlaw,
    decode: decodeAlaw,
    // Digests of what alaw_compress of G.191, and audioop.lin2alaw and audioop.alaw2lin answer.
    encodedSha256: "38488f6fd710f4686360edc4d38639f96c491595ef93f8eb8d62d5e07ca6ce7b",
    decodedSha256: "e04788d110e58ff8c70c93b8480190d973e3b67876b6119abbaec766cc75c174",
    known: [
      [0, 0xd5],
      [-1, 0x55],
      [32_767, 0xaa],
      [-32_768, 0x2a],
    ],
    negativeZero: [],
  },
] as const;

describe("G.711", () => {
  for (const { name, encode, decode, encodedSha256, decodedSha256, known, negativeZero } of laws) {
    it(`${name} encodes each of the 65,536 samples as the ITU's library does`, () => {
      assert.equal(sha256(encode(everySample, new Uint8Array(65_536))), encodedSha256);
    });

    it(`${name} decodes each of the 256 bytes as another implementation does`, () => {
      assert.equal(sha256(decode(everyByte, new Int16Array(256))), decodedSha256);
    });

    it(`${name} has the ends and the middle where the recommendation has them`, () => {
      for (const [sample, byte] of known) {
        assert.equal(encode(Int16Array.of(sample), new Uint8Array(1))[0], byte, `sample ${sample}`);
      }
    });

    it(`${name} gives every byte back, but for the negative zero`, () => {
      const samples = decode(everyByte, new Int16Array(256));
      const again = encode(samples, new Uint8Array(256));
      const changed = [...everyByte].filter((byte) => again[byte] !== byte);
      assert.deepEqual(changed, negativeZero);
      assert.deepEqual(decode(again, new Int16Array(256)), samples);
    });
  }
});
