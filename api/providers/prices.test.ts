import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { Price } from "#contracts/usage.ts";
import type { Biller, StageUse } from "./metered_stage.ts";
import { openPriceTable, PriceTableError, pricesFor } from "./price_table.ts";
import { costOf, costTogether, priceOf, UseMeter } from "./prices.ts";

const llm: Biller = { stage: "llm", provider: "openai", model: "m-1" };
const tokens = (prompt: number, cached: number, completion: number): StageUse => ({
  by: llm,
  requests: 1,
  prompt,
  cached,
  completion,
});
const row: Price = {
  stage: "llm",
  provider: "openai",
  per_million_input_tokens: 2,
  per_million_cached_tokens: 1,
  per_million_output_tokens: 10,
};

describe("the cost of a use", () => {
  it("is its amounts times the prices, cached tokens by their own", () => {
    assert.equal(costOf(tokens(1000, 400, 100), row), (600 * 2 + 400 * 1 + 100 * 10) / 1e6);
    const stt: StageUse = { by: { stage: "stt", provider: "d" }, requests: 1, audioMs: 90_000 };
    assert.equal(costOf(stt, { stage: "stt", provider: "d", per_minute: 0.004 }), 0.006);
    const tts: StageUse = { by: { stage: "tts", provider: "e" }, requests: 1, characters: 200 };
    assert.equal(costOf(tts, { stage: "tts", provider: "e", per_million_characters: 15 }), 0.003);
  });

  it("is unknown, and not 0, without a row, a price that is needed, or the vendor's own count", () => {
    const { per_million_cached_tokens: _, ...withoutCached } = row;
    assert.equal(costOf(tokens(10, 0, 1), undefined), null);
    assert.equal(costOf(tokens(10, 5, 1), withoutCached), null);
    assert.equal(costOf(tokens(10, 0, 1), withoutCached), 0.00003);
    assert.equal(costOf({ by: llm, requests: 1, unreported: 1 }, row), null);
  });

  it("goes by the row that fits best, of that address alone", () => {
    const named: Price = { ...row, model: "m-1" };
    const begins: Price = { ...row, model: "m*" };
    const elsewhere: Price = { ...named, base_url: "http://own" };
    const prices = [row, begins, named, elsewhere];
    assert.equal(priceOf(llm, prices), named);
    assert.equal(priceOf({ ...llm, model: "m-2" }, prices), begins);
    assert.equal(priceOf({ ...llm, model: "x" }, prices), row);
    assert.equal(priceOf({ ...llm, baseUrl: "http://own" }, prices), elsewhere);
    assert.equal(priceOf({ ...llm, baseUrl: "http://other" }, prices), undefined);
  });

  it("is told in sum as far as it is known, with what has no price", () => {
    const meter = new UseMeter([row], ({ provider }) => provider === "flite");
    meter.add(tokens(1000, 0, 100));
    meter.add(tokens(1000, 0, 0));
    meter.add({ by: { stage: "tts", provider: "flite" }, requests: 1, characters: 50 });
    const known = costTogether(meter.vendors(), "USD");
    assert.deepEqual(known, { currency: "USD", amount: 0.005, known: 0.005, unknown: [] });
    meter.add({ by: { stage: "stt", provider: "deepgram", model: "nova-9" }, requests: 1, audioMs: 5 });
    const cost = costTogether(meter.vendors(), "USD");
    assert.deepEqual(cost, { currency: "USD", amount: null, known: 0.005, unknown: ["stt deepgram nova-9"] });
    assert.deepEqual(
      meter.vendors().map(({ requests, cost }) => [requests, cost]),
      [
        [2, 0.005],
        [1, 0],
        [1, null],
      ],
    );
  });
});

describe("the price table", () => {
  const folder = mkdtempSync(join(tmpdir(), "prices-"));
  const fileWith = (table: unknown) => {
    const path = join(folder, `${crypto.randomUUID()}.json`);
    writeFileSync(path, typeof table === "string" ? table : JSON.stringify(table));
    return path;
  };

  it("has a source for each listed price", () => {
    for (const price of openPriceTable().prices) assert.ok(price.source, JSON.stringify(price));
  });

  it("has the operator's rows in place of the listed ones, and these beside them", () => {
    const own = { stage: "stt", provider: "deepgram", model: "nova-3", per_minute: 0.001 };
    const { prices } = openPriceTable(fileWith({ currency: "USD", prices: [own] }));
    const nova = { stage: "stt", provider: "deepgram", model: "nova-3" } as const;
    assert.equal(priceOf(nova, prices)?.per_minute, 0.001);
    assert.equal(prices.length, openPriceTable().prices.length);
    assert.deepEqual(openPriceTable(fileWith({ currency: "EUR", prices: [own] })).prices, [own]);
  });

  it("refuses a file that is missing, no JSON or of another form, and says where it is wrong", () => {
    assert.throws(() => openPriceTable(join(folder, "nowhere.json")), PriceTableError);
    assert.throws(() => openPriceTable(fileWith("{")), PriceTableError);
    const wrong = { currency: "USD", prices: [{ stage: "llm", provider: "x", per_million_input_tokens: -1 }] };
    assert.throws(() => openPriceTable(fileWith(wrong)), /\/prices\/0\/per_million_input_tokens/);
  });

  it("gives a call the rows of its own providers, fallbacks included", () => {
    const stage = (provider: string) => ({ provider, language: "en", options: {} });
    const rows = ["a", "b", "c"].map((provider): Price => ({ ...row, provider }));
    const { prices } = pricesFor(
      { currency: "USD", prices: rows },
      { llm: { ...stage("a"), fallbacks: [stage("c")] }, tts: stage("b") },
    );
    assert.deepEqual(
      prices.map(({ provider }) => provider),
      ["a", "c"],
    );
  });
});
