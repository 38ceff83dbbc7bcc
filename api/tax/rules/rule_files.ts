/** Reads the rules and places from disk: `api/tax/data`, checked against their schemas. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import type { Static, TSchema } from "@sinclair/typebox";
import { validatorFor } from "#http/validation.ts";
import { JurisdictionFile } from "../places/jurisdiction.ts";
import { assemblePlaces } from "../places/places.ts";
import { RuleFile } from "./rule.ts";
import { assembleRuleset, type Ruleset } from "./ruleset.ts";
import { AtlasFile, DestinationFile } from "./slot.ts";

const dataFolder = fileURLToPath(new URL("../data/", import.meta.url));

/** @throws Error naming every problem by file, and by rule or place */
export function loadRuleset(folder: string = dataFolder): Ruleset {
  const places = assemblePlaces(readFiles(join(folder, "jurisdictions"), JurisdictionFile));
  return assembleRuleset(
    places,
    readFiles(join(folder, "rules"), RuleFile),
    readFiles(join(folder, "atlas"), AtlasFile),
    readFiles(join(folder, "destinations"), DestinationFile),
  );
}

function readFiles<S extends TSchema>(folder: string, schema: S): { file: string; content: Static<S> }[] {
  const validator = validatorFor(schema);
  const problems: string[] = [];
  // A folder of tests may have rules alone.
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".json"))
    .sort();
  const files = names.map((name) => {
    const file = relative(dataFolder, join(folder, name));
    const content = parse(join(folder, name), file, problems);
    const found = content === undefined ? {} : (validator.problemsOf(content) ?? {});
    for (const [path, message] of Object.entries(found)) problems.push(`${file}: ${named(content, path)}: ${message}`);
    return { file, content: content as Static<S> };
  });
  if (problems.length > 0) throw new Error(`Files that do not fit their schema:\n  ${problems.join("\n  ")}`);
  return files;
}

function parse(path: string, file: string, problems: string[]): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    problems.push(`${file}: is no JSON: ${(error as Error).message}`);
    return undefined;
  }
}

/** `rules.3.versions.0.amount` with the rule's id beside its number, for whoever has to find it. */
function named(content: unknown, path: string): string {
  const [list, index] = path.split(".");
  const entry = (content as Record<string, { id?: string; code?: string }[]>)[list ?? ""]?.[Number(index)];
  const name = entry?.id ?? entry?.code;
  return name ? `${name} (${path})` : path;
}
