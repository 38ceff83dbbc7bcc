import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { ManualClock } from "#test/kit/gateway_fixture.ts";
import { createWriteProbe } from "./write_probe.ts";

describe("the probe of a folder", () => {
  const parent = mkdtempSync(join(tmpdir(), "frontdesk-probe-"));
  after(() => rmSync(parent, { recursive: true }));

  it("writes at most every 5 s, leaves nothing behind, and tells when nothing can be written", async () => {
    const clock = new ManualClock();
    const folder = join(parent, "gateway");
    const keepsRecords = createWriteProbe(folder, clock);
    assert.equal(await keepsRecords(), true);
    assert.deepEqual(readdirSync(folder), []);
    // As a full disk would: the folder cannot be made or written to.
    rmSync(folder, { recursive: true });
    writeFileSync(folder, "");
    assert.equal(await keepsRecords(), true, "as far as is known");
    clock.advance(5000);
    assert.deepEqual(await Promise.all([keepsRecords(), keepsRecords()]), [false, false]);
    rmSync(folder);
    clock.advance(5000);
    assert.equal(await keepsRecords(), true);
    assert.ok(existsSync(folder));
  });
});
