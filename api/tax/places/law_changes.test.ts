import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "#http/logger.ts";
import { createRequestMetrics } from "#http/request_metrics.ts";
import { publicAccess } from "#http/route.ts";
import { createService } from "#http/service.ts";
import { taxErrorResponse } from "#http/tax_face.ts";
import { ruleOf, rulesetOf } from "#test/kit/tax/calculation_fixture.ts";
import type { Rule } from "../rules/rule.ts";
import { loadRuleset } from "../rules/rule_files.ts";
import { type LawChange, lawChangeRoutes, lawChanges } from "./law_changes.ts";

const room = { unit: "room_night", amount: { flat: "2.00" } } as const;
const until = (on_lapse: "continue" | "end" | "unknown") =>
  ruleOf("a", { ...room, effective: { from: "2025-01-01", to: "2026-01-01" }, on_lapse });
const eventsOf = (rules: readonly Rule[]) => lawChanges(rulesetOf(rules)).map(({ date, event }) => `${date} ${event}`);

describe("changes of the law", () => {
  it("are the day on which a tax begins, and that on which somebody looks again", () => {
    assert.deepEqual(eventsOf([ruleOf("a", room)]), ["2020-01-01 start", "2026-06-30 review"]);
  });

  it("tell what held before a new rate, and what after", () => {
    const rule = ruleOf("a", room);
    const [first] = rule.versions;
    const later = { ...first, version: 2, effective: { from: "2026-07-01" }, amount: { flat: "3.00" } };
    const versions = [{ ...first, effective: { from: "2020-01-01", to: "2026-07-01" } }, later];
    const change = lawChanges(rulesetOf([{ ...rule, versions } as Rule])).find(({ event }) => event === "new_rate");
    assert.deepEqual(
      [change?.date, change?.before, change?.after],
      ["2026-07-01", "2.00 EUR per room and night", "3.00 EUR per room and night"],
    );
  });

  it("tell an end from a tariff that runs out, and that from one that is taken to go on", () => {
    assert.deepEqual(eventsOf([until("end")]).slice(1, 2), ["2026-01-01 end"]);
    assert.deepEqual(eventsOf([until("unknown")]).slice(1, 2), ["2026-01-01 lapse"]);
    assert.deepEqual(eventsOf([until("continue")]).slice(1, 2), ["2026-01-01 assumed"]);
  });
});

describe("GET /v1/law-changes", () => {
  const ruleset = loadRuleset();
  const service = createService({
    routes: lawChangeRoutes({ ruleset, guard: publicAccess }),
    face: taxErrorResponse,
    logger: silentLogger,
    metrics: createRequestMetrics(),
    newRequestId: () => "request",
  });
  async function get(query: Record<string, string>): Promise<{ status: number; total: number; items: LawChange[] }> {
    const response = await service(new Request(`http://127.0.0.1/v1/law-changes?${new URLSearchParams(query)}`));
    return { status: response.status, ...((await response.json()) as { total: number; items: LawChange[] }) };
  }

  it("lists what is announced for a place and those above it, in order of days", async () => {
    const { items } = await get({ jurisdiction: "gb-glg", from: "2027-01-01", to: "2027-12-31" });
    const start = items.find(({ event }) => event === "start");
    assert.deepEqual([start?.date, start?.rule_id], ["2027-01-25", "gb-glg.visitor-levy"]);
    assert.match(start?.after ?? "", /5 %/);
    assert.deepEqual(
      items.map(({ date }) => date),
      items.map(({ date }) => date).sort(),
    );
  });

  it("filters by country, kind of event and the day on which it was read, and pages", async () => {
    const dutch = await get({ country: "nl", event: "assumed", from: "2027-01-01", to: "2027-01-01", limit: "5" });
    assert.ok(dutch.total > 100);
    assert.equal(dutch.items.length, 5);
    assert.ok(dutch.items.every(({ country, event }) => country === "NL" && event === "assumed"));
    assert.equal((await get({ since: "2199-01-01" })).total, 0);
    assert.equal((await get({ from: "2027-02-30" })).status, 422);
  });
});
