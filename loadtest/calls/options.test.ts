import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OptionsError } from "../kit/option_values.ts";
import { callsOptions, isLoopback } from "./options.ts";

describe("options of the calls test", () => {
  it("have defaults", () => {
    const { calls, seconds, format, transports, vad } = callsOptions([]);
    assert.deepEqual(
      { calls, seconds, format, transports, vad },
      {
        calls: 200,
        seconds: 30,
        format: { encoding: "pcm_s16le", sample_rate: 16000, container: "raw" },
        transports: ["uws", "ws"],
        vad: "energy",
      },
    );
  });

  it("are bounded, and a wrong one says what was expected", () => {
    for (const args of [
      ["--calls", "0"],
      ["--calls", "5001"],
      ["--seconds", "1.5"],
      ["--format", "mp3"],
      ["--format", "opus", "--sample-rate", "44100"],
      ["--transport", "udp"],
      ["--vad", "none"],
      ["--providers", "vendors"],
      ["--providers", "twins", "--url", "http://127.0.0.1:1"],
      ["--nonsense"],
    ]) {
      assert.throws(() => callsOptions(args), OptionsError, args.join(" "));
    }
  });

  it("refuse another machine unless that is allowed", () => {
    assert.throws(() => callsOptions(["--url", "https://frontdesk.example"]), /--allow-remote/);
    assert.equal(callsOptions(["--url", "https://frontdesk.example", "--allow-remote"]).calls, 200);
    assert.equal(callsOptions(["--url", "http://127.0.0.1:8080"]).url, "http://127.0.0.1:8080");
  });

  it("know loopback addresses from names that only look like them", () => {
    for (const url of ["http://localhost:1", "http://[::1]:8080", "http://127.0.0.1"]) assert.ok(isLoopback(url), url);
    for (const url of ["http://127.0.0.1.example", "http://localhost.example", "http://10.0.0.1", "nonsense"]) {
      assert.ok(!isLoopback(url), url);
    }
  });
});
