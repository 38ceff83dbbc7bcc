import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { ensureSecrets, secretNames } from "./secrets.ts";

describe("the installation's secrets", () => {
  let dataDir = "";
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), "frontdesk-secrets-"));
  });
  afterEach(() => rmSync(dataDir, { recursive: true }));

  it("are made once, differ from each other and stay the same", () => {
    const first = ensureSecrets(dataDir, {});
    assert.deepEqual(Object.keys(first).sort(), [...secretNames].sort());
    assert.equal(new Set(Object.values(first)).size, secretNames.length);
    for (const secret of Object.values(first)) assert.equal(Buffer.from(secret, "base64url").length, 32);
    assert.deepEqual(ensureSecrets(dataDir, {}), first);
  });

  it("are readable by their owner alone", () => {
    ensureSecrets(dataDir, {});
    assert.equal(statSync(join(dataDir, "secrets.json")).mode & 0o777, 0o600);
  });

  it("come from the environment where it gives them, and those are not written down", () => {
    const given = ensureSecrets(dataDir, { JWT_SECRET: "given-by-the-environment" });
    assert.equal(given.JWT_SECRET, "given-by-the-environment");
    assert.doesNotMatch(readFileSync(join(dataDir, "secrets.json"), "utf8"), /given-by/);
    const without = ensureSecrets(dataDir, {});
    assert.notEqual(without.JWT_SECRET, given.JWT_SECRET);
    assert.equal(without.INTERNAL_SECRET, given.INTERNAL_SECRET);
  });
});
