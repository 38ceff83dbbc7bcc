import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { follow, type Recipe, readRecipe } from "./recipe.ts";
import { root } from "./rooms.ts";

/** Each recipe is followed to the letter, all in one copy of the repository, as a newcomer would. */
const folder = join(root, "docs", "recipes");
const recipes = readdirSync(folder)
  .filter((name) => name.endsWith(".md") && name !== "README.md")
  .map((name) => readRecipe(name, readFileSync(join(folder, name), "utf8")));

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
      assert.equal(folders.size, 1, "what is new stands in one folder");
      assert.ok(new Set(recipe.edits.map(({ path }) => path)).size <= 1, "lines of one old file");
    });
  }

  it("leave a repository that passes format, lint, borders and types", () => {
    for (const command of new Set(recipes.flatMap(({ commands }) => commands)).values()) {
      if (!command.startsWith("npm test")) run(copy, "npm", command.split(" ").slice(1));
    }
    const changed = recipes.flatMap(({ files, edits }) => [...files, ...edits].map(({ path }) => path));
    run(copy, "node", [bin("@biomejs/biome/bin/biome"), "check", "--error-on-warnings", ...new Set(changed)]);
    run(copy, "node", [bin("typescript/bin/tsc"), "--noEmit"]);
  });

  it("bring tests that pass", () => {
    const tests = recipes.flatMap(testsOf);
    assert.ok(tests.length > 0);
    const printed = run(copy, "node", ["--import", "tsx", "--test", ...new Set(tests)]);
    assert.match(printed, /^# fail 0$/m);
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

function run(cwd: string, command: string, args: readonly string[]): string {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8", env });
  assert.equal(status, 0, `${command} ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
}
