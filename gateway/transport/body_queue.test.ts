import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BodyQueue } from "./body_queue.ts";

describe("a request's body", () => {
  it("leaves its connection reading when it is complete, also when the last of it came through a pause", async () => {
    const flow: string[] = [];
    const body = new BodyQueue({ pause: () => flow.push("pause"), resume: () => flow.push("resume") });
    body.push(new Uint8Array(100_000), false);
    assert.deepEqual(flow, ["pause"]);
    body.push(new Uint8Array(1), true);
    assert.deepEqual(flow, ["pause", "resume"]);
    let bytes = 0;
    for await (const chunk of body) bytes += chunk.byteLength;
    assert.equal(bytes, 100_001);
    assert.deepEqual(flow, ["pause", "resume"]);
  });
});
