/** A recipe of `docs/recipes/` as what it does: files it makes, lines it changes, commands it gives. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface Recipe {
  name: string;
  /** What `npm run new` makes by it, and the name that stands in it for the one to be given. */
  made: { kind: string; example: string } | undefined;
  files: readonly { path: string; text: string }[];
  edits: readonly { path: string; before: string; after: string }[];
  commands: readonly string[];
}

interface Block {
  language: string;
  /** `file=…` or `edit=…` */
  does: string;
  text: string;
}

/** The recipes of the repository at `folder`. */
export function readRecipes(folder: string): readonly Recipe[] {
  const pages = join(folder, "docs", "recipes");
  return readdirSync(pages)
    .filter((name) => name.endsWith(".md") && name !== "README.md")
    .map((name) => readRecipe(name, readFileSync(join(pages, name), "utf8")));
}

function readRecipe(name: string, markdown: string): Recipe {
  const blocks = blocksOf(markdown);
  const [, kind, example] = /^`npm run new -- (\w+) (\w+)`/m.exec(markdown) ?? [];
  return {
    name,
    made: kind && example ? { kind, example } : undefined,
    files: blocks.flatMap(({ does, text }) => (does.startsWith("file=") ? { path: does.slice(5), text } : [])),
    edits: blocks.flatMap(({ does, text }) => (does.startsWith("edit=") ? editOf(does.slice(5), text) : [])),
    commands: blocks.filter(({ language }) => language === "sh").flatMap(({ text }) => text.trim().split("\n")),
  };
}

function blocksOf(markdown: string): Block[] {
  const found = markdown.matchAll(/^```(\w+)[ ]?(\S*)\n([\s\S]*?)^```$/gm);
  return [...found].map(([, language = "", does = "", text = ""]) => ({ language, does, text }));
}

function editOf(path: string, text: string): Recipe["edits"][number] {
  const lines = (mark: string) =>
    text
      .split("\n")
      .filter((line) => line.startsWith(mark))
      .map((line) => `${line.slice(1)}\n`)
      .join("");
  return { path, before: lines("-"), after: lines("+") };
}

/**
 * The recipe with another name in place of its example's, however that is written: `call_counts`,
 * `call-counts`, `callCounts`, `CallCounts`, `call counts`, `Call counts`.
 *
 * @param to in snake_case
 */
export function renamed(recipe: Recipe, to: string): Recipe {
  const from = recipe.made?.example;
  if (!from) throw new Error(`Cannot rename ${recipe.name}: it says of no example that it can have another name.`);
  const [olds, news] = [spellings(from), spellings(to)];
  const rename = (text: string) =>
    olds.reduce(
      (changed, old, index) => changed.replaceAll(new RegExp(`(?<![A-Za-z])${old}(?![a-z])`, "g"), news[index] ?? ""),
      text,
    );
  return {
    ...recipe,
    files: recipe.files.map(({ path, text }) => ({ path: rename(path), text: rename(text) })),
    edits: recipe.edits.map(({ after, ...edit }) => ({ ...edit, after: rename(after) })),
    commands: recipe.commands.map(rename),
  };
}

function spellings(snake: string): string[] {
  const words = snake.split("_");
  const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
  const pascal = words.map(capital).join("");
  const camel = pascal.charAt(0).toLowerCase() + pascal.slice(1);
  return [snake, words.join("-"), camel, pascal, words.join(" "), capital(words.join(" "))];
}

/**
 * Does what the recipe says in the repository at `folder`.
 * @throws before anything is written, when a file is there already, or the lines to change are not there exactly once
 */
export function follow(recipe: Recipe, folder: string): void {
  for (const { path } of recipe.files) {
    if (existsSync(join(folder, path))) throw new Error(`${recipe.name}: ${path} is there already`);
  }
  for (const { path, before } of recipe.edits) {
    const places = readFileSync(join(folder, path), "utf8").split(before).length - 1;
    if (places !== 1) throw new Error(`${recipe.name}: ${path} has the lines to change ${places} times:\n${before}`);
  }
  for (const { path, text } of recipe.files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text, { flag: "wx" });
  }
  for (const { path, before, after } of recipe.edits) {
    const text = readFileSync(join(folder, path), "utf8");
    writeFileSync(
      join(folder, path),
      text.replace(before, () => after),
    );
  }
}
