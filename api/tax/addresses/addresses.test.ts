import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { silentLogger } from "#http/logger.ts";
import { createRequestMetrics } from "#http/request_metrics.ts";
import { publicAccess, type RequestRecord } from "#http/route.ts";
import { createService } from "#http/service.ts";
import { taxErrorResponse } from "#http/tax_face.ts";
import { validatorFor } from "#http/validation.ts";
import { loadRuleset } from "../rules/rule_files.ts";
import { loadAddressFormats } from "./address_formats.ts";
import { AddressAnswer, type AddressRequest } from "./address_schema.ts";
import { validateAddress } from "./address_validation.ts";
import { addressRoutes } from "./addresses.ts";

const records: RequestRecord<undefined>[] = [];
const ruleset = loadRuleset();
const service = createService({
  routes: addressRoutes({ ruleset, guard: publicAccess, record: async (record) => void records.push(record) }),
  face: taxErrorResponse,
  logger: silentLogger,
  metrics: createRequestMetrics(),
  newRequestId: () => "request",
});
const answers = validatorFor(AddressAnswer);

async function post(body: unknown) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const request = new Request("http://127.0.0.1/v1/addresses/validate", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: text,
  });
  const response = await service(request);
  return { status: response.status, json: (await response.json()) as unknown };
}

type Address = AddressRequest["address"];

async function validate(address: Address, more: Omit<AddressRequest, "address"> = {}): Promise<AddressAnswer> {
  const { status, json } = await post({ address, ...more });
  assert.equal(status, 200, JSON.stringify(json));
  assert.equal(answers.problemsOf(json), undefined);
  const answer = json as AddressAnswer;
  assert.equal(answer.valid, answer.verdict === "valid" || answer.verdict === "corrected");
  assert.equal(answer.jurisdiction.stack[0], answer.jurisdiction.code);
  return answer;
}
const issuesOf = ({ issues }: AddressAnswer) =>
  issues.map(({ field, code, severity }) => `${severity} ${field} ${code}`);

const rome: Address = {
  line1: "Via Vittorio Veneto 125",
  city: "Roma",
  region: "RM",
  postal_code: "00187",
  country: "IT",
};
const sanFrancisco: Address = {
  line1: "1 Market Street",
  city: "San Francisco",
  region: "CA",
  postal_code: "94105",
  country: "US",
};

describe("an address that is right", () => {
  it("is valid as it is, with its city as the place that taxes", async () => {
    const answer = await validate(rome);
    assert.equal(answer.verdict, "valid");
    assert.deepEqual([answer.changes, answer.issues, answer.alternatives], [[], [], []]);
    assert.deepEqual(answer.jurisdiction.stack, ["IT-RM-ROM", "IT-RM", "IT-62", "IT"]);
    assert.equal(answer.normalized.region_code, "IT-RM");
    assert.equal(answer.match.level, "city");
    assert.ok(answer.match.confidence > 0.85);
    assert.deepEqual(answer.normalized.formatted, ["Via Vittorio Veneto 125", "00187 ROMA RM", "ITALY"]);
    assert.equal(answer.coordinates?.source, "city_centroid");
  });

  it("is written as its own post does", async () => {
    const { normalized } = await validate(sanFrancisco);
    assert.deepEqual(normalized.formatted, ["1 Market Street", "SAN FRANCISCO, CA 94105", "UNITED STATES"]);
    const swiss = await validate({ line1: "Bahnhofstrasse 1", city: "Zürich", postal_code: "CH-8001", country: "CH" });
    assert.equal(swiss.normalized.postal_code, "8001");
    assert.equal(swiss.normalized.formatted[1], "CH-8001 Zürich");
    const tokyo = await validate({
      line1: "西新宿2-8-1",
      city: "新宿区",
      region: "東京都",
      postal_code: "1638001",
      country: "JP",
    });
    assert.deepEqual(tokyo.normalized.formatted, ["〒163-8001", "東京都", "新宿区", "西新宿2-8-1", "JAPAN"]);
    assert.equal(tokyo.normalized.region, "東京都");
    assert.equal(tokyo.normalized.region_code, "JP-13");
    const hongKong = await validate({
      line1: "8 Finance Street",
      city: "Central",
      region: "Hong Kong Island",
      country: "HK",
    });
    assert.deepEqual(issuesOf(hongKong), []);
  });
});

