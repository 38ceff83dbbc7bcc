/**
 * The api's part of `npm run protocol`: writes the OpenAPI documents of this folder anew. With `--check`,
 * as `npm run check` calls it, it writes nothing and fails on what they leave unsaid, or where they are stale.
 */
import { readFile, writeFile } from "node:fs/promises";
import { gapsOf } from "./gaps.ts";
import { publishedDocuments } from "./published_documents.ts";

const problems: string[] = [];
for (const [name, content] of await publishedDocuments()) {
  const path = new URL(name, import.meta.url);
  problems.push(...gapsOf(JSON.parse(content)).map((gap) => `${name}: ${gap}`));
  if (!process.argv.includes("--check")) await writeFile(path, content);
  else if ((await readFile(path, "utf8").catch(() => "")) !== content) {
    problems.push(`${name}: differs from what the api serves: npm run protocol`);
  }
}
if (problems.length > 0) {
  process.stderr.write(`The OpenAPI documents:\n${problems.map((problem) => `  ${problem}\n`).join("")}`);
  process.exitCode = 1;
}
