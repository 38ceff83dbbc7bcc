/** `npm run providers`: writes the table of the catalogue into README.md; a test compares the two. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { TObject } from "@sinclair/typebox";
import { modelStages } from "#contracts/voice_agent.ts";
import { catalogue } from "./catalogue.ts";

const readmePath = fileURLToPath(new URL("./README.md", import.meta.url));
const begin = "<!-- from the catalogue: npm run providers -->";
const end = "<!-- end -->";

/** A row for each stage of each provider. */
export function providersTable(): string {
  const rows = modelStages.flatMap((stage) =>
    catalogue.flatMap((provider) => {
      const definition = provider[stage];
      if (!definition) return [];
      const key = provider.secrets ? `connection \`${provider.secrets.connection}\`` : "";
      const voices = definition.voices ? `; \`voice\` ${definition.voices.join(", ")} (beside \`options\`)` : "";
      const cells = [stage, `\`${provider.name}\``, key, `${optionsOf(definition.options)}${voices}`, definition.does];
      return [`| ${cells.join(" | ")} |`];
    }),
  );
  return ["| Stage | Provider | Key | Options, with their defaults | Does |", "|---|---|---|---|---|", ...rows].join(
    "\n",
  );
}

function optionsOf({ properties }: TObject): string {
  return Object.entries(properties)
    .map(([name, { default: value }]) => (value === undefined ? `\`${name}\`` : `\`${name}\` ${JSON.stringify(value)}`))
    .join(", ");
}

/** `readme` with the table in its place. @throws Error when the place is not marked */
export function withTable(readme: string): string {
  const [before, rest] = readme.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined)
    throw new Error(`Cannot write the table: expected ${begin} … ${end}`);
  return `${before}${begin}\n\n${providersTable()}\n\n${end}${after}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(readmePath, withTable(readFileSync(readmePath, "utf8")));
}
