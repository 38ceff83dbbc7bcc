import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const dependencies = readFileSync(new URL("../../docs/dependencies.md", import.meta.url), "utf8");
const house = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

describe("the README", () => {
  it("is read on a screen and a half", () => {
    assert.ok(readme.split("\n").length <= 110);
  });

  it("leads to a page that says of every dependency what it does here, and names no other", () => {
    const rows = dependencies.matchAll(/^\| ((?:`[^`]+`(?:, )?)+) \| .+ \|$/gm);
    const described = [...rows].flatMap((row) =>
      [...(row[1] ?? "").matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ""),
    );
    const packages = described.filter(
      (name) => (/^[@a-z]/.test(name) && !name.endsWith("/")) || name === "uWebSockets.js",
    );
    const known = Object.keys({ ...house.dependencies, ...house.devDependencies });
    assert.deepEqual(packages.sort(), known.sort());
  });

  it("names only npm scripts that exist", () => {
    const named = [...readme.matchAll(/npm run ([a-z:]+)/g)].map((match) => match[1] ?? "");
    assert.ok(named.length > 0);
    assert.deepEqual(
      named.filter((name) => !(name in house.scripts)),
      [],
    );
  });

  it("links only to what is there", () => {
    const links = [...readme.matchAll(/\]\(([^)#]+)\)/g)]
      .map((match) => match[1] ?? "")
      .filter((link) => !/^https?:/.test(link));
    assert.deepEqual(
      links.filter((link) => !existsSync(new URL(`../../${link}`, import.meta.url))),
      [],
    );
  });
});
