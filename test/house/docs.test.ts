import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { root } from "./rooms.ts";

/** The documents, apart from the README, which has a test of its own. */
const pages = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".md"))
  .map((path) => ({ path: join("docs", path), text: readFileSync(join(root, "docs", path), "utf8") }));

describe("the documents", () => {
  it("link only to what is there", () => {
    const broken = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#]+)/g)]
        .map(([, link = ""]) => link)
        .filter((link) => !existsSync(join(root, dirname(path), link)))
        .map((link) => `${path}: ${link}`),
    );
    assert.deepEqual(broken, []);
  });

  it("name only files that are there", () => {
    const file =
      /(?<![\w./#-])((?:api|gateway|media|loadtest|standalone|test|examples|docs|k8s)\/[\w./-]+\.(?:ts|json|md|mjs|sql|yaml))/g;
    const missing = pages
      .filter(({ path }) => !path.startsWith("docs/recipes/"))
      .flatMap(({ path, text }) =>
        [...text.matchAll(file)]
          .map(([, name = ""]) => name)
          .filter((name) => !existsSync(join(root, name)))
          .map((name) => `${path}: ${name}`),
      );
    assert.deepEqual(missing, []);
  });
});
