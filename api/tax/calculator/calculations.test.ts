import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "#http/logger.ts";
import { createRequestMetrics } from "#http/request_metrics.ts";
import { publicAccess, type RequestRecord } from "#http/route.ts";
import { createService } from "#http/service.ts";
import { taxErrorResponse } from "#http/tax_face.ts";
import { loadRuleset } from "../rules/rule_files.ts";
import type { CalculationAnswer } from "./calculation_answer.ts";
import { calculationRoutes } from "./calculations.ts";

const records: RequestRecord<undefined>[] = [];
const service = createService({
  routes: calculationRoutes({
    ruleset: loadRuleset(),
    guard: publicAccess,
    record: async (record) => void records.push(record),
    now: () => new Date("2026-06-01T12:00:00Z"),
  }),
  face: taxErrorResponse,
  logger: silentLogger,
  metrics: createRequestMetrics(),
  newRequestId: () => "request",
});

async function post(path: string, body: unknown): Promise<{ status: number; json: unknown }> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await service(
    new Request(`http://127.0.0.1${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: text,
    }),
  );
  return { status: response.status, json: await response.json() };
}
const calculate = (body: unknown) => post("/v1/tax/calculate", body);

const rome = {
  jurisdiction_code: "IT-RM-ROM",
  stay_date: "2024-05-10",
  nights: 2,
  nightly_rate: 200,
  currency: "EUR",
  number_of_guests: 2,
  star_rating: 4,
};

describe("POST /v1/tax/calculate", () => {
  it("answers what is owed, why, and by which law", async () => {
    const { status, json } = await calculate(rome);
    const answer = json as CalculationAnswer;
    assert.equal(status, 200);
    assert.deepEqual(answer.jurisdiction.stack, ["IT-RM-ROM", "IT-RM", "IT-62", "IT"]);
    const own = answer.tax_breakdown.components.find((one) => one.rule_id === "it-rm-rom.tourist-tax");
    assert.equal(own?.tax_amount, "30.00");
    assert.deepEqual(own?.quantity, { nights: 2, persons: 2, rooms: 1 });
    assert.match(own?.explanation ?? "", /^7\.50 EUR per person and night: 7\.50 x 2 persons/);
    assert.match(own?.source.url ?? "", /^https:/);
    assert.match(answer.ruleset_hash, /^[0-9a-f]{64}$/);
  });

  it("takes numbers as decimal strings alike, and a point for a code", async () => {
    const { json } = await calculate({ ...rome, nightly_rate: "200.00" });
    assert.deepEqual(json, (await calculate(rome)).json);
    const { jurisdiction_code: _, ...stay } = rome;
    const there = await calculate({ ...stay, latitude: 41.8902, longitude: 12.4922 });
    assert.equal((there.json as CalculationAnswer).jurisdiction.code, "IT-RM-ROM");
  });

  it("takes the most specific place at a point, never one across a border", async () => {
    const { jurisdiction_code: _, ...stay } = rome;
    const codeAt = async (latitude: number, longitude: number, currency: string) => {
      const { status, json } = await calculate({ ...stay, currency, latitude, longitude });
      assert.equal(status, 200, JSON.stringify(json));
      return (json as CalculationAnswer).jurisdiction.code;
    };
    assert.equal(await codeAt(52.52, 13.405, "EUR"), "DE-BE", "in a city");
    assert.equal(await codeAt(40.758, -73.9855, "USD"), "US-NY-NYC");
    assert.match(await codeAt(40.7357, -74.1724, "USD"), /^US-NJ/, "near one, in another state");
    assert.match(await codeAt(46.1934, 6.2342, "EUR"), /^FR/, "near one, in another country");
    assert.equal(await codeAt(52.0, 17.0, "PLN"), "PL", "far from all");
    const { status, json } = await calculate({ ...stay, latitude: 35, longitude: -45 });
    assert.deepEqual([status, json], [400, { detail: "unknown jurisdiction: no place is known at 35, -45" }]);
    for (const wrong of [{ latitude: 91 }, { longitude: 181 }, { latitude: "north" }]) {
      assert.equal((await calculate({ ...stay, latitude: 50, longitude: 10, ...wrong })).status, 422);
    }
  });

  it("answers none_known where it knows no rules, and no figure", async () => {
    const { json } = await calculate({ ...rome, jurisdiction_code: "KP", currency: "USD" });
    const answer = json as CalculationAnswer;
    assert.equal(answer.coverage.status, "none_known");
    assert.deepEqual(answer.tax_breakdown.components, []);
  });

  it("keeps digits that a double would lose", async () => {
    const body = JSON.stringify({ ...rome, jurisdiction_code: "US-TX", currency: "USD", nights: 1, nightly_rate: 1 });
    const { json } = await calculate(body.replace('"nightly_rate":1', '"nightly_rate":9007199254740993.00'));
    assert.equal(typeof json, "object");
    const { json: long } = await calculate(
      body.replace('"nightly_rate":1', '"nightly_rate":100000000000001.49999999999'),
    );
    assert.equal((long as CalculationAnswer).total_without_tax, "100000000000001.50");
  });

  it("refuses with 400 and a sentence what cannot be calculated", async () => {
    const { jurisdiction_code: _, ...nowhere } = rome;
    for (const body of [nowhere, { ...nowhere, latitude: 41.9 }, { ...nowhere, longitude: 12.5 }]) {
      const { status, json } = await calculate(body);
      assert.equal(status, 400);
      assert.match(String((json as { detail: unknown }).detail), /^missing coordinates/);
    }
    const unknown = await calculate({ ...rome, jurisdiction_code: "XX" });
    assert.deepEqual([unknown.status, unknown.json], [400, { detail: "unknown jurisdiction: XX" }]);
    const mismatch = await calculate({ ...rome, currency: "USD" });
    assert.equal(mismatch.status, 400);
    assert.match(String((mismatch.json as { detail: unknown }).detail), /^currency mismatch/);
  });

  it("refuses with 422 and the field what does not fit", async () => {
    const locOf = async (change: object) => {
      const { status, json } = await calculate({ ...rome, ...change });
      assert.equal(status, 422);
      const [issue] = (json as { detail: { type: string; loc: unknown[]; msg: string }[] }).detail;
      assert.ok(issue?.type && issue.msg);
      return issue.loc.join(".");
    };
    assert.equal(await locOf({ nightly_rate: 0 }), "body.nightly_rate");
    assert.equal(await locOf({ nightly_rate: "0.00" }), "body.nightly_rate");
    assert.equal(await locOf({ nights: 0 }), "body.nights");
    assert.equal(await locOf({ nights: 367 }), "body.nights");
    assert.equal(await locOf({ nights: "2" }), "body.nights");
    assert.equal(await locOf({ checkout_date: "2024-05-13" }), "body.checkout_date");
    assert.equal(await locOf({ stay_date: "10.05.2024" }), "body.stay_date");
    assert.equal(await locOf({ guest_ages: [40] }), "body.guest_ages");
    assert.equal(await locOf({ property_type: "tent" }), "body.property_type");
    assert.equal(await locOf({ nightly_rates: [{ date: "2024-05-10", rate: "x" }] }), "body.nightly_rates.0.rate");
  });

  it("lets small sellers off VAT where the law does, and is not sure elsewhere", async () => {
    const sold = { nightly_rate: 200, nights: 2, stay_date: "2026-08-10", seller_vat_status: "small_business" };
    const of = async (jurisdiction_code: string, currency: string) => {
      const { json } = await calculate({ ...sold, jurisdiction_code, currency });
      return json as CalculationAnswer;
    };
    for (const [code, currency] of [
      ["DE-BE", "EUR"],
      ["AT-9", "EUR"],
      ["FR-75C", "EUR"],
      ["NL-NH-AMS", "EUR"],
      ["IT-RM-ROM", "EUR"],
      ["GB-EDH", "GBP"],
    ] as const) {
      const { totals_by_kind, tax_breakdown, completeness } = await of(code, currency);
      assert.equal(totals_by_kind.vat, "0.00", code);
      const vat = tax_breakdown.components.find(({ kind }) => kind === "vat");
      assert.equal(vat?.exemptions[0]?.code, "small_business");
      assert.notEqual(completeness.slots[0]?.state, "unknown", code);
    }
    const cologne = await of("DE-NW-CGN", "EUR");
    assert.equal(cologne.totals_by_kind.accommodation, "20.00", "5 % of a gross price that has no VAT in it");
    const { totals_by_kind, completeness } = await of("CH-ZH-ZRH", "CHF");
    assert.notEqual(totals_by_kind.vat, "0.00");
    const slot = completeness.slots.find(({ kind }) => kind === "vat");
    assert.deepEqual([slot?.state, completeness.status], ["unknown", "incomplete"]);
    assert.match(slot?.note ?? "", /small sellers/);
  });

  it("names the fields that nobody reads, at every depth, and refuses slips of the hand", async () => {
    const ignoredOf = async (change: object) => {
      const { json } = await calculate({ ...rome, ...change });
      return (json as CalculationAnswer).ignored_fields;
    };
    assert.equal(await ignoredOf({}), undefined);
    const unread = {
      loyalty: "gold",
      included_amounts: { spa: 20, breakfast: 9 },
      nightly_rates: [{ date: "2024-05-10", rate: 90, board: 1 }],
    };
    assert.deepEqual(await ignoredOf(unread), ["loyalty", "included_amounts.spa", "nightly_rates.0.board"]);
    const refusalOf = async (change: object) => {
      const { status, json } = await calculate({ ...rome, ...change });
      assert.equal(status, 422, JSON.stringify(json));
      const [{ type, loc, msg }] = (json as { detail: [{ type: string; loc: unknown[]; msg: string }] }).detail;
      return [type, loc.join("."), msg];
    };
    const slip = "Unknown field: did you mean guest_ages?";
    assert.deepEqual(await refusalOf({ guest_age: [8, 40] }), ["extra_forbidden", "body.guest_age", slip]);
    const nested = await refusalOf({ included_amounts: { breakfasts: 9 } });
    assert.deepEqual(nested.slice(0, 2), ["extra_forbidden", "body.included_amounts.breakfasts"]);
    const strict = await refusalOf({ loyalty: "gold", strict: true });
    assert.deepEqual(strict.slice(0, 2), ["extra_forbidden", "body.loyalty"]);
  });

  it("is billable, refused or not", async () => {
    records.length = 0;
    await calculate(rome);
    await calculate({});
    assert.deepEqual(
      records.map((record) => record.endpoint),
      ["/v1/tax/calculate", "/v1/tax/calculate"],
    );
  });
});

describe("POST /v1/tax/calculate/batch", () => {
  it("answers each in order, and none fails the others", async () => {
    const calculations = [rome, { ...rome, jurisdiction_code: "XX" }, { ...rome, nights: 0 }, rome];
    const { status, json } = await post("/v1/tax/calculate/batch", { calculations });
    const { results } = json as {
      results: { result?: CalculationAnswer; error?: { status: number; detail: unknown } }[];
    };
    assert.equal(status, 200);
    assert.deepEqual(
      results.map((one) => one.error?.status ?? 200),
      [200, 400, 422, 200],
    );
    assert.deepEqual(results[0], results[3]);
    assert.equal(results[1]?.error?.detail, "unknown jurisdiction: XX");
    assert.ok(Array.isArray(results[2]?.error?.detail));
  });
});
