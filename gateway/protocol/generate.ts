/** `npm run protocol`: writes the published documents of `voice.v1` and the tables of README.md anew. */
import { readFile, writeFile } from "node:fs/promises";
import { publishedDocuments } from "./published_documents.ts";

for (const [name, content] of await publishedDocuments((path) => readFile(path, "utf8"))) {
  await writeFile(new URL(name, import.meta.url), content);
}
