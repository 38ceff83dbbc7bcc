import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualClock } from "#test/kit/virtual_clock.ts";
import { BeatList, beatMs, createScheduler } from "./scheduler.ts";

describe("beat list", () => {
  it("runs a deadline once, on the first beat at or after it", () => {
    const list = new BeatList();
    const ran: number[] = [];
    list.at(25, () => ran.push(25));
    for (const nowMs of [10, 20, 30, 40]) {
      list.beat(nowMs);
      if (nowMs === 20) assert.deepEqual(ran, []);
    }
    assert.deepEqual(ran, [25]);
    assert.ok(list.isEmpty);
  });

  it("lets a listener leave during a beat, itself included", () => {
    const list = new BeatList();
    const heard: string[] = [];
    const leaveFirst = list.onBeat(() => {
      heard.push("first");
      leaveFirst();
      leaveSecond();
    });
    const leaveSecond = list.onBeat(() => heard.push("second"));
    list.beat(10);
    list.beat(20);
    assert.deepEqual(heard, ["first"]);
  });
});

describe("scheduler", () => {
  it("beats while somebody listens, and keeps no timer when nobody does", async () => {
    const scheduler = createScheduler();
    const times: number[] = [];
    await new Promise<void>((resolve) => {
      const stop = scheduler.onBeat((nowMs) => {
        times.push(nowMs);
        if (times.length < 5) return;
        stop();
        resolve();
      });
    });
    const firstMs = times[0] ?? 0;
    // Timers never fire early by more than their own millisecond; how late they are is the machine's affair.
    assert.ok((times.at(-1) ?? 0) - firstMs >= 4 * beatMs - 5);
    await new Promise<void>((resolve) => scheduler.after(1, resolve));
    assert.equal(process.getActiveResourcesInfo().includes("Timeout"), false);
    scheduler.close();
  });
});

describe("virtual clock", () => {
  it("wakes sleepers at their own time and in order, between beats too", async () => {
    const clock = new VirtualClock();
    const woke: [string, number][] = [];
    const { signal } = new AbortController();
    for (const [name, ms] of [
      ["late", 33],
      ["early", 7],
      ["middle", 20],
    ] as const) {
      void clock.sleep(ms, signal).then(() => woke.push([name, clock.nowMs()]));
    }
    await clock.advance(100);
    assert.deepEqual(woke, [
      ["early", 7],
      ["middle", 20],
      ["late", 33],
    ]);
    assert.equal(clock.nowMs(), 100);
  });

  it("ends a sleep that is aborted", async () => {
    const clock = new VirtualClock();
    const abort = new AbortController();
    const asleep = clock.sleep(1_000_000, abort.signal);
    abort.abort();
    await asleep;
    assert.equal(clock.nowMs(), 0);
  });
});
