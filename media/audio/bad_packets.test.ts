import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BadPacketWatch } from "./bad_packets.ts";

/** Plays packets of 20 ms, `x` a bad one; answers after which of them the client was told, counted from 1. */
function told(packets: string): number[] {
  const watch = new BadPacketWatch();
  let bad = 0;
  return [...packets].flatMap((packet, i) => {
    if (packet === "x") bad += 1;
    return watch.heard(bad, 20) ? [i + 1] : [];
  });
}

const seconds = (n: number, pattern: string) => pattern.repeat((n * 50) / pattern.length);

describe("bad packets", () => {
  it("are told at the fifth in a row, once", () => {
    assert.deepEqual(told("....xxxx.xxxxxxxxxx"), [14]);
  });
  it("are told when they are a fifth of five seconds, not below", () => {
    assert.deepEqual(told(seconds(15, "x....")), [250]);
    assert.deepEqual(told(seconds(15, "x.........")), []);
  });
  it("are told again after five seconds without one", () => {
    assert.deepEqual(told(`xxxxx${seconds(5, ".")}${seconds(5, ".")}xxxxx`), [5, 510]);
    assert.deepEqual(told(`xxxxx${seconds(2, ".")}xxxxx`), [5]);
  });
});
