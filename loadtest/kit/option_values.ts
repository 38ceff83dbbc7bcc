/** How commands read their options: named, checked and bounded. */
import { parseArgs } from "node:util";

/** A wrong option; the message says what was expected. */
export class OptionsError extends Error {}

export type TransportName = "uws" | "ws";

/** Values by name of `--name value`; `flags` take none. @throws OptionsError for a name that is not listed */
export function optionValues<const Name extends string, const Flag extends string = never>(
  args: readonly string[],
  names: readonly Name[],
  flags: readonly Flag[] = [],
): Partial<Record<Name, string>> & Partial<Record<Flag, boolean>> {
  const text = names.map((name) => [name, { type: "string" }] as const);
  const boolean = flags.map((name) => [name, { type: "boolean" }] as const);
  try {
    const { values } = parseArgs({ args: [...args], options: Object.fromEntries([...text, ...boolean]) });
    return values as Partial<Record<Name, string>> & Partial<Record<Flag, boolean>>;
  } catch (error) {
    throw new OptionsError((error as Error).message);
  }
}

/** @throws OptionsError for what is not a whole number within the bounds */
export function whole(name: string, value: string | undefined, byDefault: number, min: number, max: number): number {
  if (value === undefined) return byDefault;
  const number = Number(value);
  if (!Number.isInteger(number) || number < min || number > max) {
    throw new OptionsError(`--${name}: Expected a whole number from ${min} to ${max}, not "${value}"`);
  }
  return number;
}

/** @throws OptionsError */
export function choice<const T extends string>(name: string, value: string, allowed: readonly T[]): T {
  const found = allowed.find((one) => one === value);
  if (!found) throw new OptionsError(`--${name}: Expected one of ${allowed.join(", ")}, not "${value}"`);
  return found;
}

/** `uws`, `ws`, or `both`: one after the other. @throws OptionsError */
export function transportsOf(value: string | undefined): readonly TransportName[] {
  const chosen = choice("transport", value ?? "both", ["uws", "ws", "both"]);
  return chosen === "both" ? ["uws", "ws"] : [chosen];
}
