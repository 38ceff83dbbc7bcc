import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createSilenceFiller } from "./silence_filler.ts";

/** Asks every 10 ms from `fromMs` to `toMs`; answers the silence of all, in milliseconds. */
function silenceBetween(filler: ReturnType<typeof createSilenceFiller>, fromMs: number, toMs: number): number {
  let silenceMs = 0;
  for (let nowMs = fromMs; nowMs <= toMs; nowMs += 10) silenceMs += filler.takeSilenceMs(nowMs);
  return silenceMs;
}

describe("silence filler", () => {
  it("fills nothing between frames that come in time, or late by less than 200 ms", () => {
    const filler = createSilenceFiller(1000);
    let silenceMs = 0;
    for (let atMs = 1000; atMs < 5000; atMs += 20) {
      filler.arrived(atMs + (atMs % 180), 20);
      silenceMs += filler.takeSilenceMs(atMs + (atMs % 180));
    }
    assert.equal(silenceMs, 0);
  });

  it("fills the whole of a longer gap, as it goes on", () => {
    const filler = createSilenceFiller(0);
    filler.arrived(0, 20);
    assert.equal(silenceBetween(filler, 0, 220), 0);
    assert.equal(filler.takeSilenceMs(230), 210);
    assert.equal(filler.takeSilenceMs(240), 10);
    assert.equal(silenceBetween(filler, 250, 1000), 760);
  });

  it("takes large chunks as covering their own length", () => {
    const filler = createSilenceFiller(0);
    let silenceMs = 0;
    for (let atMs = 0; atMs < 5000; atMs += 500) {
      filler.arrived(atMs, 500);
      silenceMs += silenceBetween(filler, atMs, atMs + 490);
    }
    assert.equal(silenceMs, 0);
  });

  it("finds the gap after a burst", () => {
    const filler = createSilenceFiller(0);
    for (let i = 0; i < 100; i++) filler.arrived(0, 20);
    assert.equal(silenceBetween(filler, 0, 400), 0);
    assert.ok(silenceBetween(filler, 410, 1000) >= 600);
  });

  it("goes back to waiting for a gap when audio is back", () => {
    const filler = createSilenceFiller(0);
    silenceBetween(filler, 0, 1000);
    filler.arrived(1005, 20);
    assert.equal(silenceBetween(filler, 1010, 1220), 0);
  });

  it("waits for the rest of speech for 1.5 s, then fills at once what ends a turn", () => {
    const filler = createSilenceFiller(0);
    filler.arrived(0, 20);
    for (let nowMs = 0; nowMs <= 1520; nowMs += 10) assert.equal(filler.takeSilenceMs(nowMs, true), 0);
    assert.equal(filler.takeSilenceMs(1530, true), 1000);
    assert.equal(filler.takeSilenceMs(1540, true), 10);
  });

  it("leaves out what a suspended process missed", () => {
    const filler = createSilenceFiller(0);
    assert.equal(filler.takeSilenceMs(3_600_000), 1000);
    assert.equal(filler.takeSilenceMs(3_600_000), 0);
  });

  it("keeps fractions of a millisecond for later", () => {
    const filler = createSilenceFiller(0);
    let silenceMs = 0;
    for (let nowMs = 0; nowMs <= 1000.5; nowMs += 10.3) silenceMs += filler.takeSilenceMs(nowMs);
    assert.ok(silenceMs > 985 && silenceMs <= 1000, `${silenceMs}`);
  });

  it("warns once a gap, after 10 s", () => {
    const filler = createSilenceFiller(0);
    assert.equal(filler.takeNoInputWarning(10_000), false);
    assert.equal(filler.takeNoInputWarning(10_001), true);
    assert.equal(filler.takeNoInputWarning(20_002), false);
    filler.arrived(21_000, 20);
    assert.equal(filler.takeNoInputWarning(31_000), false);
    assert.equal(filler.takeNoInputWarning(31_001), true);
  });

  it("counts the time of a lost link as no gap", () => {
    const filler = createSilenceFiller(0);
    filler.restart(25_000);
    assert.equal(filler.takeSilenceMs(25_150), 0);
    assert.equal(filler.takeNoInputWarning(25_150), false);
  });

  it("takes an empty frame as nothing", () => {
    const filler = createSilenceFiller(0);
    filler.arrived(300, 0);
    assert.equal(filler.takeSilenceMs(300), 300);
  });
});
