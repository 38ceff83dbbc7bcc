import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { transports } from "#test/kit/transports.ts";

const race = fileURLToPath(new URL("../../test/kit/sockets/upgrade_race.ts", import.meta.url));

describe("upgrades that are decided after a wait", () => {
  for (const { transport: choice, skip } of transports) {
    it(`leave every caller that is let in alone on ${choice}, whatever the memory held before`, { skip }, async () => {
      // glibc fills what is freed, so that a read of freed memory has the same bad end each time; elsewhere this is
      // ignored, and the race is left to luck.
      const env = { ...process.env, GLIBC_TUNABLES: "glibc.malloc.tcache_count=0:glibc.malloc.perturb=16" };
      const args = ["--import", "tsx", race, choice];
      const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env });
      assert.deepEqual(JSON.parse(stdout), { admitted: 10, ended: 0 });
      assert.doesNotMatch(stderr, /corked/);
    });
  }
});