describe("an address that needs a hand", () => {
  it("is corrected in form, and every change is told", async () => {
    const answer = await validate({
      line1: "  1   Market\u200b Street ",
      city: "SAN FRANCISCO",
      region: "california",
      postal_code: "94105 1234",
      country: "usa",
    });
    assert.equal(answer.verdict, "corrected");
    assert.deepEqual(answer.changes, [
      { field: "line1", from: "  1   Market\u200b Street ", to: "1 Market Street" },
      { field: "city", from: "SAN FRANCISCO", to: "San Francisco" },
      { field: "region", from: "california", to: "CA" },
      { field: "postal_code", from: "94105 1234", to: "94105-1234" },
      { field: "country", from: "usa", to: "US" },
    ]);
    assert.equal(answer.jurisdiction.code, "US-CA-SFO");
  });

  it("gets the spaces and hyphens of its country's postal codes", async () => {
    for (const [country, given, wanted] of [
      ["GB", "ec1y8sy", "EC1Y 8SY"],
      ["CA", "h3z2y7", "H3Z 2Y7"],
      ["NL", "1012ab", "1012 AB"],
      ["SE", "SE-11455", "11455"],
      ["PL", "00950", "00-950"],
      ["PT", "1000205", "1000-205"],
      ["JP", "〒100-0001", "100-0001"],
      ["BR", "40301110", "40301-110"],
      ["LU", "L-4750", "4750"],
      ["DE", "10115", "10115"],
    ] as const) {
      const { normalized } = await validate({ line1: "1", city: "X", postal_code: given, country });
      assert.equal(normalized.postal_code, wanted, country);
    }
  });

  it("keeps the accents and the language that somebody chose, not capitals throughout", async () => {
    const cityOf = async (city: string, region: string, postal_code: string, country: string) =>
      (await validate({ line1: "1", city, region, postal_code, country })).normalized.city;
    assert.equal(await cityOf("Montréal", "QC", "H2Y 1C6", "CA"), "Montréal");
    assert.equal(await cityOf("VANCOUVER", "BC", "V6B 1A1", "CA"), "Vancouver");
    assert.equal(await cityOf("Venice", "VE", "30124", "IT"), "Venice");
    assert.equal(await cityOf("venezia", "VE", "30124", "IT"), "Venezia");
  });

  it("takes the province of the postal code inside the region that was given, and a division for a city of its name", async () => {
    const barcelona = {
      line1: "La Rambla 1",
      city: "Barcelona",
      region: "Catalunya",
      postal_code: "08002",
      country: "ES",
    };
    const { normalized, jurisdiction } = await validate(barcelona);
    assert.deepEqual([normalized.region, normalized.region_code], ["Barcelona", "ES-B"]);
    assert.equal(jurisdiction.code, "ES-CT-BCN");
    const washington = {
      line1: "1600 Pennsylvania Ave NW",
      city: "Washington",
      region: "DC",
      postal_code: "20500",
      country: "US",
    };
    const capital = await validate(washington);
    assert.deepEqual([capital.verdict, capital.issues, capital.jurisdiction.code], ["valid", [], "US-DC"]);
    const lyon = await validate({ line1: "1", city: "Lyon", postal_code: "69002", country: "FR" });
    assert.ok(lyon.jurisdiction.stack.includes("FR-69M"));
  });

  it("gets its region from the postal code, where the data tells it", async () => {
    const { region: _, ...withoutRegion } = sanFrancisco;
    const answer = await validate(withoutRegion);
    assert.equal(answer.verdict, "corrected");
    assert.deepEqual(answer.changes, [{ field: "region", from: null, to: "CA" }]);
    for (const [address, code] of [
      [{ line1: "1", city: "Ukendt", postal_code: "28013", country: "ES" }, "ES-M"],
      [{ line1: "1", city: "Nulle Part", postal_code: "75008", country: "FR" }, "FR-75C"],
      [{ line1: "1", city: "Nulle Part", postal_code: "20137", country: "FR" }, "FR-2A"],
      [{ line1: "1", city: "Nowhere", postal_code: "3000", country: "AU" }, "AU-VIC"],
    ] as const) {
      const { normalized, match, jurisdiction } = await validate(address);
      assert.equal(normalized.region_code, code);
      assert.equal(match.level, "postcode");
      assert.ok(jurisdiction.stack.includes(code));
    }
  });

  it("is found by its region where addresses of the country have none, and says so", async () => {
    const answer = await validate({
      line1: "Dorfstr. 1",
      city: "Hintertupfing",
      region: "Bayern",
      postal_code: "80331",
      country: "DE",
    });
    assert.equal(answer.verdict, "valid");
    assert.deepEqual(issuesOf(answer), ["warning region not_used_in_country"]);
    assert.equal(answer.jurisdiction.code, "DE-BY");
    assert.equal(answer.normalized.region_code, "DE-BY");
  });
});

