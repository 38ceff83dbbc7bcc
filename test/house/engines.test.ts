import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
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
});
