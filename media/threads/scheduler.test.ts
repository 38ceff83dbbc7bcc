import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualClock } from "#test/kit/virtual_clock.ts";
import { type BeatClock, BeatList, createScheduler } from "./scheduler.ts";

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

/** Stands still until told, and may come late. */
class StoppedClock implements BeatClock {
  now = 1000;
  wake: { atMs: number; run: () => void } | undefined;
  nowMs = (): number => this.now;
  wakeIn = (delayMs: number, run: () => void): (() => void) => {
    assert.equal(this.wake, undefined, "one timer at a time");
    this.wake = { atMs: this.now + delayMs, run };
    return () => {
      this.wake = undefined;
    };
  };
  /** Runs the timer that is set, `lateMs` after it was due. */
  fire(lateMs = 0): void {
    const due = this.wake;
    assert.ok(due, "a timer is set");
    this.wake = undefined;
    this.now = due.atMs + lateMs;
    due.run();
  }
}

describe("scheduler", () => {
  it("beats while somebody listens, and keeps no timer when nobody does", () => {
    const clock = new StoppedClock();
    const scheduler = createScheduler(clock);
    assert.equal(clock.wake, undefined);
    const times: number[] = [];
    const stop = scheduler.onBeat((nowMs) => times.push(nowMs));
    for (let i = 0; i < 3; i += 1) clock.fire();
    assert.deepEqual(times, [1010, 1020, 1030]);
    stop();
    clock.fire();
    assert.equal(clock.wake, undefined);
    assert.equal(times.length, 3);

    let ran = 0;
    scheduler.after(1, () => {
      ran += 1;
    });
    clock.fire();
    assert.deepEqual([ran, clock.wake], [1, undefined]);
  });

  it("keeps to its grid after a late beat, and skips the beats that a stall has missed", () => {
    const clock = new StoppedClock();
    const scheduler = createScheduler(clock);
    const times: number[] = [];
    scheduler.onBeat((nowMs) => times.push(nowMs));
    clock.fire(4);
    clock.fire();
    clock.fire(35);
    clock.fire();
    assert.deepEqual(times, [1014, 1020, 1065, 1070]);
    scheduler.close();
    assert.equal(clock.wake, undefined);
  });

  it("sets one timer though a listener comes during a beat, when all others have left", () => {
    const clock = new StoppedClock();
    const scheduler = createScheduler(clock);
    const times: number[] = [];
    const stop = scheduler.onBeat(() => {
      stop();
      scheduler.onBeat((nowMs) => times.push(nowMs));
    });
    clock.fire();
    clock.fire();
    assert.deepEqual(times.at(-1), 1020);
  });

  it("beats on the thread's own timers", async () => {
    const scheduler = createScheduler();
    await new Promise<void>((resolve) => {
      const stop = scheduler.onBeat(() => {
        stop();
        resolve();
      });
    });
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
