/** What an OpenAPI document leaves unsaid: `npm run check` fails on it, so that endpoints are described as they are written. */

interface Schema {
  $ref?: string;
  description?: string;
  properties?: Record<string, Schema>;
}
interface Content {
  content?: Record<string, { schema: Schema }>;
}
interface Operation {
  summary: string;
  parameters: { name: string; description?: string }[];
  requestBody?: Content;
  responses: Record<string, Content>;
}
export interface DescribedDocument {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

/** One line each: operations without a summary, bodies and replies without a name, fields and parameters without words. */
export function gapsOf({ paths, components: { schemas } }: DescribedDocument): string[] {
  const ofOperations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) =>
      gapsOfOperation(operation).map((gap) => `${method.toUpperCase()} ${path}: ${gap}`),
    ),
  );
  const ofSchemas = Object.entries(schemas).flatMap(([name, schema]) => fieldsWithoutWords(schema, name, schemas));
  return [...ofOperations, ...ofSchemas];
}

function gapsOfOperation({ summary, parameters, requestBody, responses }: Operation): string[] {
  const nameless = ([where, holder]: [string, Content | undefined]) =>
    Object.values(holder?.content ?? {}).some(({ schema }) => !schema.$ref) ? [`no named schema of ${where}`] : [];
  return [
    ...(summary.trim() ? [] : ["no summary"]),
    ...parameters.filter(({ description }) => !description).map(({ name }) => `no words for parameter ${name}`),
    ...nameless(["the body", requestBody]),
    ...Object.entries(responses).flatMap(([status, reply]) => nameless([`reply ${status}`, reply])),
  ];
}

/** A field that is another schema by name is described where that one is. */
function fieldsWithoutWords(value: unknown, at: string, schemas: Readonly<Record<string, Schema>>): string[] {
  if (typeof value !== "object" || value === null) return [];
  const { properties, ...rest } = value as Schema;
  const isDescribed = ({ description, $ref }: Schema) =>
    Boolean(description || ($ref && schemas[$ref.slice("#/components/schemas/".length)]?.description));
  const ofFields = Object.entries(properties ?? {}).flatMap(([field, schema]) => [
    ...(isDescribed(schema) ? [] : [`${at}.${field}: no words`]),
    ...fieldsWithoutWords(schema, `${at}.${field}`, schemas),
  ]);
  const { examples: _, default: __, enum: ___, ...parts } = rest as Record<string, unknown>;
  return [...ofFields, ...Object.values(parts).flatMap((part) => fieldsWithoutWords(part, at, schemas))];
}
