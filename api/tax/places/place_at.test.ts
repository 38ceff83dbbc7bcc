import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { loadRuleset } from "../rules/rule_files.ts";
import { locate, placeAt } from "./place_at.ts";

const { places } = loadRuleset();
const at = (latitude: number, longitude: number) => placeAt(places, latitude, longitude);

describe("the place at a point", () => {
  it("is the city within whose reach it lies", () => {
    assert.equal(at(41.8902, 12.4922), "IT-RM-ROM");
    assert.equal(at(48.8606, 2.3376), "FR-75C");
    assert.equal(at(52.52, 13.405), "DE-BE");
    assert.equal(at(40.758, -73.9855), "US-NY-NYC");
    assert.equal(at(52.3731, 4.8926), "NL-NH-AMS");
    const { by, awayKm = 99 } = locate(places, 41.8902, 12.4922) ?? {};
    assert.equal(by, "city");
    assert.ok(awayKm < 3);
  });

  it("is what holds a city where no city reaches: a division if its ground is known, else the country", () => {
    assert.equal(at(30.9, -99.4), "US-TX", "the middle of Texas");
    assert.equal(at(34.02, -107.4), "US-NM");
    assert.equal(at(57.2, -4.6), "GB-SCT");
    assert.equal(at(28.11, -17.22), "ES-TF", "La Gomera");
    assert.equal(at(38.7, 1.45), "ES-PM", "Formentera");
    assert.equal(at(32.75, -17.0), "PT-30", "Madeira");
    assert.equal(at(51.6, 10.2), "DE-NI");
    assert.equal(at(-25.3, 131.0), "AU-NT");
    assert.equal(at(50.5, -86.5), "CA-ON");
    assert.equal(at(20.0, -89.0), "MX-YUC");
    assert.equal(at(35.9, 138.2), "JP-20");
    assert.equal(locate(places, 35.9, 138.2)?.by, "division");
    assert.equal(at(52.0, 17.0), "PL");
    assert.equal(locate(places, 52.0, 17.0)?.by, "country");
  });

  it("is the island where people go to an island", () => {
    assert.equal(at(28.27, -16.6), "ES-TF-TENERIFE");
    assert.equal(at(39.65, 3.0), "ES-PM-MALLORCA");
    assert.equal(at(36.42, 25.43), "GR-L-SANTORIN");
  });

  it("never lies across a border, however near a city is", () => {
    const jersey = at(40.7357, -74.1724);
    assert.ok(jersey?.startsWith("US-NJ"), `Newark is in New Jersey, not ${jersey}`);
    const annemasse = at(46.1934, 6.2342);
    assert.ok(annemasse?.startsWith("FR"), `Annemasse is in France, not ${annemasse}`);
    assert.equal(at(41.9022, 12.4533), "VA", "St Peter's Square");
    assert.ok(at(43.7384, 7.4246)?.startsWith("MC"));
    assert.ok(at(22.2855, 114.1577)?.startsWith("HK"));
    assert.ok(at(18.4655, -66.1057)?.startsWith("PR"));
    assert.ok(at(16.241, -61.533)?.startsWith("GP"), "Guadeloupe by its own code");
  });

  it("counts a beach to the state behind it, and the open sea to nobody", () => {
    assert.ok(at(29.21, -81.0)?.startsWith("US-FL"), "the water off Daytona Beach");
    assert.equal(at(35, -45), undefined);
    assert.equal(at(-48.9, -123.4), undefined, "as far from land as can be");
  });

  it("is the city itself, or a part of it, in the middle of every city that has a middle", () => {
    const astray = [...places.values()].flatMap(({ code, centroid, radiusKm }) => {
      if (!centroid || radiusKm === undefined) return [];
      const found = at(centroid[1], centroid[0]);
      const stack: string[] = [];
      for (let one = places.get(found ?? ""); one; one = places.get(one.parent ?? "")) stack.push(one.code);
      return stack.includes(code) ? [] : [`${code}: ${found}`];
    });
    assert.deepEqual(astray, []);
  });

  it("is in the country of its own stack, wherever that is", () => {
    fc.assert(
      fc.property(
        fc.double({ min: -90, max: 90, noNaN: true }),
        fc.double({ min: -180, max: 180, noNaN: true }),
        (latitude, longitude) => {
          const code = at(latitude, longitude);
          assert.ok(code === undefined || places.has(code));
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("the places that the service knows", () => {
  it("are all 249 countries of ISO 3166-1 and well over 600 places below them", () => {
    const all = [...places.values()];
    assert.equal(all.filter((place) => /^[A-Z]{2}$/.test(place.code)).length, 249);
    const below = all.filter((place) => place.parent !== undefined);
    assert.ok(below.length > 2500, String(below.length));
    const cities = below.filter(({ type }) => ["city", "municipality", "district", "special_zone"].includes(type));
    assert.ok(cities.length > 200, String(cities.length));
  });

  it("hold every division of the countries whose divisions tax stays", () => {
    const counts = {
      US: 51,
      CA: 13,
      DE: 16,
      JP: 47,
      AU: 8,
      MX: 32,
      IN: 36,
      CH: 26,
      AT: 9,
      BR: 27,
    };
    for (const [country, count] of Object.entries(counts)) {
      const found = [...places.values()].filter(
        (place) => place.parent === country && /^..-[A-Z0-9]{1,3}$/.test(place.code),
      );
      assert.ok(found.length >= count, `${country}: ${found.length} of ${count}`);
    }
    for (const [country, regions, below] of [
      ["ES", 17, 50],
      ["IT", 20, 105],
      ["FR", 13, 95],
    ] as const) {
      const own = [...places.values()].filter((place) => place.country === country);
      assert.ok(own.filter(({ type }) => type === "region").length >= regions - 1, `${country}: regions`);
      const provinces = own.filter(({ type }) => type === "province" || type === "department");
      assert.ok(provinces.length >= below, `${country}: ${provinces.length} of ${below}`);
      assert.ok(provinces.filter(({ parent }) => parent !== country).length >= below - 10, `${country}: under regions`);
    }
  });

  it("are called by English names, and by local ones where they differ", () => {
    const named = (code: string) => [places.get(code)?.name, places.get(code)?.localName];
    assert.deepEqual(named("DE-BY"), ["Bavaria", "Bayern"]);
    assert.deepEqual(named("JP-04"), ["Miyagi", "宮城県"]);
    assert.deepEqual(named("AT-9"), ["Vienna", "Wien"]);
    assert.equal(places.get("IT-82")?.name, "Sicily");
  });

  it("are one place where ISO has two codes for them", () => {
    for (const [other, code] of [
      ["US-PR", "PR"],
      ["FR-971", "GP"],
      ["CN-HK", "HK"],
    ] as const) {
      assert.ok(!places.has(other));
      assert.ok(places.get(code)?.otherCodes.includes(other));
    }
  });
});
