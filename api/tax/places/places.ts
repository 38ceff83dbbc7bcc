/** The tree of places, built from ISO 3166 and the jurisdiction files, and checked. */
import { iso31661, iso31662 } from "iso-3166";
import type { Jurisdiction, JurisdictionEntry, JurisdictionFile, Ring } from "./jurisdiction.ts";

/** @throws Error naming every problem by file and code */
export function assemblePlaces(
  files: readonly { file: string; content: JurisdictionFile }[],
): Map<string, Jurisdiction> {
  const problems: string[] = [];
  const places = new Map<string, Jurisdiction>();
  const names = new Map(files.flatMap(({ content }) => Object.entries(content.names ?? {})));
  const isoParents = new Map<string, string>();
  for (const { alpha2, name } of iso31661) {
    const named = names.get(alpha2) ?? { name };
    // ISO's own form, "Korea, Republic of", is found as well.
    const aliases = [...(named.aliases ?? []), ...(named.name === name ? [] : [name])];
    places.set(alpha2, placeFrom({ code: alpha2, ...named, aliases, type: "country" }));
  }
  for (const { file, content } of files) {
    for (const wanted of content.iso_subdivisions ?? []) {
      const found = iso31662.filter(({ code, parent }) =>
        wanted.codes === "top_level" ? parent === wanted.country : wanted.codes.includes(code),
      );
      if (wanted.codes !== "top_level" && found.length < wanted.codes.length) {
        const missing = wanted.codes.filter((code) => !found.some((one) => one.code === code));
        problems.push(`${file}: not in ISO 3166-2: ${missing.join(", ")}`);
      }
      for (const { code, name, parent } of found) {
        // Above it in ISO 3166-2, where that is among our places as well.
        isoParents.set(code, parent);
        const named = names.get(code) ?? { name: withoutFootnotes(name) };
        if (!places.has(code)) places.set(code, placeFrom({ code, ...named, type: wanted.type }));
      }
    }
  }
  for (const [code, parent] of isoParents) {
    const place = places.get(code);
    if (place && places.has(parent)) places.set(code, { ...place, parent });
  }
  const entered = new Map<string, string>();
  for (const { file, content } of files) {
    for (const entry of content.jurisdictions) {
      const before = entered.get(entry.code);
      if (before) problems.push(`${file}: ${entry.code} stands in ${before} as well`);
      entered.set(entry.code, file);
      places.set(entry.code, placeFrom(entry));
    }
  }
  for (const { code, parent } of places.values()) {
    const file = entered.get(code) ?? "ISO 3166-2";
    if (parent && !places.has(parent)) problems.push(`${file}: ${code}: its parent ${parent} does not exist`);
    const seen = new Set<string>();
    for (let at: string | undefined = code; at; at = places.get(at)?.parent) {
      if (seen.has(at)) {
        problems.push(`${file}: ${code}: its parents go round in a circle`);
        break;
      }
      seen.add(at);
    }
  }
  for (const { file, content } of files) {
    for (const [code, same] of Object.entries(content.same_as ?? {})) {
      const place = places.get(same);
      if (!place) problems.push(`${file}: ${code} is said to be ${same}, which does not exist`);
      else if (!place.otherCodes.includes(code))
        places.set(same, { ...place, otherCodes: [...place.otherCodes, code] });
    }
    for (const [code, aliases] of Object.entries(content.aliases ?? {})) {
      const place = places.get(code);
      if (!place) problems.push(`${file}: aliases: ${code} does not exist`);
      else places.set(code, { ...place, aliases: [...place.aliases, ...aliases] });
    }
    for (const [code, areas] of Object.entries(content.areas ?? {})) {
      const place = places.get(code);
      const rings = areas.map(ringFrom);
      if (!place) problems.push(`${file}: areas: ${code} does not exist`);
      else if (!rings.every(isRing)) problems.push(`${file}: areas: ${code} has a ring that is none`);
      else places.set(code, { ...place, areas: rings, areaErrorKm: content.area_error_km ?? 0 });
    }
  }
  const owners = new Map<string, string>();
  for (const place of places.values()) {
    for (const other of place.otherCodes) {
      const owner = places.has(other) ? other : owners.get(other);
      if (owner) problems.push(`${place.code}: other code ${other} is ${owner}'s`);
      owners.set(other, place.code);
    }
  }
  if (problems.length > 0)
    throw new Error(`The jurisdictions have ${problems.length} problems:\n  ${problems.join("\n  ")}`);
  return places;
}

function ringFrom(text: string): Ring {
  return text.split(" ").map((position) => {
    const [longitude, latitude] = position.split(",").map(Number);
    return [longitude ?? Number.NaN, latitude ?? Number.NaN] as const;
  });
}

const isRing = (ring: Ring) => ring.length >= 4 && ring.every(([x, y]) => Math.abs(x) <= 180 && Math.abs(y) <= 90);

/** "Rostock (with Warnemünde)" is found as Rostock too; what says that a name is the wider place's stays. */
function withoutBracket({ name, type }: JurisdictionEntry): string[] {
  const bare = /^(.+) \(.+\)$/.exec(name)?.[1];
  return bare !== undefined && ["city", "municipality", "county"].includes(type) ? [bare] : [];
}

/** ISO 3166-2 marks some names with the signs of its footnotes. */
const withoutFootnotes = (name: string) => name.replace(/\s*[†²*]+$/u, "");

function placeFrom(entry: JurisdictionEntry): Jurisdiction {
  const country = entry.code.slice(0, 2);
  return {
    code: entry.code,
    name: entry.name,
    localName: entry.local_name,
    aliases: [...withoutBracket(entry), ...(entry.aliases ?? [])],
    otherCodes: entry.other_codes ?? [],
    country,
    type: entry.type,
    parent: entry.code === country ? undefined : (entry.parent ?? country),
    status: entry.status,
    centroid: entry.centroid,
    radiusKm: entry.radius_km,
    polygon: entry.polygon,
    areas: [],
    areaErrorKm: 0,
    postcodes: entry.postcodes ?? [],
  };
}
