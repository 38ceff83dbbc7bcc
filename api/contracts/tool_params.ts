/** Parameters of a tool as its author lists them: the schema that a model is shown, and the check of what it gave. Pure. */

export type ToolParamType = "string" | "number" | "integer" | "boolean" | "object" | "array";

export interface ToolParam {
  name: string;
  /** `string` unless given. */
  type?: ToolParamType;
  description?: string;
  required?: boolean;
}

/** JSON Schema of the arguments object. */
export function parametersOf(params: readonly ToolParam[]): Record<string, unknown> {
  return {
    type: "object",
    properties: Object.fromEntries(
      params.map(({ name, type, description }) => [
        name,
        { type: type ?? "string", ...(description && { description }) },
      ]),
    ),
    required: params.filter(({ required }) => required).map(({ name }) => name),
  };
}

/** What is wrong with the arguments, in words for the model, for example `/guests must be integer`. */
export function argumentProblem(
  params: readonly ToolParam[],
  given: Readonly<Record<string, unknown>>,
): string | undefined {
  for (const { name, type = "string", required } of params) {
    const value = given[name];
    if (value === undefined || value === null) {
      if (required) return `/${name} is required`;
    } else if (!isOfType(value, type)) return `/${name} must be ${type}`;
  }
  return undefined;
}

function isOfType(value: unknown, type: ToolParamType): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type === "object") return typeof value === "object" && !Array.isArray(value);
  return typeof value === type;
}
