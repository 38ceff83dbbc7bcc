/** Schemas that take no fields but those they name: for requests in which a misspelt field is a wrong order. */
import type { TSchema } from "@sinclair/typebox";

interface Parts {
  properties?: Record<string, TSchema>;
  additionalProperties?: unknown;
  items?: TSchema | TSchema[];
  anyOf?: TSchema[];
  allOf?: TSchema[];
}

/**
 * `schema` with every object in it closed, at every depth. An object that says itself what else it
 * takes stays as it is.
 * @throws Error for an intersection, whose parts would refuse each other's fields: expected a composite
 */
export function closed<S extends TSchema>(schema: S): S {
  const { properties, additionalProperties, items, anyOf, allOf } = schema as Parts;
  if (allOf) throw new Error("Cannot close an intersection: expected Type.Composite");
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, closedPart(field)])),
      additionalProperties: additionalProperties ?? false,
    }),
    ...(items && { items: Array.isArray(items) ? items.map(closedPart) : closedPart(items) }),
    ...(anyOf && { anyOf: anyOf.map(closedPart) }),
  };
}

/** Without its name, which is the open schema's: replies have that one. */
function closedPart<S extends TSchema>(schema: S): S {
  const { $id: _, ...part } = closed(schema);
  return part as S;
}