describe("an address that is wrong", () => {
  it("is told what is missing", async () => {
    const answer = await validate({ country: "US" });
    assert.equal(answer.verdict, "incomplete");
    assert.deepEqual(issuesOf(answer), [
      "error line1 required",
      "error city required",
      "error region required",
      "error postal_code required",
    ]);
    assert.equal(answer.match.level, "country");
    assert.ok(answer.match.confidence < 0.7);
  });

  it("is told of postal codes that cannot be, or are elsewhere", async () => {
    const impossible = await validate({ ...rome, postal_code: "1234X" });
    assert.equal(impossible.verdict, "invalid");
    assert.deepEqual(issuesOf(impossible), ["error postal_code invalid"]);
    assert.equal(impossible.normalized.postal_code, "1234X");
    const elsewhere = await validate({ ...sanFrancisco, postal_code: "10001" });
    assert.equal(elsewhere.verdict, "invalid");
    assert.deepEqual(issuesOf(elsewhere), ["error postal_code mismatch"]);
    assert.match(elsewhere.issues[0]?.message ?? "", /New York/);
    const none = await validate({ line1: "1", city: "Dubai", region: "Dubai", postal_code: "12345", country: "AE" });
    assert.deepEqual(issuesOf(none), ["warning postal_code not_used_in_country"]);
    assert.deepEqual(none.changes.at(-1), { field: "postal_code", from: "12345", to: null });
  });

  it("is told of regions that do not exist, or do not hold the city", async () => {
    const unknown = await validate({ ...sanFrancisco, region: "Transylvania" });
    assert.equal(unknown.verdict, "invalid");
    assert.deepEqual(issuesOf(unknown), ["error region unknown_value"]);
    const elsewhere = await validate({ ...sanFrancisco, region: "TX", postal_code: "75001" });
    assert.deepEqual(issuesOf(elsewhere), ["warning city mismatch"]);
    assert.equal(elsewhere.jurisdiction.code, "US-TX");
    assert.ok(elsewhere.alternatives.some(({ code }) => code === "US-CA-SFO"));
  });

  it("shows what a mistyped city may be, and does not pretend to know", async () => {
    const answer = await validate({ line1: "Dam 1", city: "Amsterdm", postal_code: "1012 JS", country: "NL" });
    assert.ok(answer.alternatives.some(({ name }) => name === "Amsterdam"));
    assert.ok(answer.match.confidence < 0.7);
    assert.equal(answer.normalized.city, "Amsterdm");
  });
});

