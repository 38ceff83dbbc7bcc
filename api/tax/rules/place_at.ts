/**
 * The taxing place at a point, as far as our own data knows: inside a polygon, else within the
 * radius of a centre. A polygon decides before a radius, a smaller area before a larger one.
 */
import type { Jurisdiction } from "./jurisdiction.ts";

const earthRadiusKm = 6371.0088;

/** The code of the place, or undefined where no place of ours reaches. Degrees, WGS 84. */
export function placeAt(
  places: ReadonlyMap<string, Jurisdiction>,
  latitude: number,
  longitude: number,
): string | undefined {
  let best: { code: string; sizeKm: number } | undefined;
  for (const { code, polygon, centroid, radiusKm } of places.values()) {
    let sizeKm: number | undefined;
    if (polygon) {
      // Polygons are zones inside a city: smaller than any radius, the one with fewest degrees across first.
      if (isInside(polygon, longitude, latitude)) sizeKm = widthOf(polygon) - 1000;
    } else if (centroid && radiusKm !== undefined) {
      const awayKm = distanceKm(latitude, longitude, centroid[1], centroid[0]);
      if (awayKm <= radiusKm) sizeKm = radiusKm + awayKm / 1000;
    }
    if (sizeKm !== undefined && (!best || sizeKm < best.sizeKm)) best = { code, sizeKm };
  }
  return best?.code;
}

/** Great-circle distance by the haversine formula. */
function distanceKm(latitudeA: number, longitudeA: number, latitudeB: number, longitudeB: number): number {
  const radians = (degrees: number) => (degrees * Math.PI) / 180;
  const halfChord =
    Math.sin(radians(latitudeB - latitudeA) / 2) ** 2 +
    Math.cos(radians(latitudeA)) * Math.cos(radians(latitudeB)) * Math.sin(radians(longitudeB - longitudeA) / 2) ** 2;
  return 2 * earthRadiusKm * Math.asin(Math.min(1, Math.sqrt(halfChord)));
}

/** Whether a ray to the east crosses the ring an odd number of times. */
function isInside(ring: readonly (readonly [number, number])[], x: number, y: number): boolean {
  let inside = false;
  for (const [index, [ax, ay]] of ring.entries()) {
    const [bx, by] = ring[(index + 1) % ring.length] as readonly [number, number];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

function widthOf(ring: readonly (readonly [number, number])[]): number {
  const xs = ring.map(([x]) => x);
  return Math.max(...xs) - Math.min(...xs);
}
