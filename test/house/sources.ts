/** Every source file of the repository and what it imports, read as text. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { type Room, readRooms, root } from "./rooms.ts";

export interface Source {
  /** From the top of the repository. */
  path: string;
  lines: number;
  /** What it imports, as written. */
  specifiers: readonly string[];
  /** The files of the repository that it imports, from the top. */
  imports: readonly string[];
}

export function readSources(rooms: readonly Room[] = readRooms()): readonly Source[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.(ts|mjs|js)$/.test(path) && !/(^|\/)(node_modules|\.[^/]+)\//.test(path))
    .filter((path) => existsSync(join(root, path)))
    .map((path) => sourceAt(rooms, path));
}

function sourceAt(rooms: readonly Room[], path: string): Source {
  const text = readFileSync(join(root, path), "utf8");
  const specifiers = specifiersIn(text);
  const imports = specifiers.flatMap((specifier) => importedFile(rooms, path, specifier) ?? []);
  return { path, lines: text.split("\n").length, specifiers, imports };
}

/** Where a relative specifier or a room's subpath leads; undefined for packages. */
function importedFile(rooms: readonly Room[], from: string, specifier: string): string | undefined {
  if (specifier.startsWith(".")) return normalize(join(dirname(from), specifier));
  const room = rooms.find(({ name }) => specifier.startsWith(`#${name}/`));
  return room && `${room.folder}/${specifier.slice(room.name.length + 2)}`;
}

function specifiersIn(text: string): string[] {
  const found = text.matchAll(
    /^\s*(?:import|export)\b[^"'`;]*?\bfrom\s*"([^"]+)"|^\s*import\s*"([^"]+)"|\bimport\(\s*"([^"]+)"/gm,
  );
  return [...found].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
}
