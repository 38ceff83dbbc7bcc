import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { root } from "./rooms.ts";

/** The documents, apart from the README, which has a test of its own. */
const pages = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".md"))
  .map((path) => ({ path: join("docs", path), text: readFileSync(join(root, "docs", path), "utf8") }));

const withoutSpaceAtEnds = (text: string) => text.replaceAll(/ +$/gm, "").trim();

/** Commands of blocks that show a console, each with what it prints. */
const shown = pages.flatMap(({ path, text }) =>
  [...text.matchAll(/^```console\n\$ (.+)\n([\s\S]*?)^```$/gm)].map(([, command = "", output = ""]) => ({
    path,
    command,
    output,
  })),
);

describe("the documents", () => {
  it("show what their commands print", () => {
    assert.ok(shown.length > 0);
    for (const { path, command, output } of shown) {
      const { status, stdout } = spawnSync(command, { cwd: root, shell: true, encoding: "utf8" });
      assert.equal(status, 0, `${path}: ${command}`);
      assert.equal(withoutSpaceAtEnds(stdout), withoutSpaceAtEnds(output), `${path}: ${command}`);
    }
  });

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
