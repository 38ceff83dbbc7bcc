import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { type RoleProcess, startRole } from "#test/kit/role_process.ts";
import { bestTransport } from "#test/kit/transports.ts";
import { areaNames, attackHouse } from "./areas.ts";
import { openHouse } from "./attacked_house.ts";

/** What it measures depends on the machine; without a clock it is in gateway/front_door.test.ts. */
const measured = ["slow_clients"];
const onTheWire = ["http_shapes", "frames"];

describe("a started house", () => {
  const folders: string[] = [];
  const starts: RoleProcess[] = [];
  after(async () => {
    await Promise.all(starts.map((start) => start.stop("SIGINT")));
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  async function findingsIn(transport: string, areas: readonly string[]) {
    const folder = mkdtempSync(join(tmpdir(), "frontdesk-adversary-"));
    folders.push(folder);
    const dataDir = join(folder, "data");
    const ports = { GATEWAY_PORT: "0", API_PORT: "0", WORKER_PORT: "0", METRICS_PORT: "0" };
    const start = startRole("standalone/main.ts", {
      ...ports,
      DATA_DIR: dataDir,
      TRANSPORT: transport,
      MEDIA_THREADS: "1",
    });
    starts.push(start);
    await start.until(/Ctrl-C stops it/);
    const house = openHouse(dataDir);
    try {
      return await attackHouse(house, { areas, log: start.said, say: () => undefined });
    } finally {
      await house.close();
    }
  }

  it("holds against every area of attack", async () => {
    const areas = areaNames.filter((name) => !measured.includes(name));
    assert.deepEqual(await findingsIn(bestTransport, areas), []);
  });

  it("holds on the wire with the sockets in JavaScript as well", async () => {
    assert.deepEqual(await findingsIn("ws", onTheWire), []);
  });
});
