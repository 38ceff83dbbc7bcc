import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "#http/logger.ts";
import { createRequestMetrics } from "#http/request_metrics.ts";
import { publicAccess } from "#http/route.ts";
import { createService } from "#http/service.ts";
import { taxErrorResponse } from "#http/tax_face.ts";
import { loadRuleset } from "../rules/rule_files.ts";
import { jurisdictionStatuses, jurisdictionTypes } from "./jurisdiction.ts";
import { jurisdictionRoutes } from "./jurisdictions.ts";

const service = createService({
  routes: jurisdictionRoutes({
    ruleset: loadRuleset(),
    guard: publicAccess,
    now: () => new Date("2026-06-01T12:00:00Z"),
  }),
  face: taxErrorResponse,
  logger: silentLogger,
  metrics: createRequestMetrics(),
  newRequestId: () => "request",
});

interface Place {
  code: string;
  name: string;
  country: string;
  type: string;
  status: string;
  parent: string | null;
  coverage: string;
}

async function get(query: Record<string, string | number>) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) search.set(name, String(value));
  const response = await service(new Request(`http://127.0.0.1/v1/jurisdictions?${search}`));
  const json: unknown = await response.json();
  return { status: response.status, total: Number(response.headers.get("x-total-count")), json };
}
async function list(query: Record<string, string | number>): Promise<{ places: Place[]; total: number }> {
  const { status, total, json } = await get(query);
  assert.equal(status, 200, JSON.stringify(json));
  return { places: json as Place[], total };
}
async function whole(): Promise<Place[]> {
  const places: Place[] = [];
  for (let offset = 0; ; offset += 1000) {
    const page = await list({ limit: 1000, offset });
    places.push(...page.places);
    if (page.places.length < 1000) {
      assert.equal(places.length, page.total);
      return places;
    }
  }
}

describe("GET /v1/jurisdictions", () => {
  it("lists every country of ISO 3166-1 first, and more than 600 places below", async () => {
    const places = await whole();
    const roots = places.filter(({ parent }) => parent === null);
    assert.equal(roots.length, 249);
    assert.deepEqual(
      places.slice(0, 249).map(({ code }) => code),
      roots.map(({ code }) => code).sort(),
    );
    assert.ok(places.length > 249 + 600);
    assert.equal(new Set(places.map(({ code }) => code)).size, places.length);
  });

  it("says of each its type, status, parent and coverage", async () => {
    const places = await whole();
    const codes = new Set(places.map(({ code }) => code));
    for (const place of places) {
      assert.ok((jurisdictionTypes as readonly string[]).includes(place.type), place.code);
      assert.ok((jurisdictionStatuses as readonly string[]).includes(place.status), place.code);
      assert.ok(place.parent === null ? place.code === place.country : codes.has(place.parent), place.code);
      assert.ok(["verified", "partial", "none_known", "no_tax"].includes(place.coverage), place.code);
      assert.equal(place.code.slice(0, 2), place.country);
    }
  });

  it("says where a tax is only announced, and where it is in force", async () => {
    const status = async (q: string) => (await list({ q })).places[0]?.status;
    assert.equal(await status("Okinawa"), "announced");
    assert.equal(await status("Wales"), "announced");
    assert.equal(await status("Rome"), "active");
    assert.ok((await list({ status: "announced" })).total >= 2);
  });

  it("is honest about places without rules", async () => {
    const { places } = await list({ country: "KP" });
    assert.ok(places.length > 0);
    assert.deepEqual([...new Set(places.map(({ coverage }) => coverage))], ["none_known"]);
  });

  it("filters by country, type, status and parent, alone and together", async () => {
    const { places: german, total } = await list({ country: "DE", limit: 1000 });
    assert.equal(german.length, total);
    assert.ok(german.every(({ country }) => country === "DE"));
    const { places: states } = await list({ country: "de", type: "state" });
    assert.equal(states.length, 16);
    assert.ok(states.every(({ parent }) => parent === "DE"));
    const { places: catalan } = await list({ parent: "ES-CT" });
    assert.ok(catalan.length >= 4);
    assert.ok(catalan.every(({ parent }) => parent === "ES-CT"));
    for (const status of jurisdictionStatuses) {
      const { places } = await list({ status, limit: 1000 });
      assert.ok(places.every((place) => place.status === status));
    }
    assert.equal((await list({ status: "active", country: "DE", type: "state", parent: "DE" })).total, 16);
    assert.equal((await list({ country: "ZZ" })).total, 0);
    assert.equal((await list({ country: "DE", parent: "FR" })).total, 0);
  });

  it("finds by a part of the English or local name, whatever case and accents", async () => {
    const first = async (q: string) => (await list({ q })).places[0]?.code;
    assert.equal(await first("bavaria"), "DE-BY");
    assert.equal(await first("BAYERN"), "DE-BY");
    assert.equal(await first("Île-de-France"), "FR-IDF");
    assert.equal(await first("ile de france".replaceAll(" ", "-")), "FR-IDF");
    assert.equal(await first("東京"), "JP-13");
    assert.equal(await first("oaxaca"), "MX-OAX");
    assert.equal(await first("south korea"), "KR");
    assert.equal(await first("Korea, Republic of"), "KR");
    assert.equal(await first("Deutschland"), "DE");
    assert.equal(await first("united states"), "US");
    const { places, total } = await list({ q: "land", type: "country", limit: 3 });
    assert.equal(places.length, 3);
    assert.ok(total > 10);
    assert.equal((await list({ q: "no such place anywhere" })).total, 0);
  });

  it("pages without gaps or repeats, with filters too", async () => {
    const { places: all } = await list({ country: "JP", limit: 1000 });
    const pages: Place[] = [];
    for (let offset = 0; offset < all.length; offset += 7) {
      pages.push(...(await list({ country: "JP", limit: 7, offset })).places);
    }
    assert.deepEqual(pages, all);
    assert.deepEqual((await list({ country: "JP", offset: 1_000_000 })).places, []);
    assert.equal((await list({})).places.length, 100, "by default");
  });

  it("refuses what is no filter, and bounds that cannot be", async () => {
    for (const [query, loc] of [
      [{ limit: 0 }, ["query", "limit"]],
      [{ limit: 1001 }, ["query", "limit"]],
      [{ limit: "many" }, ["query", "limit"]],
      [{ offset: -1 }, ["query", "offset"]],
      [{ type: "planet" }, ["query", "type"]],
      [{ status: "maybe" }, ["query", "status"]],
      [{ country: "G" }, ["query", "country"]],
      [{ name: "Rome" }, ["query", "name"]],
    ] as const) {
      const { status, json } = await get(query);
      assert.equal(status, 422);
      assert.deepEqual((json as { detail: { loc: unknown }[] }).detail[0]?.loc, loc);
    }
  });
});
