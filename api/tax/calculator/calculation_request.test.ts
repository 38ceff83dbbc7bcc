import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { withoutAbsent } from "#http/json_body.ts";
import { validatorFor } from "#http/validation.ts";
import { CalculationRequest } from "./calculation_request.ts";
import { parseExactJson } from "./numbers/exact_json.ts";

const validator = validatorFor(CalculationRequest);
const stay = { jurisdiction_code: "NL-TST", stay_date: "2026-06-10", nights: 2, nightly_rate: 100, currency: "EUR" };
const problemsOf = (changes: object) => validator.problemsOf({ ...stay, ...changes });

describe("a rate of exchange in a request", () => {
  it("is refused by the field that is wrong, of one as of several", () => {
    const fx = { rate: "1.08", source: "ECB", date: "2026-06-01" };
    const { rate: _, ...withoutRate } = fx;
    for (const good of [fx, { ...fx, from: "EUR" }, [], [fx], [fx, { ...fx, from: "EUR" }]]) {
      assert.equal(problemsOf({ fx: good }), undefined);
    }
    assert.deepEqual(problemsOf({ fx: withoutRate }), { "fx.rate": "Required" });
    assert.deepEqual(problemsOf({ fx: { ...fx, date: "1.6.2026" } }), { "fx.date": "Expected a date as YYYY-MM-DD" });
    assert.match(problemsOf({ fx: { ...fx, rate: 0 } })?.["fx.rate"] ?? "", /^Expected a number greater than 0/);
    assert.deepEqual(problemsOf({ fx: [fx, { ...fx, from: "euro" }] }), { "fx.1.from": "Expected an ISO 4217 code" });
    assert.deepEqual(Object.keys(problemsOf({ fx: Array.from({ length: 11 }, () => fx) }) ?? {}), ["fx"]);
    assert.deepEqual(problemsOf({ fx: 1.08 }), { fx: "Expected {rate, source, date, from?}, or several of them" });
  });
});

describe("an amount in a request", () => {
  it("is a number or its digits, and the same numbers are taken either way", () => {
    for (const amount of [100, 0.01, 1e2, "100", "100.00", "1e2", "0.01", "0120"]) {
      assert.equal(problemsOf({ nightly_rate: amount }), undefined, String(amount));
    }
    for (const amount of [0, -1, "0", "0.00", "0e3", "-1", "", "1,5", ".5", "abc", "1e9999", true]) {
      assert.deepEqual(problemsOf({ nightly_rate: amount }), {
        nightly_rate:
          "Expected a number greater than 0 and less than 10^15 with at most 18 decimal places, or its digits as a string",
      });
    }
    assert.equal(problemsOf({ included_amounts: { cleaning: "0" } }), undefined);
  });

  it("is no other amount for being too long for a double", () => {
    const long = parseExactJson('{"nightly_rate":100.000000000000000000000000001}') as object;
    assert.equal(problemsOf(long), undefined, "the calculation says that it has too many decimal places");
  });
});

describe("a null in a request", () => {
  it("is as if the field were left out", () => {
    const optional = Object.keys(CalculationRequest.properties).filter((field) => !(field in stay));
    const nulls = Object.fromEntries(optional.map((field) => [field, null]));
    assert.ok(optional.length > 15);
    assert.deepEqual(withoutAbsent(validator.parse(parseExactJson(JSON.stringify({ ...nulls, ...stay })))), stay);
    const within = {
      included_amounts: { breakfast: null },
      fx: { from: null, rate: 1, source: "ECB", date: "2026-06-01" },
    };
    assert.equal(validator.problemsOf(parseExactJson(JSON.stringify({ ...stay, ...within }))), undefined);
  });

  it("is missed where the field is required, and wrong in a list", () => {
    const problems = (changes: object) => validator.problemsOf(parseExactJson(JSON.stringify({ ...stay, ...changes })));
    assert.deepEqual(problems({ nightly_rate: null }), { nightly_rate: "Required" });
    assert.deepEqual(Object.keys(problems({ guest_ages: [40, null] }) ?? {}), ["guest_ages.1"]);
    assert.deepEqual(parseExactJson('{"a":[null,{"b":null,"c":12345678901234567.891}],"d":null}'), {
      a: [null, { b: undefined, c: "12345678901234567.891" }],
      d: undefined,
    });
    assert.equal(parseExactJson("null"), null);
  });

  it("costs no stack, however deep it lies", () => {
    const depth = 5000;
    assert.ok(parseExactJson(`${'{"a":'.repeat(depth)}null${"}".repeat(depth)}`));
  });
});
