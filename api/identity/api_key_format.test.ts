import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { crc32, isApiKey, keyEnvironments, newApiKey } from "./api_key_format.ts";

describe("the text of an API key", () => {
  it("carries the CRC-32 that everybody computes", () => {
    assert.equal(crc32(Buffer.from("123456789")), 0xcbf43926); // The check value of the CRC catalogue.
  });

  it("is recognized as it was made", () => {
    for (const environment of keyEnvironments) {
      const keys = Array.from({ length: 200 }, () => newApiKey(environment));
      assert.ok(keys.every(isApiKey));
      assert.equal(new Set(keys).size, keys.length);
      assert.ok(keys.every((key) => key.startsWith(`svc_tax_${environment}_`)));
    }
  });

  it("is refused with any one character changed, dropped or swapped with its neighbour", () => {
    const key = newApiKey("live");
    const character = fc.constantFrom(..."0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    fc.assert(
      fc.property(fc.integer({ min: 14, max: key.length - 1 }), character, (at, other) => {
        const changed = key.slice(0, at) + other + key.slice(at + 1);
        const dropped = key.slice(0, at) + key.slice(at + 1);
        const swapped = key.slice(0, at - 1) + key.charAt(at) + key.charAt(at - 1) + key.slice(at + 1);
        for (const wrong of [changed, dropped, swapped]) assert.equal(isApiKey(wrong), wrong === key);
      }),
    );
  });
});