describe("coordinates", () => {
  it("decide the place where they agree with the address", async () => {
    const answer = await validate(rome, { lat: 41.9079, lng: 12.4894 });
    assert.equal(answer.match.level, "point");
    assert.ok(answer.match.confidence >= 0.95);
    assert.deepEqual(answer.coordinates, { lat: 41.9079, lng: 12.4894, source: "input" });
    const bare = await validate({ line1: "1", city: "Roma Nord", country: "IT" }, { lat: 41.9079, lng: 12.4894 });
    assert.equal(bare.jurisdiction.code, "IT-RM-ROM");
  });

  it("win over the address in another country, which is told", async () => {
    const answer = await validate(rome, { lat: 48.8606, lng: 2.3376 });
    assert.equal(answer.verdict, "invalid");
    assert.deepEqual(issuesOf(answer), ["error coordinates mismatch"]);
    assert.equal(answer.jurisdiction.code, "FR-75C");
    assert.equal(answer.alternatives[0]?.code, "IT-RM-ROM");
    assert.ok(answer.match.confidence < 0.7);
  });

  it("are doubted in another city, at sea, and far from the city that is named", async () => {
    const milan = await validate(rome, { lat: 45.4642, lng: 9.19 });
    assert.deepEqual(issuesOf(milan), ["warning coordinates mismatch"]);
    assert.ok(milan.match.confidence < 0.7);
    const sea = await validate(rome, { lat: 35, lng: -45 });
    assert.deepEqual(issuesOf(sea), ["error coordinates invalid"]);
    assert.equal(sea.jurisdiction.code, "IT-RM-ROM");
  });

  it("in a territory agree with the country that it belongs to", async () => {
    const answer = await validate(
      { line1: "1 Calle Fortaleza", city: "San Juan", region: "PR", postal_code: "00901", country: "US" },
      { lat: 18.4655, lng: -66.1057 },
    );
    assert.ok(!issuesOf(answer).includes("error coordinates mismatch"), issuesOf(answer).join());
    assert.equal(answer.jurisdiction.stack.at(-1), "PR");
  });

  it("come in pairs", async () => {
    for (const [half, missing] of [
      [{ lat: 41.9 }, "lng"],
      [{ lng: 12.5 }, "lat"],
    ] as const) {
      const { status, json } = await post({ address: rome, ...half });
      assert.equal(status, 422);
      assert.deepEqual((json as { detail: { loc: unknown }[] }).detail[0]?.loc, ["body", missing]);
    }
  });
});

describe("any country", () => {
  it("of ISO 3166-1 is answered, by code or name", async () => {
    for (const place of ruleset.places.values()) {
      if (place.parent !== undefined) continue;
      const answer = await validate({ line1: "1 Main Street", city: "Town", country: place.code.toLowerCase() });
      assert.equal(answer.normalized.country, place.code);
      assert.ok(answer.jurisdiction.stack.at(-1) === place.code);
    }
    assert.equal((await validate({ country: "Deutschland" })).normalized.country, "DE");
    assert.equal((await validate({ country: "日本" })).normalized.country, "JP");
    assert.equal((await validate({ country: "Estados Unidos" })).normalized.country, "US");
    assert.equal((await validate({ country: "ITA" })).normalized.country, "IT");
    assert.equal((await validate({ country: "AQ" })).verdict, "unsupported_country");
  });

  it("that does not exist is 422, with the field", async () => {
    for (const country of ["XX", "Atlantis", "ZZZ", "  "]) {
      const { status, json } = await post({ address: { ...rome, country } });
      assert.equal(status, 422);
      assert.deepEqual((json as { detail: { loc: unknown }[] }).detail[0]?.loc, ["body", "address", "country"]);
    }
  });
});

