/**
 * Schemas with a name and words for each field: what a route takes and answers stands in the OpenAPI
 * documents under its name, once, and a client made from a document has a type of that name.
 *
 * Words are in `about`, for readers. `description` is what a wrong value is told to be
 * ("Expected text that is not blank"), and documents show it after the words.
 */
import type { TObject, TProperties, TSchema } from "@sinclair/typebox";

declare const isNamed: unique symbol;

export type Named<S extends TSchema = TSchema> = S & { $id: string; [isNamed]: true };

type Words<S extends TSchema> = S extends TObject<infer Fields> ? { [Field in keyof Fields]?: string } : never;

/**
 * @param name in PascalCase, as `NewBooking`; one name is one schema
 * @param words by field. Fields without them say in their own schema what they are, or mean what
 *   `http/open_api/field_words.ts` says of them everywhere
 */
export function named<S extends TSchema>(name: string, schema: S, words?: Words<S>): Named<S> {
  if (!/^[A-Z][A-Za-z0-9]*$/.test(name)) throw new Error(`Cannot name a schema ${name}: expected PascalCase`);
  const properties: TProperties | undefined = words && withWords((schema as unknown as TObject).properties, words);
  return { ...schema, ...(properties && { properties }), $id: name } as unknown as Named<S>;
}

function withWords(properties: TProperties, words: Readonly<Record<string, string | undefined>>): TProperties {
  return Object.fromEntries(
    Object.entries(properties).map(([field, schema]) => {
      const about = words[field];
      return [field, about === undefined ? schema : { ...schema, about }];
    }),
  );
}
