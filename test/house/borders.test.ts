import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { describe, it } from "node:test";
import { filesForTestsAlone, importCircles } from "./figures.ts";
import { madeFiles } from "./made_files.ts";
import { readRooms, roomOf, root } from "./rooms.ts";
import { readSources } from "./sources.ts";

/**
 * The borders between the rooms. Biome forbids imports by name (its rules are made from `house.json`);
 * here is what it cannot express, and the proof that its rules bite.
 */
const rooms = readRooms();
const sources = readSources(rooms);

describe("the borders between rooms", () => {
  it("are written once: lint rules, import paths and map are as house.json makes them", () => {
    const stale = [...madeFiles(rooms)].filter(([path, text]) => readFileSync(join(root, path), "utf8") !== text);
    assert.deepEqual(
      stale.map(([path]) => path),
      [],
      "npm run house -- --write makes them again",
    );
  });

  it("are lint errors, for every pair of rooms", () => {
    const bounded = rooms.filter(({ may }) => may);
    const probeOf = (folder: string) => `${folder}/probe.ts`;
    const probed = rooms.map(({ name }) => name).filter((name) => name !== "test" && name !== "examples");
    const refused = judge(
      new Map(bounded.map(({ folder }) => [probeOf(folder), probed.map((name) => `#${name}/x.ts`)])),
    );
    for (const { name, folder, may = [] } of bounded) {
      // Its own subpath too: inside a room imports are relative.
      const forbidden = probed.filter((other) => other !== "contracts" && !may.includes(other));
      assert.deepEqual(refused.get(probeOf(folder))?.sort(), forbidden.map((other) => `#${other}/x.ts`).sort(), name);
    }
  });

  it("are lint errors in the contracts, which import TypeBox alone", () => {
    const forbidden = ["node:fs", "hono", "#bus/bus.ts", "../bus/bus.ts"];
    const path = "api/contracts/probe.ts";
    assert.deepEqual(judge(new Map([[path, [...forbidden, "./errors.ts", "@sinclair/typebox"]]])).get(path), forbidden);
  });

  it("are crossed by package subpaths, never by a relative path", () => {
    const crossings = sources.flatMap(({ path, specifiers }) =>
      specifiers
        .filter((specifier) => specifier.startsWith("."))
        .filter((specifier) => !sameRoom(path, relative(root, resolve(root, dirname(path), specifier))))
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

  it("let a vendor's twin import contracts and what twins share alone, by lint", () => {
    const forbidden = ["./llm.ts", "../waiting.ts", "#outbound/guarded_http.ts", "#providers/waiting.ts"];
    const path = "api/providers/openai/twin.ts";
    const fine = ["#contracts/vendor_twin.ts", "../twin_server.ts", "node:http", "ws"];
    assert.deepEqual(
      judge(new Map([[path, [...forbidden, ...fine]]]))
        .get(path)
        ?.sort(),
      [...forbidden].sort(),
    );
  });

  it("let twins into tests, the load tool and other vendors' twins alone", () => {
    const users = sources.filter(({ specifiers }) =>
      specifiers.some((specifier) => /\/twin(_server)?\.ts$/.test(specifier)),
    );
    assert.deepEqual(
      users
        .map(({ path }) => path)
        .filter((path) => !path.endsWith(".test.ts") && !path.startsWith("test/") && !path.startsWith("loadtest/"))
        .filter((path) => !path.endsWith("/twin.ts")),
      [],
    );
  });

  it("keep Postgres out of the gateway, and uWebSockets in the transport on it", () => {
    assert.deepEqual(
      importersOf("postgres").filter((path) => path.startsWith("gateway/")),
      [],
    );
    assert.deepEqual(importersOf("uWebSockets.js"), [
      "gateway/transport/foreign_cork.ts",
      "gateway/transport/uws_transport.ts",
    ]);
  });

  it("hold no circle of imports, types included", () => {
    assert.deepEqual(importCircles(sources), []);
  });

  it("keep what tests alone use in test/kit", () => {
    assert.deepEqual(filesForTestsAlone(sources), []);
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

function sameRoom(one: string, other: string): boolean {
  return roomOf(rooms, one) === roomOf(rooms, other);
}
