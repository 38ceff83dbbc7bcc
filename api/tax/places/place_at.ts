/**
 * The taxing place at a point, as far as our own data knows. The country comes from the borders of
 * `country-coder`, the division from those or from areas in our files; then the most specific place
 * that reaches the point: inside a zone's polygon, else within the radius of a city's centre. A place
 * of another country or division than the point's does not reach it, whatever its radius.
 */
import { borders, featuresContaining } from "@rapideditor/country-coder";
import type { Jurisdiction, Ring } from "./jurisdiction.ts";

const earthRadiusKm = 6371.0088;
/** Areas are drawn coarsely: a beach, a pier or the middle of a border river may lie outside of all. */
const areaReachKm = 10;
/** The reach in degrees, enough at the latitudes where areas are. */
const margin = 0.25;

/** Codes of features that are no ISO codes, by ours. */
const divisionsByFeature: Readonly<Record<string, string>> = { IC: "ES-CN" };

export interface Located {
  code: string;
  /** By what the place was found. */
  by: "zone" | "city" | "division" | "country";
  /** From the centre of a city; undefined for the rest. */
  awayKm: number | undefined;
}

/** The code of the place, or undefined where no place of ours reaches, at sea for example. Degrees, WGS 84. */
export function placeAt(
  places: ReadonlyMap<string, Jurisdiction>,
  latitude: number,
  longitude: number,
): string | undefined {
  return locate(places, latitude, longitude)?.code;
}

/** The place with how it was found. */
export function locate(
  places: ReadonlyMap<string, Jurisdiction>,
  latitude: number,
  longitude: number,
): Located | undefined {
  const { reaching, outlined, areas } = indexOf(places);
  const { country, divisions, possible } = groundAt(places, areas, latitude, longitude);
  const isThere = (code: string) => {
    const stack = stackOf(places, code);
    return (
      (country === undefined || stack.at(-1) === country) &&
      stack.every((one) => possible.includes(one) || !outlined.has(one))
    );
  };
  const zones = reaching.filter(
    ({ polygon, code }) => polygon && isInside(polygon, longitude, latitude) && isThere(code),
  );
  const [zone] = zones.sort((a, b) => widthOf(a.polygon as Ring) - widthOf(b.polygon as Ring));
  if (zone) return { code: zone.code, by: "zone", awayKm: undefined };

  const near = reaching.flatMap(({ code, polygon, centroid, radiusKm }) => {
    if (polygon || !centroid || radiusKm === undefined) return [];
    const awayKm = distanceKm(latitude, longitude, centroid[1], centroid[0]);
    return awayKm <= radiusKm && isThere(code) ? [{ code, awayKm, share: awayKm / radiusKm }] : [];
  });
  const narrowest = near.filter(
    ({ code }) => !near.some((other) => other.code !== code && stackOf(places, other.code).includes(code)),
  );
  const [city] = narrowest.sort((a, b) => a.share - b.share);
  if (city) return { code: city.code, by: "city", awayKm: city.awayKm };

  const [division] = divisions.sort((a, b) => stackOf(places, b).length - stackOf(places, a).length);
  if (division) return { code: division, by: "division", awayKm: undefined };
  return country === undefined ? undefined : { code: country, by: "country", awayKm: undefined };
}

/** A circle stands for ground that is not round: who is beyond twice its radius is surely outside. */
const outsideRadii = 2;

/** Whether a point is surely not in a place: outside of its polygon, or far from its centre. False where we do not know where it lies. */
export function isSurelyOutside(place: Jurisdiction, latitude: number, longitude: number): boolean {
  const { polygon, centroid, radiusKm } = place;
  if (polygon) return !isInside(polygon, longitude, latitude);
  if (!centroid || radiusKm === undefined) return false;
  return distanceKm(latitude, longitude, centroid[1], centroid[0]) > outsideRadii * radiusKm;
}

interface PlaceIndex {
  /** Places with a polygon, or a centre and radius. */
  reaching: readonly Jurisdiction[];
  /** Divisions whose ground is known, so that a point elsewhere is not in them. */
  outlined: ReadonlySet<string>;
  areas: readonly { code: string; country: string; errorKm: number; rings: readonly Outline[] }[];
}

interface Outline {
  ring: Ring;
  west: number;
  east: number;
  south: number;
  north: number;
}

const indexes = new WeakMap<ReadonlyMap<string, Jurisdiction>, PlaceIndex>();

function indexOf(places: ReadonlyMap<string, Jurisdiction>): PlaceIndex {
  const known = indexes.get(places);
  if (known) return known;
  const all = [...places.values()];
  const areas = all
    .filter((place) => place.areas.length > 0)
    .map(({ code, country, areas, areaErrorKm }) => ({
      code,
      country,
      errorKm: areaErrorKm,
      rings: areas.map(outlineOf),
    }));
  const features = (borders as { features: BorderFeature[] }).features;
  const drawn = [...features.flatMap((feature) => divisionsOf(places, feature)), ...areas.map((one) => one.code)];
  // What is made of smaller ones that are drawn may be drawn in part.
  const made = new Set(drawn.flatMap((code) => stackOf(places, code).slice(1)));
  const outlined = new Set(drawn.filter((code) => !made.has(code)));
  const reaching = all.filter((place) => place.polygon || (place.centroid && place.radiusKm !== undefined));
  const index = { reaching, outlined, areas };
  indexes.set(places, index);
  return index;
}

