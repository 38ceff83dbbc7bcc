/** The example that a newcomer runs first: a stream that goes on over an approval from another shell. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type RoleProcess, startProcess, startRole } from "#test/kit/role_process.ts";

const skip = spawnSync("curl", ["--version"]).status === 0 ? false : "no curl on this machine";

describe("examples/stream_run.sh", { skip }, () => {
  let folder: string;
  let start: RoleProcess;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "frontdesk-example-"));
    const ports = { GATEWAY_PORT: "0", API_PORT: "0", WORKER_PORT: "0" };
    start = startRole("standalone/main.ts", { DATA_DIR: folder, MEDIA_THREADS: "1", ...ports });
    await start.until(/Ctrl-C stops it/);
  });
  after(async () => {
    await start.stop("SIGINT");
    await rm(folder, { recursive: true, force: true });
  });

  const example = (...words: string[]) =>
    startProcess(["sh", "examples/stream_run.sh", ...words], { DATA_DIR: folder });
  const ended = (shell: RoleProcess) => new Promise((resolve) => shell.child.once("close", resolve));

  it("streams a run, waits for the approval from another shell and goes on to the end", async () => {
    const stream = example("Can we bring our dog?");
    const streamed = ended(stream);
    await stream.until(/event: run\.awaiting_input\n/);
    const approval = example("--approve");
    const approved = ended(approval);
    await stream.until(/event: run\.succeeded\n/);
    assert.deepEqual([await streamed, await approved], [0, 0], stream.said() + approval.said());
    const ids = [...stream.said().matchAll(/^id: (\d+)$/gm)].map((match) => Number(match[1]));
    assert.deepEqual(
      ids,
      ids.map((_, i) => i + 1),
    );
    assert.match(stream.said(), /Dogs and cats are welcome/);
  });

  it("says so when nothing waits, and when Frontdesk has never started", async () => {
    const idle = example("--approve");
    assert.equal(await ended(idle), 1);
    assert.match(idle.said(), /No run waits for a person/);
    const nowhere = startProcess(["sh", "examples/stream_run.sh"], { DATA_DIR: join(folder, "nowhere") });
    assert.equal(await ended(nowhere), 1);
    assert.match(nowhere.said(), /run "npm start" first/);
  });
});
