import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

describe("the packages of the lockfile", () => {
  it("all run on this Node, by their own word", () => {
    const folder = mkdtempSync(join(tmpdir(), "frontdesk-engines-"));
    for (const file of ["package.json", "package-lock.json"]) cpSync(join(root, file), join(folder, file));
    // What `npm ci` warns of is an error with --engine-strict.
    const flags = ["--dry-run", "--engine-strict", "--offline", "--no-audit", "--no-fund"];
    const npm = spawnSync("npm", ["ci", ...flags], { cwd: folder, encoding: "utf8" });
    rmSync(folder, { recursive: true });
    assert.equal(npm.status, 0, npm.stderr);
  });

  it("run no script at their install: each that has one is named, and refused", () => {
    const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
      packages: Record<string, { hasInstallScript?: true }>;
    };
    const scripted = Object.keys(packages).filter((path) => packages[path]?.hasInstallScript);
    const { allowScripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    assert.deepEqual(
      allowScripts,
      Object.fromEntries(scripted.map((path) => [path.replace(/^.*node_modules\//, ""), false])),
    );
  });
});
