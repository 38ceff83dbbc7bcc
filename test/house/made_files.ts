/** The files, or parts of files, that are made from `house.json`. `borders.test.ts` fails when one is stale. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { codesPage } from "./codes_page.ts";
import { licencesPage } from "./packages/packages.ts";
import { importPaths, lintOverrides, mapTable, type Room, readRooms, root } from "./rooms.ts";

const mapStart = "<!-- The map is made from test/house/house.json by `npm run house -- --write`. -->";
const mapEnd = "<!-- End of the map. -->";

/** Path and text of each made file, as it should be. */
export function madeFiles(rooms: readonly Room[] = readRooms()): Map<string, string> {
  return new Map([
    ["biome.json", withLintRules(rooms)],
    ["package.json", withImportPaths(rooms)],
    ["docs/ARCHITECTURE.md", withMap(rooms)],
    ["docs/CODES.md", codesPage()],
    ["docs/LICENSES.md", licencesPage()],
  ]);
}

/** @returns the paths of the files that were stale */
export function writeMade(): string[] {
  const stale = [...madeFiles()].filter(([path, text]) => text !== readText(path));
  for (const [path, text] of stale) writeFileSync(join(root, path), text);
  return stale.map(([path]) => path);
}

/** Room rules first, as they are made; rules about other things follow as somebody wrote them. */
function withLintRules(rooms: readonly Room[]): string {
  const config = JSON.parse(readText("biome.json"));
  const others = config.overrides.filter((override: object) => !JSON.stringify(override).includes('"Border: '));
  return asJson({ ...config, overrides: [...lintOverrides(rooms), ...others] });
}

function withImportPaths(rooms: readonly Room[]): string {
  return asJson({ ...JSON.parse(readText("package.json")), imports: importPaths(rooms) });
}

function withMap(rooms: readonly Room[]): string {
  const [before, rest] = split(readText("docs/ARCHITECTURE.md"), mapStart);
  const [, after] = split(rest, mapEnd);
  return `${before}${mapStart}\n\n${mapTable(rooms)}\n\n${mapEnd}${after}`;
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  if (at < 0) throw new Error(`docs/ARCHITECTURE.md has no line "${mark}"`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}

function readText(path: string): string {
  return existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : "";
}

function asJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
