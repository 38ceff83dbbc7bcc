import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { it } from "node:test";
import { publishedDocuments } from "./published_documents.ts";

it("the OpenAPI documents are what the api serves: run `npm run protocol` when this differs", async () => {
  for (const [name, served] of await publishedDocuments()) {
    const kept = await readFile(new URL(name, import.meta.url), "utf8");
    assert.ok(kept === served, `api/openapi/${name} is out of date`);
  }
});
