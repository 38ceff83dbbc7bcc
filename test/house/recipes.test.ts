import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { follow, type Recipe, readRecipes, renamed } from "./recipe.ts";
import { root } from "./rooms.ts";

/** Each recipe is followed to the letter, all in one copy of the repository, as a newcomer would. */
const recipes = readRecipes(root);
/** What `npm run new` makes as well, in the same copy. */
const others = recipes.flatMap((recipe) => (recipe.made ? [renamed(recipe, `night_${recipe.made.kind}`)] : []));

describe("the recipes", () => {
  let copy: string;
  before(() => {
    copy = mkdtempSync(join(tmpdir(), "frontdesk-recipes-"));
    copyRepository(copy);
  });
  after(() => rmSync(copy, { recursive: true, force: true }));

  for (const recipe of recipes) {
    it(`${recipe.name} can be followed: new files, and lines of at most two old ones`, () => {
      follow(recipe, copy);
      const folders = new Set(
        recipe.files.map(({ path }) => dirname(path)).filter((path) => !path.startsWith("test/")),
      );
      assert.equal(folders.size, recipe.name === "test.md" ? 0 : 1, "what is new stands in one folder");
      assert.ok(new Set(recipe.edits.map(({ path }) => path)).size <= 1, "lines of one old file");
    });
  }

  it("are followed under another name by `npm run new`, which refuses what is there and what it does not know", async () => {
    const wanted = others.flatMap(({ made }) => [made?.kind ?? "", `night_${made?.kind}`]);
    const makeNew = ["--import", "tsx", "test/house/new.ts"];
    const refused = async (...args: string[]) => {
      const { status, stderr } = await ended(copy, "node", [...makeNew, ...args]);
      assert.equal(status, 1);
      return stderr;
    };
    assert.deepEqual(wanted.filter((_, index) => index % 2 === 0).sort(), [
      "endpoint",
      "node_kind",
      "provider",
      "test",
    ]);
    const printed = await run(copy, "node", [...makeNew, ...wanted]);
    for (const { path } of others.flatMap(({ files }) => files)) {
      assert.ok(existsSync(join(copy, path)), path);
      assert.match(printed, new RegExp(`^made +${path}$`, "m"));
    }
    assert.match(await refused("test", "night_test"), /night_test\.test\.ts is there already/);
    assert.match(await refused("garden", "roses"), /no kind "garden"[\s\S]*endpoint, node_kind, provider, test/);
    assert.match(await refused("test", "Two Words"), /snake_case/);
  });

  it("leave a repository that passes format, lint, borders and types", async () => {
    for (const command of new Set(recipes.flatMap(({ commands }) => commands)).values()) {
      if (!command.startsWith("npm test")) await run(copy, "npm", command.split(" ").slice(1));
    }
    const changed = [...recipes, ...others].flatMap(({ files, edits }) => [...files, ...edits].map(({ path }) => path));
    await run(copy, "node", [bin("@biomejs/biome/bin/biome"), "check", "--error-on-warnings", ...new Set(changed)]);
    await run(copy, "node", [bin("typescript/bin/tsc"), "--noEmit"]);
  });

  it("bring tests that pass", async () => {
    const tests = [...recipes, ...others].flatMap(testsOf);
    assert.ok(tests.length > 0);
    // In one process: each loads much the same.
    const all = [...new Set(tests)].map((path) => `import "./${path}";`).join("\n");
    const options = ["--import", "tsx", "--test-reporter=tap", "--input-type=module", "-e", all];
    const printed = await run(copy, "node", options);
    assert.match(printed, /^# fail 0$/m);
    assert.ok((printed.match(/^ok /gm)?.length ?? 0) >= new Set(tests).size);
  });
});

/** The test files that a recipe makes, and those that its commands name. */
function testsOf({ files, commands }: Recipe): string[] {
  const made = files.map(({ path }) => path).filter((path) => path.endsWith(".test.ts"));
  const named = commands
    .filter((command) => command.startsWith("npm test -- "))
    .flatMap((command) => command.split(" ").slice(3))
    .map((path) => `${path}.test.ts`);
  return [...made, ...named];
}

/** What git knows of, uncommitted changes included; packages by a link. */
function copyRepository(to: string): void {
  const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { cwd: root, encoding: "utf8" });
  for (const path of listed.split("\n").filter(Boolean)) {
    try {
      cpSync(join(root, path), join(to, path));
    } catch (error) {
      // Removed, and not committed yet.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  symlinkSync(join(root, "node_modules"), join(to, "node_modules"));
}

function bin(path: string): string {
  return join(root, "node_modules", path);
}

/** @returns what it prints */
async function run(cwd: string, command: string, args: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await ended(cwd, command, args);
  assert.equal(status, 0, `${command} ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
}

function ended(cwd: string, command: string, args: readonly string[]) {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const options = { cwd, env, maxBuffer: 64 * 1024 * 1024 };
  return new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
    const child = execFile(command, args, options, (_error, stdout, stderr) =>
      resolve({ status: child.exitCode, stdout, stderr }),
    );
  });
}
