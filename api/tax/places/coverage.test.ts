import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "#http/logger.ts";
import { createRequestMetrics } from "#http/request_metrics.ts";
import { publicAccess } from "#http/route.ts";
import { createService } from "#http/service.ts";
import { taxErrorResponse } from "#http/tax_face.ts";
import { loadRuleset } from "../rules/rule_files.ts";
import { coverageRoutes } from "./coverage.ts";

const ruleset = loadRuleset();
const service = createService({
  routes: coverageRoutes({ ruleset, guard: publicAccess, now: () => new Date("2026-11-22T12:00:00Z") }),
  face: taxErrorResponse,
  logger: silentLogger,
  metrics: createRequestMetrics(),
  newRequestId: () => "request",
});

interface Matrix {
  on: string;
  total: number;
  states: Record<string, number>;
  items: {
    place_code: string;
    rank: number | null;
    level: string;
    kind: string;
    state: string;
    review_by: string | null;
    source: { url: string } | null;
  }[];
}

async function get(query: Record<string, string>, headers: Record<string, string> = {}) {
  const path = `http://127.0.0.1/v1/coverage?${new URLSearchParams(query)}`;
  return service(new Request(path, { headers }));
}
async function matrix(query: Record<string, string>): Promise<Matrix> {
  const response = await get(query);
  assert.equal(response.status, 200);
  return (await response.json()) as Matrix;
}

describe("GET /v1/coverage", () => {
  it("says of every place each tax that may exist, and counts all pages by state", async () => {
    const { total, states, items, on } = await matrix({ limit: "10" });
    assert.equal(on, "2026-11-22");
    assert.equal(items.length, 10);
    assert.ok(total > 8000);
    assert.equal(
      Object.values(states).reduce((sum, count) => sum + count, 0),
      total,
    );
    for (const { place_code } of items) assert.ok(ruleset.places.has(place_code));
  });

  it("filters by country, place, level, kind and state", async () => {
    const { items } = await matrix({ country: "nl", kind: "accommodation", state: "unknown", limit: "1000" });
    assert.ok(items.length > 0);
    assert.ok(items.every((item) => item.place_code.startsWith("NL") && item.state === "unknown"));
    const rome = await matrix({ place: "IT-RM-ROM" });
    assert.deepEqual(
      rome.items.map(({ level, kind }) => `${level} ${kind}`),
      ["country vat", "city accommodation"],
    );
    assert.ok(rome.items.every(({ source }) => source?.url.startsWith("http")));
    assert.match(rome.items[0]?.review_by ?? "", /^\d{4}-\d{2}-\d{2}$/);
  });

  it("moves with the night that is asked about", async () => {
    const stateOn = async (on: string) =>
      (await matrix({ place: "NL-UT-UTC", level: "city", on })).items.map(({ state }) => state);
    assert.deepEqual(await stateOn("2025-07-01"), ["reported"]);
    assert.deepEqual(await stateOn("2026-12-10"), ["assumed_continues"]);
    assert.equal((await get({ on: "2026-02-30" })).status, 422);
  });

  it("lists the most visited destinations by their rank", async () => {
    const { items } = await matrix({ destinations: "true", kind: "accommodation", limit: "1000" });
    const ranks = items.map(({ rank }) => rank ?? 0);
    assert.ok(new Set(ranks).size >= 300);
    assert.deepEqual(
      ranks,
      [...ranks].sort((a, b) => a - b),
    );
  });

  it("is a CSV file for whoever asks for one", async () => {
    const response = await get({ country: "IT", limit: "3" }, { accept: "text/csv" });
    const lines = (await response.text()).trim().split("\r\n");
    assert.match(response.headers.get("content-type") ?? "", /^text\/csv/);
    assert.match(lines[0] ?? "", /^place_code,place_name,country,rank,level,kind,/);
    assert.equal(lines.length, 4);
  });
});
