import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { withTable } from "./write_readme.ts";

describe("the table of providers", () => {
  it("is in the README as the catalogue has it (npm run providers writes it)", () => {
    const readme = readFileSync(new URL("./README.md", import.meta.url), "utf8");
    assert.equal(readme, withTable(readme));
  });
});
