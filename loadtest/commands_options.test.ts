import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { httpOptions } from "./http/options.ts";
import { OptionsError } from "./kit/option_values.ts";
import { runsOptions } from "./runs/options.ts";
import { streamsOptions } from "./streams/options.ts";

describe("options of the streams, runs and http tests", () => {
  it("have defaults", () => {
    const { subscribers, runs, transports } = streamsOptions([]);
    assert.deepEqual({ subscribers, runs, transports }, { subscribers: 1000, runs: 1, transports: ["uws", "ws"] });
    assert.equal(runsOptions([]).rate, 100);
    assert.equal(httpOptions(["--transport", "uws"]).transports.length, 1);
  });

  it("are bounded in count and time", () => {
    for (const args of [
      ["--subscribers", "10001"],
      ["--subscribers", "1000", "--runs", "11"],
      ["--held", "16001"],
      ["--seconds", "61"],
      ["--stalled", "-1"],
      ["--transport", "udp"],
      ["--url", "https://frontdesk.example"],
    ]) {
      assert.throws(() => streamsOptions(args), OptionsError, args.join(" "));
    }
    for (const args of [
      ["--rate", "0"],
      ["--burst", "1e9"],
      ["--seconds", "x"],
    ]) {
      assert.throws(() => runsOptions(args), OptionsError, args.join(" "));
    }
    for (const args of [["--connections", "1001"], ["--seconds", "0"], ["stray"]]) {
      assert.throws(() => httpOptions(args), OptionsError, args.join(" "));
    }
  });
});
