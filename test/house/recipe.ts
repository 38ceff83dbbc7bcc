/** A recipe of `docs/recipes/` as what it does: files it makes, lines it changes, commands it gives. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface Recipe {
  name: string;
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

export function readRecipe(name: string, markdown: string): Recipe {
  const blocks = blocksOf(markdown);
  return {
    name,
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
 * Does what the recipe says in the repository at `folder`.
 * @throws when a file is there already, or the lines to change are not there exactly once
 */
export function follow(recipe: Recipe, folder: string): void {
  for (const { path, text } of recipe.files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text, { flag: "wx" });
  }
  for (const { path, before, after } of recipe.edits) {
    const text = readFileSync(join(folder, path), "utf8");
    const places = text.split(before).length - 1;
    if (places !== 1) throw new Error(`${recipe.name}: ${path} has the lines to change ${places} times:\n${before}`);
    writeFileSync(
      join(folder, path),
      text.replace(before, () => after),
    );
  }
}
