import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

/**
 * The borders between the rooms. Biome forbids imports by name (`biome.json`); here is what it
 * cannot express, and the proof that its rules bite.
 */
const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What each room may import of the others, besides contracts. The README draws the same map. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  "api/bus": [],
  "api/outbound": [],
  "api/providers": ["outbound"],
  "api/http": [],
  "api/store": [],
  "api/identity": ["bus", "outbound", "http", "store"],
  "api/runs": ["bus", "outbound", "providers", "http", "store", "identity"],
  "api/platform": ["bus", "outbound", "providers", "http", "store", "identity", "runs"],
  "api/tax": ["bus", "outbound", "http", "store", "identity"],
  media: ["outbound", "providers"],
  gateway: ["bus", "media"],
  loadtest: ["media", "providers"],
  examples: ["media"],
};
const rooms = [
  "bus",
  "outbound",
  "providers",
  "http",
  "store",
  "identity",
  "runs",
  "platform",
  "tax",
  "media",
  "gateway",
  "loadtest",
  "standalone",
];
const roomFolders = ["api/contracts", ...Object.keys(allowed), "api", "standalone", "test"];

const sources = sourceFiles();

describe("the borders between rooms", () => {
  it("are lint errors, for every pair of rooms", () => {
    const probes = new Map(
      Object.keys(allowed).map((room) => [`${room}/probe.ts`, ["contracts", ...rooms].map((name) => `#${name}/x.ts`)]),
    );
    const refused = judge(probes);
    for (const [room, mayImport] of Object.entries(allowed)) {
      // Its own subpath too: inside a room imports are relative.
      const forbidden = rooms.filter((name) => !mayImport.includes(name));
      assert.deepEqual(refused.get(`${room}/probe.ts`)?.sort(), forbidden.map((name) => `#${name}/x.ts`).sort(), room);
    }
  });

  it("are lint errors in the contracts, which import TypeBox alone", () => {
    const forbidden = ["node:fs", "hono", "#bus/bus.ts", "../bus/bus.ts"];
    const path = "api/contracts/probe.ts";
    assert.deepEqual(judge(new Map([[path, [...forbidden, "./errors.ts", "@sinclair/typebox"]]])).get(path), forbidden);
  });

  it("let a vendor's twin import contracts alone, by lint", () => {
    const forbidden = ["./llm.ts", "../waiting.ts", "#outbound/guarded_http.ts", "#providers/waiting.ts"];
    const path = "api/providers/openai/twin.ts";
    const fine = ["#contracts/vendor_twin.ts", "node:http", "ws"];
    assert.deepEqual(
      judge(new Map([[path, [...forbidden, ...fine]]]))
        .get(path)
        ?.sort(),
      [...forbidden].sort(),
    );
  });

  it("let twins into tests and the load tool alone", () => {
    const users = sources.filter(({ specifiers }) => specifiers.some((specifier) => specifier.endsWith("/twin.ts")));
    assert.deepEqual(
      users
        .map(({ path }) => path)
        .filter((path) => !path.endsWith(".test.ts") && !path.startsWith("test/") && !path.startsWith("loadtest/")),
      [],
    );
  });

  it("are crossed by package subpaths, never by a relative path", () => {
    const crossings = sources.flatMap(({ path, specifiers }) =>
      specifiers
        .filter((specifier) => specifier.startsWith("."))
        .filter((specifier) => roomOf(path) !== roomOf(relative(root, resolve(root, dirname(path), specifier))))
        .map((specifier) => `${path}: ${specifier}`),
    );
    assert.deepEqual(crossings, []);
  });

  it("let test code into tests alone", () => {
    const users = sources.filter(({ specifiers }) => specifiers.some((specifier) => specifier.startsWith("#test/")));
    assert.deepEqual(
      users.map(({ path }) => path).filter((path) => !path.endsWith(".test.ts") && !path.startsWith("test/")),
      [],
    );
  });

  it("keep Postgres out of the gateway, and uWebSockets in one file", () => {
    assert.deepEqual(
      importersOf("postgres").filter((path) => path.startsWith("gateway/")),
      [],
    );
    assert.deepEqual(importersOf("uWebSockets.js"), ["gateway/transport/uws_transport.ts"]);
  });

  it("name files for what they hold", () => {
    const nameless = /^(index|utils?|helpers?|common|types|misc)\.(ts|js|mjs)$/;
    assert.deepEqual(
      sources.map(({ path }) => path).filter((path) => nameless.test(basename(path))),
      [],
    );
  });
});

function importersOf(packageName: string): string[] {
  return sources.filter(({ specifiers }) => specifiers.includes(packageName)).map(({ path }) => path);
}

/**
 * Lets Biome judge, under our rules, one probe file a room, in a folder of its own.
 * @returns for each probe's path the specifiers that it may not import
 */
function judge(probes: ReadonlyMap<string, readonly string[]>): Map<string, string[]> {
  const folder = mkdtempSync(join(tmpdir(), "frontdesk-borders-"));
  try {
    const { $schema: _, vcs: __, ...rules } = JSON.parse(readFileSync(join(root, "biome.json"), "utf8"));
    writeFileSync(join(folder, "biome.json"), JSON.stringify(rules));
    for (const [path, specifiers] of probes) {
      mkdirSync(join(folder, dirname(path)), { recursive: true });
      const lines = specifiers.map((specifier, index) => `import { x as x${index} } from "${specifier}";\n`);
      writeFileSync(join(folder, path), lines.join(""));
    }
    const biome = join(root, "node_modules", "@biomejs", "biome", "bin", "biome");
    const options = ["--only=style/noRestrictedImports", "--max-diagnostics=none", "--reporter=json"];
    const { stdout } = spawnSync(process.execPath, [biome, "lint", ...options], { cwd: folder, encoding: "utf8" });
    const refused = new Map([...probes.keys()].map((path): [string, string[]] => [path, []]));
    for (const { location } of JSON.parse(stdout).diagnostics) {
      refused.get(location.path)?.push(probes.get(location.path)?.[location.start.line - 1] ?? "");
    }
    return refused;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The innermost room of a path, "" for files at the top. */
function roomOf(path: string): string {
  const inside = roomFolders.filter((folder) => path.startsWith(`${folder}/`));
  return inside.sort((a, b) => b.length - a.length)[0] ?? "";
}

function sourceFiles(): { path: string; specifiers: string[] }[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.(ts|mjs|js)$/.test(path) && !/(^|\/)(node_modules|\.[^/]+)\//.test(path))
    .filter((path) => existsSync(join(root, path)))
    .map((path) => ({ path, specifiers: specifiersIn(readFileSync(join(root, path), "utf8")) }));
}

function specifiersIn(text: string): string[] {
  const found = text.matchAll(
    /^\s*(?:import|export)\b[^"'`;]*?\bfrom\s*"([^"]+)"|^\s*import\s*"([^"]+)"|\bimport\(\s*"([^"]+)"/gm,
  );
  return [...found].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
}
