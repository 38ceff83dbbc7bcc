import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OptionsError } from "../kit/option_values.ts";
import { familyUsage, processUsage } from "../kit/process_usage.ts";
import { rooms } from "./command.ts";

describe("the rooms test", () => {
  it("refuses what a room decides by itself, and what calls refuse, before anything is started", async () => {
    for (const args of [
      ["--format", "opus"],
      ["--sample-rate=8000"],
      ["--transport", "ws"],
      ["--calls", "0"],
      ["--x"],
    ]) {
      await assert.rejects(rooms(args), OptionsError, args.join(" "));
    }
  });

  it("counts the processes that a gateway has started with it", async () => {
    const [alone, family] = [await processUsage(process.ppid), await familyUsage(process.ppid)];
    assert.ok(alone && family);
    // This very process is a child of its parent.
    assert.ok(family.rssBytes > alone.rssBytes);
    assert.equal(await familyUsage(0x7fffffff), undefined);
  });
});
