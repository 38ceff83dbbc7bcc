import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Playout } from "./playout.ts";

const rateHz = 8000;
const perMs = rateHz / 1000;

/** A playout whose output is kept: samples by utterance, marks in their place. */
function player(leadMs = 100, frameMs = 20) {
  const out: (number | string)[] = [];
  let frames = 0;
  const playout = new Playout(
    { sampleRateHz: rateHz, frameMs, leadMs },
    {
      frame(samples) {
        frames += 1;
        out.push(...samples);
      },
      mark: (name) => out.push(name),
    },
  );
  return {
    playout,
    out,
    get frames() {
      return frames;
    },
    sentMs: () => out.filter((entry) => typeof entry === "number").length / perMs,
  };
}

const samplesOf = (ms: number, value = 1) => new Int16Array(Math.round(ms * perMs)).fill(value);

describe("playout", () => {
  it("sends the first frame at once, fills the lead in a burst and goes on in real time", () => {
    const p = player(100);
    p.playout.begin("a");
    p.playout.push(samplesOf(1000));
    p.playout.pump(5000);
    assert.equal(p.sentMs(), 100);
    p.playout.pump(5019);
    assert.equal(p.sentMs(), 100);
    p.playout.pump(5020);
    assert.equal(p.sentMs(), 120);
    for (let nowMs = 5030; nowMs <= 5500; nowMs += 10) p.playout.pump(nowMs);
    assert.equal(p.sentMs(), 600);
  });

  it("ends with a short frame and the end mark, and sends nothing between utterances", () => {
    const p = player(400);
    p.playout.begin("a");
    p.playout.push(samplesOf(50));
    p.playout.pump(0);
    assert.equal(p.sentMs(), 40);
    p.playout.finish();
    p.playout.pump(1);
    assert.equal(p.sentMs(), 50);
    assert.deepEqual(
      p.out.filter((entry) => typeof entry === "string"),
      ["start:a", "end:a"],
    );
    assert.equal(p.out.at(-1), "end:a");
    p.playout.pump(1000);
    assert.equal(p.out.at(-1), "end:a");
  });

  it("does not run ahead to make up for speech that came late", () => {
    const p = player(100);
    p.playout.begin("a");
    p.playout.push(samplesOf(20));
    p.playout.pump(0);
    p.playout.push(samplesOf(1000));
    p.playout.pump(5000);
    assert.equal(p.sentMs(), 120, "the lead anew, not five seconds at once");
  });

  it("stops above 1 s of unsent audio and goes on when it falls", () => {
    const p = player(30_000);
    p.playout.begin("a");
    p.playout.push(samplesOf(40));
    p.playout.reportUnsent(1001);
    p.playout.pump(0);
    assert.equal(p.sentMs(), 0);
    p.playout.reportUnsent(1000);
    p.playout.pump(0);
    assert.equal(p.sentMs(), 40);
  });

  const playedCases: {
    name: string;
    at: number;
    marks: { name: string; at: number; cleared?: boolean }[];
    played: number;
  }[] = [
    { name: "nothing sent", at: -1, marks: [], played: 0 },
    { name: "within the start delay", at: 60, marks: [], played: 0 },
    { name: "by the clock, less the start delay", at: 300, marks: [], played: 200 },
    { name: "from the newest mark on", at: 300, marks: [{ name: "start:a", at: 30 }], played: 290 },
    {
      name: "a cleared mark does not count",
      at: 300,
      marks: [{ name: "start:a", at: 30, cleared: true }],
      played: 200,
    },
    { name: "an unknown mark does not count", at: 300, marks: [{ name: "start:b", at: 30 }], played: 200 },
    { name: "never more than was sent", at: 90_000, marks: [{ name: "start:a", at: 30 }], played: 1000 },
  ];
  for (const { name, at, marks, played } of playedCases) {
    it(`estimates what was played: ${name}`, () => {
      const p = player(100);
      p.playout.begin("a");
      p.playout.push(samplesOf(1000));
      p.playout.finish();
      if (at >= 0)
        for (let nowMs = 0; nowMs <= at; nowMs += 10) {
          p.playout.pump(nowMs);
          for (const mark of marks) if (mark.at === nowMs) p.playout.heardMark(mark.name, mark.cleared === true, nowMs);
        }
      assert.equal(p.playout.cut(at)?.playedMs, played);
    });
  }

  it("takes for heard what the client acknowledged, by its marks or by what it took", () => {
    const acknowledged = (acknowledge: (p: ReturnType<typeof player>, nowMs: number) => void, atMs: number) => {
      const p = player(100);
      p.playout.begin("a");
      p.playout.push(samplesOf(5000));
      for (let nowMs = 0; nowMs <= atMs; nowMs += 10) {
        p.playout.pump(nowMs);
        acknowledge(p, nowMs);
      }
      const { playedMs, basis } = p.playout.cut(atMs) ?? {};
      return [playedMs, basis];
    };
    const marks = (p: ReturnType<typeof player>, nowMs: number) => {
      if (nowMs === 50) p.playout.heardMark("start:a", false, nowMs);
      if (nowMs === 1030) p.playout.heardMark("at:a:1000", false, nowMs);
    };
    assert.deepEqual(acknowledged(marks, 1500), [1470, "mark"]);
    assert.deepEqual(acknowledged(marks, 2900), [2000, "mark"], "the next mark was not echoed");
    const stops = (p: ReturnType<typeof player>, nowMs: number) => {
      if (nowMs === 600) p.playout.reportDelivered(500);
      if (nowMs === 2600) p.playout.reportUnsent(2000);
    };
    assert.deepEqual(acknowledged(stops, 2500), [2400, "delivery"], "it is not known yet that the link stands still");
    assert.deepEqual(acknowledged(stops, 2900), [500, "delivery"]);
    assert.deepEqual(
      acknowledged(() => {}, 2900),
      [2800, "clock"],
    );
  });

  it("is not over before its end was delivered, and waits 2 s for a client that tells late", () => {
    const p = player(100);
    p.playout.reportDelivered(0);
    p.playout.begin("a");
    p.playout.push(samplesOf(1000));
    p.playout.finish();
    for (let nowMs = 0; nowMs <= 1100; nowMs += 10) p.playout.pump(nowMs);
    assert.equal(p.playout.isOver(1100), false);
    p.playout.reportUnsent(2000);
    assert.equal(p.playout.isOver(60_000), false, "the link stands still");
    p.playout.reportUnsent(0);
    assert.equal(p.playout.isOver(3090), false);
    assert.equal(p.playout.isOver(3100), true);
    p.playout.reportDelivered(1000);
    assert.equal(p.playout.isOver(1100), true);
  });

  it("sends what a lost link swallowed again", () => {
    const p = player(100);
    const samples = Int16Array.from({ length: 3000 * perMs }, (_, i) => i % 32_000);
    p.playout.begin("a");
    p.playout.push(samples);
    p.playout.finish();
    for (let nowMs = 0; nowMs <= 1500; nowMs += 10) {
      p.playout.pump(nowMs);
      if (nowMs === 600) p.playout.reportDelivered(500);
    }
    assert.equal(p.playout.pause(), 1100);
    assert.equal(p.playout.heardMs(9000), 500);
    p.playout.resume();
    for (let nowMs = 9000; nowMs <= 13_000; nowMs += 10) p.playout.pump(nowMs);
    const sent = p.out.filter((entry) => typeof entry === "number");
    assert.deepEqual(sent.slice(1600 * perMs), [...samples.slice(500 * perMs)]);
    p.playout.reportDelivered(1600 + 2500);
    assert.equal(p.playout.end(13_000)?.heardMs, 3000);
  });

  it("goes on after a pause with the very next sample", () => {
    const p = player(100);
    const samples = Int16Array.from({ length: 500 * perMs }, (_, i) => i);
    p.playout.begin("a");
    p.playout.push(samples);
    p.playout.finish();
    for (let nowMs = 0; nowMs < 2000; nowMs += 10) {
      if (nowMs === 150) p.playout.pause();
      if (nowMs === 1150) p.playout.resume();
      p.playout.pump(nowMs);
      if (nowMs > 150 && nowMs < 1150) assert.ok(p.sentMs() <= 260);
    }
    assert.deepEqual(
      p.out.filter((entry) => typeof entry === "number"),
      [...samples],
    );
  });

  it("over any schedule: in order, nothing lost or doubled, never ahead of the lead, nothing after a cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 5, maxLength: 60 }),
        fc.constantFrom(60, 100, 400, 3000),
        fc.constantFrom(20, 40),
        fc.integer({ min: 0, max: 80 }),
        (chunksMs, stepsMs, leadMs, frameMs, cutAtStep) => {
          const p = player(leadMs, frameMs);
          const pushed: number[] = [];
          p.playout.begin("a");
          let nowMs = 1000;
          let firstMs: number | undefined;
          let cut: ReturnType<typeof p.playout.cut>;
          for (const [i, stepMs] of stepsMs.entries()) {
            const chunkMs = chunksMs[i];
            if (chunkMs !== undefined) {
              const chunk = Int16Array.from({ length: chunkMs * perMs }, (_, at) => (pushed.length + at) % 32_000);
              pushed.push(...chunk);
              p.playout.push(chunk);
            }
            if (i === chunksMs.length) p.playout.finish();
            if (i === cutAtStep) cut = p.playout.cut(nowMs);
            const before = p.out.length;
            p.playout.pump(nowMs);
            if (cut) assert.equal(p.out.length, before);
            if (p.sentMs() > 0) firstMs ??= nowMs;
            if (firstMs !== undefined) assert.ok(p.sentMs() <= nowMs - firstMs + leadMs + 1e-9);
            nowMs += stepMs;
          }
          const sent = p.out.filter((entry) => typeof entry === "number");
          assert.deepEqual(sent, pushed.slice(0, sent.length));
          if (cut) {
            const rest = cut.rest.flatMap((chunk) => [...chunk]);
            assert.deepEqual(
              rest,
              pushed.slice(Math.floor(cut.playedMs * perMs), Math.floor(cut.playedMs * perMs) + rest.length),
            );
            assert.ok(cut.playedMs * perMs <= sent.length);
            return;
          }
          p.playout.finish();
          for (const endMs = nowMs + 10_000; nowMs < endMs; nowMs += 10) p.playout.pump(nowMs);
          assert.deepEqual(
            p.out.filter((entry) => typeof entry === "number"),
            pushed,
          );
          assert.equal(p.out.at(-1), "end:a");
          assert.ok(p.playout.isOver(nowMs + 1000));
        },
      ),
      { numRuns: 150 },
    );
  });
});