describe("anything else", () => {
  it("is answered or refused, and never breaks", async () => {
    const countries = [...ruleset.places.values()].filter(({ parent }) => parent === undefined).map(({ code }) => code);
    const garbage = fc.oneof(
      fc.string({ unit: "binary", maxLength: 220 }),
      fc.string({ unit: "grapheme", maxLength: 60 }),
      fc.constantFrom(
        "",
        " ",
        "\u0000",
        "\ud800",
        "%n%A%C",
        "((((((((((",
        "東京都",
        "00187",
        "__proto__",
        "constructor",
      ),
    );
    const address = fc.record(
      {
        line1: garbage,
        line2: garbage,
        city: garbage,
        district: garbage,
        region: garbage,
        postal_code: garbage,
        country: fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...countries) }, { weight: 1, arbitrary: garbage }),
      },
      { requiredKeys: ["country"] },
    );
    const degrees = (limit: number) => fc.double({ min: -limit, max: limit, noNaN: true });
    const body = fc.record(
      { address, lat: degrees(95), lng: degrees(190), language: garbage },
      { requiredKeys: ["address"] },
    );
    await fc.assert(
      fc.asyncProperty(body, async (request) => {
        const { status, json } = await post(request);
        assert.ok(status === 200 || status === 422, `${status} ${JSON.stringify(json)}`);
        if (status === 200) assert.equal(answers.problemsOf(json), undefined);
      }),
      { numRuns: 400 },
    );
  });

  it("is normalised once: what was answered is answered again", () => {
    const formats = loadAddressFormats();
    const own = (country: string) => [...ruleset.places.values()].filter((place) => place.country === country);
    const written = (text: string) => fc.constantFrom(text, text.toUpperCase(), text.toLowerCase());
    const garbage = fc.string({ unit: "grapheme", maxLength: 12 });
    const known = fc.constantFrom(...formats.keys()).chain((country) => {
      const { regions = [], postal_examples = ["1234"] } = formats.get(country) ?? {};
      const places = own(country).flatMap((place) => [place.name, place.localName ?? place.name, place.code]);
      const names = [...places, ...regions.flatMap(({ key, name = key, latin_name = key }) => [key, name, latin_name])];
      const text = fc.oneof(garbage, fc.constantFrom(...names).chain(written));
      const postal_code = fc.oneof(garbage, fc.constantFrom(...postal_examples).chain(written));
      const parts = fc.record(
        { line1: garbage, city: text, region: text, district: garbage, postal_code },
        { requiredKeys: [] },
      );
      return parts.map((address) => ({ country, ...address }));
    });
    fc.assert(
      fc.property(known, (address) => {
        const first = validateAddress({ address }, address.country, { ruleset, formats });
        const { region_code: _code, formatted: _formatted, ...again } = first.normalized;
        const given = Object.fromEntries(Object.entries(again).filter(([, value]) => value !== null)) as Address;
        const second = validateAddress({ address: given }, address.country, { ruleset, formats });
        assert.deepEqual(second.changes, []);
        assert.deepEqual(second.normalized, first.normalized);
      }),
      { numRuns: 400 },
    );
  });

  it("is refused where it is absurdly long, or no address", async () => {
    const { status } = await post({ address: { ...rome, line1: "x".repeat(201) } });
    assert.equal(status, 422);
    assert.equal((await post({ address: { ...rome, line1: "x".repeat(100_000) } })).status, 413);
    for (const body of ["{", "[]", { address: null }, { address: "Via Veneto" }, { address: { ...rome, city: 7 } }]) {
      assert.equal((await post(body)).status, 422, JSON.stringify(body));
    }
  });

  it("is billable, refused or not", async () => {
    records.length = 0;
    await post({ address: rome });
    await post({});
    assert.deepEqual(
      records.map(({ endpoint }) => endpoint),
      ["/v1/addresses/validate", "/v1/addresses/validate"],
    );
  });
});
