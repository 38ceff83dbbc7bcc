/**
 * The rooms of the house and their borders. `house.json` is where they are written; the lint rules in
 * `biome.json`, the import paths in `package.json` and the map in `docs/ARCHITECTURE.md` are made from it:
 *
 *     npm run house -- --write
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export interface Room {
  /** Other rooms import its files as `#name/file.ts`. */
  name: string;
  /** From the top of the repository. */
  folder: string;
  /** One line for the map. */
  holds: string;
  /** The tables of the database that it alone writes; any room may read them. */
  tables?: readonly string[];
  /** The rooms it may import besides contracts. Without it: every room. */
  may?: readonly string[];
  /** The only packages it may import. Without it: every package. */
  packages?: readonly string[];
  /** The globs of its files, where they are not its folder and all below. */
  files?: readonly string[];
}

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export function readRooms(): readonly Room[] {
  return JSON.parse(readFileSync(join(root, "test", "house", "house.json"), "utf8")).rooms;
}

/** The innermost room of a path from the top; undefined for files at the top. */
export function roomOf(rooms: readonly Room[], path: string): Room | undefined {
  return rooms
    .filter(({ folder }) => path.startsWith(`${folder}/`))
    .sort((a, b) => b.folder.length - a.folder.length)[0];
}

/** Biome's rule for each room that may not import everything. */
export function lintOverrides(rooms: readonly Room[]): object[] {
  const ofRooms = rooms.flatMap((room) => {
    const pattern = forbiddenImports(rooms, room);
    return pattern ? [restriction(room.files ?? [`${room.folder}/**`], pattern)] : [];
  });
  return [...ofRooms, restriction(["api/providers/*/twin.ts"], twinsForbidden)];
}

const twinsForbidden = {
  group: ["#*/**", "!#contracts/**", "./**", "../**", "!../*/twin.ts", "!../twin_server.ts"],
  message:
    "Border: a twin may import contracts, twin_server.ts and other twins alone, never the adapter that it is to prove.",
};

function restriction(includes: readonly string[], pattern: object): object {
  const noRestrictedImports = { level: "error", options: { patterns: [pattern] } };
  return { includes, linter: { rules: { style: { noRestrictedImports } } } };
}

function forbiddenImports(rooms: readonly Room[], { name, may, packages }: Room): object | undefined {
  if (packages) {
    const allowed = packages.flatMap((wanted) => [`!${wanted}`, `!${wanted}/**`]);
    const message = `Border: ${name} import nothing but ${packages.join(", ")} and their own files.`;
    return { group: ["**", "!./*", ...allowed], message };
  }
  if (!may) return undefined;
  const group = rooms
    .filter((other) => other.name !== "contracts" && other.name !== "test" && other.name !== "examples")
    .filter((other) => !may.includes(other.name))
    .map((other) => `#${other.name}/**`);
  const allowed = may.length > 0 ? `${may.join(", ")} and contracts` : "nothing but contracts";
  return { group, message: `Border: ${name} may import ${allowed} (see the rooms in docs/ARCHITECTURE.md).` };
}

/** The package subpaths by which rooms import each other. */
export function importPaths(rooms: readonly Room[]): Record<string, string> {
  return Object.fromEntries(rooms.map(({ name, folder }) => [`#${name}/*`, `./${folder}/*`]));
}

/** The map's table. */
export function mapTable(rooms: readonly Room[]): string {
  const rows = rooms.map(({ folder, holds, may, packages }) => {
    const imports = packages ? `nothing; of packages ${packages.join(", ")}` : (may?.join(", ") ?? "all");
    return `| \`${folder}/\` | ${holds} | ${imports} |`;
  });
  return ["| Room | What lives there | May import, besides contracts |", "|---|---|---|", ...rows].join("\n");
}
