import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { digits, type Figure, figuresJson, figuresRatio, figuresText } from "./figures.ts";
import { Distribution } from "./statistics.ts";

function measured(value: number, latencyMs: number): Figure[] {
  const distribution = new Distribution();
  distribution.record(latencyMs);
  return [
    { name: "deliveries", unit: "1/s", value, goal: "≥ 300" },
    { name: "emit to client", unit: "ms", value: distribution },
  ];
}

describe("named figures", () => {
  it("stand in the text with their goals", () => {
    const text = figuresText("Streams", measured(1234, 5));
    assert.match(text, /^Streams\n/);
    assert.match(text, /deliveries +1\/s +1234 +≥ 300/);
    assert.match(text, /emit to client +ms +5\.00 +5\.00 +5\.00 +5\.00 +1/);
  });

  it("have names in JSON that programs can use", () => {
    assert.deepEqual(figuresJson(measured(2, 5)), {
      deliveries_1_s: { value: 2, goal: "≥ 300" },
      emit_to_client_ms: { count: 1, mean: 5, p50: 5, p95: 5, p99: 5, max: 5 },
    });
  });

  it("are divided by those of the first measurement; what one of them lacks is left out", () => {
    const text = figuresRatio(
      ["uws", "ws"],
      [...measured(100, 5), { name: "other", unit: "", value: 1 }],
      measured(50, 10),
    );
    assert.match(text, /^ws to uws\n/);
    assert.match(text, /deliveries +0\.50/);
    assert.match(text, /emit to client +2\.00 +2\.00 +2\.00/);
    assert.doesNotMatch(text, /other/);
  });

  it("are short", () => {
    assert.deepEqual([12345.6, 12.34, 1.234, 0, Number.NaN].map(digits), ["12346", "12.3", "1.23", "0.00", "–"]);
  });
});
