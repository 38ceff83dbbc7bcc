/**
 * `npm run new`: makes what a recipe of `docs/recipes/` makes, under names of your own.
 *
 *     npm run new -- provider acme
 *     npm run new -- node_kind split_text test late_check_out
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { follow, type Recipe, readRecipes, renamed } from "./recipe.ts";
import { root } from "./rooms.ts";

const recipes = new Map(readRecipes(root).flatMap((recipe) => (recipe.made ? [[recipe.made.kind, recipe]] : [])));
const wanted = process.argv.slice(2);
const named = wanted.flatMap((kind, index) => (index % 2 === 0 ? [recipeFor(kind, wanted[index + 1])] : []));
if (named.length === 0) refuse("nothing is named");

for (const recipe of named) {
  try {
    follow(recipe, root);
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
  }
}
const made = named.flatMap(({ files }) => files.map(({ path }) => path));
const changed = [...new Set(named.flatMap(({ edits }) => edits.map(({ path }) => path)))];
format([...made, ...changed]);
for (const path of made) console.log(`made    ${path}`);
for (const path of changed) console.log(`changed ${path}`);
console.log("\nIt does what the recipe's example does: make it yours. Then:\n");
for (const command of new Set([...named.flatMap(({ commands }) => commands), "npm run check"]))
  console.log(`  ${command}`);

function recipeFor(kind: string, name = ""): Recipe {
  const recipe = recipes.get(kind);
  if (!recipe) refuse(`there is no kind ${JSON.stringify(kind)}`);
  if (!/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(name))
    refuse(`expected a name in snake_case after ${kind}, got ${JSON.stringify(name)}`);
  return renamed(recipe, name);
}

/** Imports stand in the order of their names, which are new. */
function format(paths: readonly string[]): void {
  const biome = join(root, "node_modules", "@biomejs", "biome", "bin", "biome");
  const args = [biome, "check", "--write", "--linter-enabled=false", ...paths];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  if (status !== 0) refuse(`what was made cannot be formatted:\n${stderr}`);
}

function refuse(why: string): never {
  console.error(`npm run new -- ${wanted.join(" ")}: ${why}`);
  console.error(`Expected KIND NAME, once or more often; kinds are ${[...recipes.keys()].join(", ")}.`);
  process.exit(1);
}
