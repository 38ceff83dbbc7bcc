import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { spokenDay, spokenNumber } from "./spoken_stay.ts";

describe("a stay as people say it", () => {
  // A Sunday.
  const today = "2026-11-22";
  const days: [said: string, day: string | undefined][] = [
    ["2026-12-24", "2026-12-24"],
    ["2026-02-30", undefined],
    ["2026-11-21", undefined],
    ["today", today],
    ["Tomorrow, please", "2026-11-23"],
    ["on Friday", "2026-11-27"],
    ["next sunday", "2026-11-29"],
    ["24 December", "2026-12-24"],
    ["the 24th of December", "2026-12-24"],
    ["January 3rd", "2027-01-03"],
    ["31 February", undefined],
    ["soon", undefined],
  ];
  for (const [said, day] of days) it(`"${said}" is ${day}`, () => assert.equal(spokenDay(said, today), day));

  it("numbers are digits or words", () => {
    assert.deepEqual(["3", "three nights", "a week", "one", 2, "many", undefined].map(spokenNumber), [
      3,
      3,
      7,
      1,
      2,
      undefined,
      undefined,
    ]);
  });
});
