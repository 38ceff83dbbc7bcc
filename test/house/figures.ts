/** What can be counted about how the house reads. Each figure lists what it counts, so that one can look. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./rooms.ts";
import { readSources, type Source } from "./sources.ts";

export interface HouseFigure {
  figure: string;
  goal: string;
  found: readonly string[];
}

/** A folder with more files than this is two rooms. */
export const folderFilesMax = 20;

export function houseFigures(sources: readonly Source[] = readSources()): readonly HouseFigure[] {
  return [
    { figure: "circles of imports, types included", goal: "0", found: importCircles(sources) },
    { figure: `folders of more than ${folderFilesMax} files, data apart`, goal: "0", found: fullFolders() },
    { figure: "product files that tests alone import", goal: "0", found: filesForTestsAlone(sources) },
  ];
}

/** Each circle as its files, smallest path first. */
export function importCircles(sources: readonly Source[]): string[] {
  const imports = new Map(sources.map(({ path, imports }) => [path, imports]));
  const circles = new Map<string, string>();
  const done = new Set<string>();
  const walk = (path: string, way: string[]) => {
    const at = way.indexOf(path);
    if (at >= 0) {
      const circle = way.slice(at);
      circles.set([...circle].sort().join(" "), circle.join(" -> "));
      return;
    }
    if (done.has(path)) return;
    for (const next of imports.get(path) ?? []) walk(next, [...way, path]);
    done.add(path);
  };
  for (const path of imports.keys()) walk(path, []);
  return [...circles.values()];
}

function fullFolders(): string[] {
  const counts = new Map<string, number>();
  const skipped = /(^|\/)(node_modules|\.[^/]+|data|golden|migrations)(\/|$)/;
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const folder = entry.parentPath.slice(root.length + 1);
    if (!entry.isFile() || folder === "" || skipped.test(folder)) continue;
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts].filter(([, count]) => count > folderFilesMax).map(([folder, count]) => `${folder}: ${count}`);
}

/** A file beside the product that no product file imports, though a test does, belongs into `test/kit`. */
export function filesForTestsAlone(sources: readonly Source[]): string[] {
  const entries = new Set(entryFiles());
  // What a command of package.json runs is no test, wherever it stands.
  const forTests = (path: string) => !entries.has(path) && (path.startsWith("test/") || /\.test\.(ts|js)$/.test(path));
  const byProduct = new Set(sources.filter(({ path }) => !forTests(path)).flatMap(({ imports }) => imports));
  const byTests = new Set(sources.filter(({ path }) => forTests(path)).flatMap(({ imports }) => imports));
  return sources
    .map(({ path }) => path)
    .filter((path) => !forTests(path) && byTests.has(path) && !byProduct.has(path) && !entries.has(path))
    .filter((path) => !standsBesideProduct.test(path) && !isPageScript(path));
}

/** A vendor's twin, and a suite that each new vendor must pass, stand beside what they test. */
const standsBesideProduct = /(\/twin|\/twin_server|_contract)\.ts$/;

/** What is started or loaded by name. */
function entryFiles(): string[] {
  const { entry } = JSON.parse(readFileSync(join(root, "knip.json"), "utf8"));
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return [...entry, ...Object.values<string>(scripts).flatMap((script) => script.split(" "))];
}

function isPageScript(path: string): boolean {
  return dirname(path).startsWith("gateway/pages/");
}
