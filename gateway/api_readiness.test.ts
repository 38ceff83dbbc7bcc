import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { apiLostMs, createApiReadiness } from "./api_readiness.ts";

describe("an api behind a gateway", () => {
  it("is there from its first answer on, and gone when it has failed for a while", async () => {
    let answers = false;
    let nowMs = 1000;
    const api = createApiReadiness(async () => answers, { nowMs: () => nowMs });
    assert.equal(await api.isReady(), false, "not yet there");
    answers = true;
    assert.equal(await api.isReady(), true);
    answers = false;
    assert.equal(await api.isReady(), true, "one miss");
    nowMs += apiLostMs - 1;
    assert.equal(await api.isReady(), true);
    nowMs += 1;
    assert.equal(await api.isReady(), false);
    answers = true;
    assert.equal(await api.isReady(), true);
    answers = false;
    assert.equal(await api.isReady(), true, "counted anew");
  });
});
