import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { gatewayHeader } from "#contracts/internal_runs.ts";
import { believedAddress } from "./attempt_limits.ts";

const addressOf = believedAddress("a secret of our own");
const asked = (headers: Record<string, string>) => addressOf(new Request("http://api/", { headers }));

describe("a caller's address", () => {
  it("is the one that our gateway saw, the last that it wrote", () => {
    const seen = { [gatewayHeader]: "a secret of our own", "x-forwarded-for": "6.6.6.6, 192.0.2.7" };
    assert.equal(asked(seen), "192.0.2.7");
  });

  it("is one and the same for all who come past the gateway, whatever they say of themselves", () => {
    const forged = [
      {},
      { "x-forwarded-for": "10.9.1.7" },
      { "x-forwarded-for": "10.9.2.7", [gatewayHeader]: "a guess" },
      { "x-forwarded-for": "10.9.3.7", [gatewayHeader]: "" },
    ];
    for (const headers of forged) assert.equal(asked(headers), "direct");
  });
});
