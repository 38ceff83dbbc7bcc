import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseTrustedProxies } from "#contracts/client_address.ts";
import { gatewayHeader } from "#contracts/internal_runs.ts";
import { notePeer } from "#http/peer_address.ts";
import { accountKey, believedAddress } from "./attempt_limits.ts";

const addressOf = believedAddress("a secret of our own", parseTrustedProxies("10.0.0.0/8"));
const asked = (headers: Record<string, string>) => addressOf(new Request("http://api/", { headers }));

describe("a caller's address", () => {
  it("is the one that our gateway says", () => {
    const seen = { [gatewayHeader]: "a secret of our own", "x-forwarded-for": "192.0.2.7" };
    assert.equal(asked(seen), "192.0.2.7");
  });

  it("is the socket's for who comes past the gateway, or what a trusted proxy there says", () => {
    const from = (peer: string, headers: Record<string, string>) => {
      const request = new Request("http://api/", { headers });
      notePeer(request, peer);
      return addressOf(request);
    };
    const claim = { "x-forwarded-for": "6.6.6.6, 192.0.2.7" };
    assert.equal(from("198.51.100.1", claim), "198.51.100.1");
    assert.equal(from("::ffff:10.0.0.1", claim), "192.0.2.7");
    assert.equal(from("198.51.100.1", { ...claim, [gatewayHeader]: "a guess" }), "198.51.100.1");
  });

  it("is one and the same for all whose socket nobody knows, whatever they say of themselves", () => {
    const forged = [
      {},
      { "x-forwarded-for": "10.9.1.7" },
      { "x-forwarded-for": "10.9.2.7", [gatewayHeader]: "a guess" },
      { "x-forwarded-for": "10.9.3.7", [gatewayHeader]: "" },
    ];
    for (const headers of forged) assert.equal(asked(headers), "direct");
  });
});

describe("an account that is tried", () => {
  it("is one, however its address is written", () => {
    const variants = [
      "info@inn.example",
      "INFO@INN.EXAMPLE",
      "İNFO@inn.example",
      "ınfo@ınn.example",
      "ｉnfo@inn.example",
    ];
    assert.equal(new Set(variants.map(accountKey)).size, 1);
    assert.equal(accountKey("KASSE@inn.example"), accountKey("kasse@inn.example"), "the Kelvin sign");
    assert.notEqual(accountKey("info@inn.example"), accountKey("inf@inn.example"));
  });
});
