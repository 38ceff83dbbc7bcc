import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { withoutTokens } from "./seat_protocol.ts";

describe("what a LiveKit server says of a refusal", () => {
  it("is logged without the token that it repeats, whole or cut short", () => {
    const token = "eyJhbGciOiJIUzI1NiJ9.eyJraW5kIjoiYWdlbnQi-_fQ.c2lnbmF0dXJl";
    assert.equal(withoutTokens(`401 - invalid token: ${token}, error: x`), "401 - invalid token: (token), error: x");
    assert.equal(withoutTokens(`invalid token: ${token.slice(0, 30)}`), "invalid token: (token)");
    assert.equal(withoutTokens("connection refused (os error 111)"), "connection refused (os error 111)");
  });
});
