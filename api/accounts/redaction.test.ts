import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { isSensitive, redacted } from "./redaction.ts";

describe("redaction", () => {
  it("covers sensitive names however they are written, and no others", () => {
    for (const name of ["password", "PASSWORD", "new-password", "api_key", "apiKey", "X-API-Key", "accessToken"]) {
      assert.ok(isSensitive(name), name);
    }
    for (const name of ["nights", "idempotency_key", "currency", "jurisdiction_code", "guest_ages", "purpose"]) {
      assert.ok(!isSensitive(name), name);
    }
  });

  it("covers short names where they are words of their own", () => {
    for (const name of [
      "pwd",
      "auth",
      "pin",
      "PIN",
      "access_key",
      "accessKey",
      "cardPan",
      "pan",
      "user-pwd",
      "doorPin",
    ]) {
      assert.ok(isSensitive(name), name);
    }
    for (const name of [
      "shipping",
      "author",
      "authority",
      "company",
      "span",
      "keyboard",
      "idempotencyKey",
      "opinion",
    ]) {
      assert.ok(!isSensitive(name), name);
    }
  });

  it("covers card numbers as text, as numbers and as names, and leaves other digits", () => {
    // Test numbers that payment companies publish; none is a card's.
    for (const number of ["4111111111111111", "4111 1111 1111 1111", "5555-5555-5555-4444", "378282246310005"]) {
      const said = JSON.stringify(redacted({ notes: `pay with ${number}.`, [`for ${number}`]: 1 }));
      assert.ok(!said.includes(number), said);
    }
    assert.deepEqual(redacted({ n: 4111111111111111 }), { n: "[redacted]" });
    const kept = { at: 1795320000000, amount: "12345678.123456789012", booking: "4111111111111112", nights: 2 };
    assert.deepEqual(redacted(kept), kept);
  });

  it("lets no sensitive value through, wherever it stands", () => {
    const secret = "hunter2-and-more";
    const places = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { depthSize: "medium", withCrossShrink: true },
        fc.record({ password: fc.constant(secret), nights: fc.integer() }),
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(fc.string(), tie("value"), { maxKeys: 4 }),
        fc.record({ card: fc.record({ holder: tie("value"), number: fc.constant(secret) }) }),
      ),
    }));
    fc.assert(fc.property(places.value, (value) => !JSON.stringify(redacted(value)).includes(secret)));
  });

  it("leaves the rest as it was, and cuts what is too deep or too long", () => {
    const stay = { nights: 2, rooms: [{ price: "10.00", breakfast: true }], note: null };
    assert.deepEqual(redacted(stay), stay);
    let deep: unknown = "end";
    for (let level = 0; level < 50; level += 1) deep = { deep };
    assert.match(JSON.stringify(redacted(deep)), /too deep/);
    assert.ok(JSON.stringify(redacted({ text: "x".repeat(100_000) })).length < 3000);
    assert.equal((redacted(Array.from({ length: 1000 }, () => 1)) as unknown[]).length, 201);
  });
});
