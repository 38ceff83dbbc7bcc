import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "#test/kit/gateway_fixture.ts";
import { BodyQueue } from "../transport/body_queue.ts";
import type { HttpRequest } from "../transport/transport.ts";
import { BodyIntake, type IntakeLimits } from "./body_intake.ts";
import type { Requester } from "./requester.ts";

const limits: IntakeLimits = {
  requestBytes: 100,
  shares: { total: 250, address: 200, tenant: 150 },
  idleMs: 10_000,
  totalMs: 60_000,
  bytesPerSecond: 10,
};
const from = (address: string, tenant: string): Requester => ({ address, tenant, kind: "other" });

/** A request whose body arrives as the test says. */
function arriving(headers: Record<string, string> = {}) {
  const queue = new BodyQueue({ pause: () => undefined, resume: () => undefined });
  const request: HttpRequest = {
    method: "POST",
    path: "/",
    query: "",
    headers,
    remoteAddress: "",
    signal: new AbortController().signal,
    hasBody: true,
    body: () => queue,
  };
  return { request, queue, push: (bytes: number, isLast = false) => queue.push(new Uint8Array(bytes), isLast) };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("a body taken in", () => {
  it("is refused by what it says or by what it is, when it is too large", async () => {
    const intake = new BodyIntake(new ManualClock(), limits);
    const said = arriving({ "content-length": "101" });
    await assert.rejects(intake.take(said.request, from("a", "t")), { code: "payload_too_large" });
    const grown = arriving();
    const taken = assert.rejects(intake.take(grown.request, from("a", "t")), { code: "payload_too_large" });
    grown.push(60);
    grown.push(60);
    await taken;
    assert.equal(intake.heldBytes, 0);
  });

  it("is refused where there is no memory left for its sender, its address, or anybody", async () => {
    const intake = new BodyIntake(new ManualClock(), limits);
    const take = async (requester: Requester, bytes: number) => {
      const { request, push } = arriving();
      push(bytes, true);
      return intake.take(request, requester);
    };
    const held = [await take(from("a", "t"), 100)];
    await assert.rejects(take(from("a", "t"), 60), { code: "unavailable" });
    held.push(await take(from("a", "u"), 60));
    await assert.rejects(take(from("a", "v"), 60), { code: "unavailable" });
    held.push(await take(from("b", "w"), 60));
    await assert.rejects(take(from("b", "x"), 60), { code: "unavailable" });
    for (const { release } of [...held, ...held]) release();
    assert.equal(intake.heldBytes, 0);
    assert.equal((await take(from("b", "x"), 60)).bytes, 60);
  });

  it("has to move, and to come at a pace", async () => {
    const clock = new ManualClock();
    const intake = new BodyIntake(clock, limits);
    const still = arriving();
    const stands = assert.rejects(intake.take(still.request, from("a", "t")), { code: "request_timeout" });
    still.push(1);
    await settled();
    clock.advance(limits.idleMs + 2000);
    await stands;

    const slow = arriving();
    let seconds = 0;
    const crawls = assert
      .rejects(intake.take(slow.request, from("a", "t")), { code: "request_timeout" })
      .then(() => -1);
    for (let isOver = false; !isOver; seconds += 1) {
      slow.push(1);
      await settled();
      clock.advance(1000);
      isOver = (await Promise.race([crawls, settled()])) === -1;
      assert.ok(seconds < 100);
    }
    // Every byte bought a tenth of a second.
    assert.ok(seconds >= 60 && seconds <= 72, `${seconds} s`);
    assert.equal(intake.heldBytes, 0);
  });

  it("takes its time where it comes fast enough", async () => {
    const clock = new ManualClock();
    const intake = new BodyIntake(clock, {
      ...limits,
      requestBytes: 10_000,
      shares: { total: 1e6, address: 1e6, tenant: 1e6 },
    });
    const { request, push } = arriving();
    const taken = intake.take(request, from("a", "t"));
    for (let second = 0; second < 200; second += 1) {
      push(10);
      await settled();
      clock.advance(1000);
    }
    push(0, true);
    assert.equal((await taken).bytes, 2000);
  });
});
