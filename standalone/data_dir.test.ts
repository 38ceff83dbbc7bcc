import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { DataDirHeldError, holdDataDir } from "./data_dir.ts";
import { processStartedAt } from "./process_identity.ts";

describe("holding a data folder", () => {
  let dataDir = "";
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), "frontdesk-hold-"));
  });
  afterEach(() => rmSync(dataDir, { recursive: true }));

  it("is refused while another living process holds it, with that process named", async () => {
    const other = spawn(process.execPath, ["-e", "process.stdin.resume()"], { stdio: ["pipe", "ignore", "inherit"] });
    await once(other, "spawn");
    lockAs(other.pid, processStartedAt(other.pid as number));
    assert.throws(
      () => holdDataDir(dataDir),
      (error: Error) => error instanceof DataDirHeldError && error.message.includes(String(other.pid)),
    );
    await kill(other);
    holdDataDir(dataDir)();
  });

  it("takes over what a killed start left, also when the pid was given to another process", () => {
    lockAs(process.pid, "an earlier life of this pid");
    holdDataDir(dataDir)();
    lockAs(undefined, "nonsense");
    holdDataDir(dataDir)();
  });

  it("leaves nothing behind when it is given back", () => {
    const release = holdDataDir(dataDir);
    assert.deepEqual(readdirSync(dataDir), ["lock.json"]);
    release();
    assert.deepEqual(readdirSync(dataDir), []);
  });

  it("goes to exactly one of many starts that race for a stale lock", async () => {
    lockAs(process.pid, "an earlier life of this pid");
    const hold = new URL("./data_dir.ts", import.meta.url).href;
    const script = `
      import { holdDataDir } from ${JSON.stringify(hold)};
      process.stdin.once("data", () => {
        try { holdDataDir(process.argv[1]); console.log("held"); } catch (error) { console.log(error.name, error.message); }
      });
      process.stdin.on("end", () => process.exit());
      console.log("ready");`;
    const racers = Array.from({ length: 6 }, () =>
      spawn(process.execPath, [...process.execArgv, "--input-type=module", "-e", script, dataDir], {
        stdio: ["pipe", "pipe", "inherit"],
      }),
    );
    await Promise.all(racers.map((racer) => once(racer.stdout, "data")));
    const answers = racers.map((racer) => once(racer.stdout, "data"));
    for (const racer of racers) racer.stdin.write("go\n");
    const said = (await Promise.all(answers)).map(String);
    assert.equal(said.filter((words) => words.startsWith("held")).length, 1, said.join(""));
    await Promise.all(racers.map(kill));
  });

  function lockAs(pid: number | undefined, started: string | undefined): void {
    writeFileSync(join(dataDir, "lock.json"), JSON.stringify({ pid, started }));
  }
});

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