function outlineOf(ring: Ring): Outline {
  const xs = ring.map(([x]) => x);
  const ys = ring.map(([, y]) => y);
  return { ring, west: Math.min(...xs), east: Math.max(...xs), south: Math.min(...ys), north: Math.max(...ys) };
}

/** What is used of a feature of `country-coder`. */
interface BorderFeature {
  properties: { id: string; iso1A2?: string; aliases?: string[]; level: string };
}

/** Our codes of the divisions that a feature is. */
function divisionsOf(places: ReadonlyMap<string, Jurisdiction>, { properties: { id, aliases = [] } }: BorderFeature) {
  return [divisionsByFeature[id] ?? id, ...aliases].filter((code) => code.includes("-") && places.has(code));
}

/**
 * The country, or the territory with a country code of its own; the divisions whose ground the point is
 * on; and with them those whose ground it may be on, as coarsely as areas are drawn.
 */
function groundAt(
  places: ReadonlyMap<string, Jurisdiction>,
  areas: PlaceIndex["areas"],
  latitude: number,
  longitude: number,
): { country: string | undefined; divisions: string[]; possible: string[] } {
  const features = featuresContaining([longitude, latitude]) as BorderFeature[];
  const withCode = features.filter(({ properties: { iso1A2 } }) => iso1A2 !== undefined && places.has(iso1A2));
  // A territory lies in its country as well: the narrower one comes with the lower level.
  const country = (withCode.find(({ properties }) => properties.level === "territory") ?? withCode[0])?.properties
    .iso1A2;
  const { area, near } = areasAt(
    areas.filter((one) => one.country === country),
    latitude,
    longitude,
  );
  const ofBorders = features.flatMap((feature) => divisionsOf(places, feature));
  const inCountry = (codes: string[]) => [...new Set(codes)].filter((code) => stackOf(places, code).at(-1) === country);
  const divisions = inCountry([...ofBorders, ...(area ? [area] : [])]);
  return { country, divisions, possible: inCountry([...divisions, ...near]) };
}

/** The area that covers the point, else the nearest within reach; and those near enough that it may be theirs. */
function areasAt(areas: PlaceIndex["areas"], latitude: number, longitude: number) {
  let covering: string | undefined;
  let nearest: { code: string; awayKm: number } | undefined;
  const near = new Set<string>();
  for (const { code, errorKm, rings } of areas) {
    for (const { ring, west, east, south, north } of rings) {
      const isNear =
        longitude >= west - margin &&
        longitude <= east + margin &&
        latitude >= south - margin &&
        latitude <= north + margin;
      if (!isNear) continue;
      const covers = isInside(ring, longitude, latitude);
      if (covers) covering ??= code;
      const awayKm = covers ? 0 : edgeDistanceKm(ring, latitude, longitude);
      if (awayKm <= errorKm) near.add(code);
      if (awayKm <= areaReachKm && (!nearest || awayKm < nearest.awayKm)) nearest = { code, awayKm };
    }
  }
  return { area: covering ?? nearest?.code, near: [...near] };
}

/** To the ring's nearest edge, on a plane that touches the earth at the point: exact enough within some km. */
function edgeDistanceKm(ring: Ring, latitude: number, longitude: number): number {
  const kmPerDegree = (Math.PI / 180) * earthRadiusKm;
  const flat = ring.map(
    ([x, y]) =>
      [(x - longitude) * kmPerDegree * Math.cos((latitude * Math.PI) / 180), (y - latitude) * kmPerDegree] as const,
  );
  let least = Number.POSITIVE_INFINITY;
  for (const [index, [ax, ay]] of flat.entries()) {
    const [bx, by] = flat[(index + 1) % flat.length] as readonly [number, number];
    const [dx, dy] = [bx - ax, by - ay];
    const lengthSquared = dx * dx + dy * dy;
    const along = lengthSquared === 0 ? 0 : Math.max(0, Math.min(1, -(ax * dx + ay * dy) / lengthSquared));
    least = Math.min(least, Math.hypot(ax + along * dx, ay + along * dy));
  }
  return least;
}

/** The codes of a place and of those above it, itself first. */
function stackOf(places: ReadonlyMap<string, Jurisdiction>, code: string): string[] {
  const stack: string[] = [];
  for (let place = places.get(code); place; place = place.parent ? places.get(place.parent) : undefined)
    stack.push(place.code);
  return stack;
}

/** Great-circle distance by the haversine formula. */
export function distanceKm(latitudeA: number, longitudeA: number, latitudeB: number, longitudeB: number): number {
  const radians = (degrees: number) => (degrees * Math.PI) / 180;
  const halfChord =
    Math.sin(radians(latitudeB - latitudeA) / 2) ** 2 +
    Math.cos(radians(latitudeA)) * Math.cos(radians(latitudeB)) * Math.sin(radians(longitudeB - longitudeA) / 2) ** 2;
  return 2 * earthRadiusKm * Math.asin(Math.min(1, Math.sqrt(halfChord)));
}

/** Whether a ray to the east crosses the ring an odd number of times. */
function isInside(ring: Ring, x: number, y: number): boolean {
  let inside = false;
  for (const [index, [ax, ay]] of ring.entries()) {
    const [bx, by] = ring[(index + 1) % ring.length] as readonly [number, number];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

function widthOf(ring: Ring): number {
  const xs = ring.map(([x]) => x);
  return Math.max(...xs) - Math.min(...xs);
}
