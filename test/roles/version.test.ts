import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { version } from "#contracts/version.ts";

it("the version that roles tell is the package's", () => {
  const { version: published } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  assert.equal(version, published);
});
