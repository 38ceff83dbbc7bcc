import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startLiveKitServer } from "./livekit_server.ts";

const skip = spawnSync("livekit-server", ["--version"]).error ? "no livekit-server on the PATH" : false;

describe("a LiveKit server of our own", { skip }, () => {
  let dataDir: string;
  before(() => {
    dataDir = mkdtempSync(join(tmpdir(), "frontdesk-livekit-test-"));
  });
  after(() => rmSync(dataDir, { recursive: true, force: true }));

  it("runs on loopback with keys of its own, which only its user may read, and is gone when stopped", async () => {
    const [one, other] = [await startLiveKitServer({ dataDir }), await startLiveKitServer()];
    assert.ok(one && other);
    assert.match(one.url, /^ws:\/\/127\.0\.0\.1:\d+$/);
    assert.notEqual(one.apiSecret, other.apiSecret);
    assert.ok(one.apiSecret.length >= 32);
    const config = join(dataDir, "livekit", "config.yaml");
    assert.equal(statSync(config).mode & 0o077, 0);
    assert.ok(readFileSync(config, "utf8").includes(one.apiSecret));
    assert.equal((await fetch(one.url.replace("ws", "http"))).status, 200);
    await Promise.all([one.stop(), other.stop()]);
    await assert.rejects(fetch(one.url.replace("ws", "http")));
    assert.equal(existsSync(config), false);
  });

  it("that a killed start left behind is stopped by the next", async () => {
    const left = await startLiveKitServer({ dataDir });
    assert.ok(left);
    // Nobody stops it: the process that started it is gone, as far as the next start can see.
    const next = await startLiveKitServer({ dataDir });
    await left.exited;
    assert.ok(next);
    assert.equal((await fetch(next.url.replace("ws", "http"))).status, 200);
    await next.stop();
  });
});
