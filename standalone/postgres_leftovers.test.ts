import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { endLeftoverClusters, noteOwner } from "./postgres_leftovers.ts";

describe("clusters outside of their data folder", () => {
  let folder: string;
  let shared: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "frontdesk-leftovers-"));
    shared = join(folder, "shared");
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** A data folder that links to a cluster of its own; the start that made it is long gone. */
  function house(name: string): { dataDir: string; home: string } {
    const [dataDir, home] = [join(folder, name), join(shared, `cluster-${name}`)];
    mkdirSync(dataDir);
    mkdirSync(home, { recursive: true });
    symlinkSync(home, join(dataDir, "postgres"));
    writeFileSync(join(home, "owner.json"), JSON.stringify({ data_dir: dataDir, pid: 1, started: "another life" }));
    return { dataDir, home };
  }

  it("are said, with how to remove them, once that folder is gone or has begun anew", async () => {
    const [kept, gone, anew] = ["kept", "gone", "anew"].map(house);
    assert.ok(kept && gone && anew);
    assert.deepEqual(await endLeftoverClusters(shared), []);
    rmSync(gone.dataDir, { recursive: true });
    rmSync(join(anew.dataDir, "postgres"));
    mkdirSync(join(anew.dataDir, "postgres"));
    assert.deepEqual(
      (await endLeftoverClusters(shared)).sort(),
      [anew, gone].map(
        ({ dataDir, home }) =>
          `${home} holds the database of ${dataDir}, which is gone. If nobody needs it: rm -r ${home}`,
      ),
    );
  });

  it("are left alone while the start that uses them lives", async () => {
    const { dataDir, home } = house("running");
    noteOwner(home, dataDir);
    rmSync(dataDir, { recursive: true });
    assert.deepEqual(await endLeftoverClusters(shared), []);
  });

  it("are said too when nothing tells whose they are, and nothing is said where there are none", async () => {
    assert.deepEqual(await endLeftoverClusters(shared), []);
    mkdirSync(join(shared, "cluster-old"), { recursive: true });
    mkdirSync(join(shared, "postgres-18"));
    const [note, ...others] = await endLeftoverClusters(shared);
    assert.equal(note, `Databases in ${shared} that have no note of whose they are: ${join(shared, "cluster-old")}`);
    assert.deepEqual(others, []);
  });
});
