/**
 * Fields of a body that nobody reads. They are named in the answer (`ignored_fields`), so that nobody
 * takes them for counted; one that is a slip of the hand for a field of ours is refused, and with
 * `strict` all are.
 */
import { type TSchema, Type } from "@sinclair/typebox";
import { invalidRequest } from "#http/validation.ts";

/** In answers: absent where every field was read. */
export const IgnoredFields = Type.Optional(
  Type.Array(Type.String(), {
    about: "fields of the request that nobody reads, by their path; absent where there are none",
  }),
);

interface Shape {
  properties?: Readonly<Record<string, TSchema>>;
  items?: TSchema;
  anyOf?: readonly TSchema[];
}

/**
 * @param value a body, or a part of one, that fits its schema
 * @returns paths below `value` of the fields that the schema does not have, as `included_amounts.lunch`
 * @throws ApiError bad_request, extra_forbidden: one is nearly the name of a field, or all are refused
 */
export function ignoredFields(schema: TSchema, value: unknown, strict = false): string[] {
  return [...unknownIn(schema, value, "")].map(({ path, known }) => {
    const name = path.slice(path.lastIndexOf(".") + 1);
    const meant = known.find((one) => isNearly(name, one));
    if (meant !== undefined) throw refused(path, `Unknown field: did you mean ${meant}?`);
    if (strict) throw refused(path, "Unknown field, and strict refuses those");
    return path;
  });
}

const refused = (path: string, message: string) => invalidRequest("body", path, message, "extra_forbidden");

function* unknownIn(schema: TSchema, value: unknown, path: string): Iterable<{ path: string; known: string[] }> {
  if (typeof value !== "object" || value === null) return;
  const { properties, items, anyOf = [] } = schema as Shape;
  if (Array.isArray(value)) {
    if (items) for (const [index, item] of value.entries()) yield* unknownIn(items, item, `${path}${index}.`);
  } else if (properties) {
    for (const [name, field] of Object.entries(value)) {
      const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (own) yield* unknownIn(own, field, `${path}${name}.`);
      else yield { path: path + name, known: Object.keys(properties) };
    }
  }
  // Of alternatives the one that has the value's shape: an object, or a list of them.
  const isFitting = (one: Shape) => (Array.isArray(value) ? one.items !== undefined : one.properties !== undefined);
  for (const one of anyOf.filter((one) => isFitting(one as Shape))) yield* unknownIn(one, value, path);
}

const distanceMax = 2;

/** Whether two names differ by as little as a slip of the hand: fewer letters where they are short. */
function isNearly(name: string, known: string): boolean {
  const allowed = Math.min(distanceMax, Math.floor(known.length / 4));
  return Math.abs(name.length - known.length) <= allowed && editsBetween(name.toLowerCase(), known) <= allowed;
}

/** Levenshtein's distance. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const kept = (row[j] as number) + (letter === other ? 0 : 1);
      next.push(Math.min(kept, (row[j + 1] as number) + 1, (next[j] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
