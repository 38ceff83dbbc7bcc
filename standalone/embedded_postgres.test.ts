import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import { startEmbeddedPostgres } from "./embedded_postgres.ts";
import { endLeftoverClusters } from "./postgres_leftovers.ts";
import { processStartedAt } from "./process_identity.ts";

describe("the embedded Postgres", () => {
  const dataDir = join(tmpdir(), `frontdesk-pg-${randomBytes(6).toString("hex")}`);
  after(() => rmSync(dataDir, { recursive: true, force: true }));

  it("keeps its data over a restart, and its password is asked for", async () => {
    const first = await startEmbeddedPostgres({ dataDir });
    await query(first.url, "create table kept (word text)", "insert into kept values ('hello')");
    const wrong = new URL(first.url);
    wrong.password = "wrong";
    await assert.rejects(query(wrong.href, "select 1"), /password authentication failed/);
    await first.stop();

    const second = await startEmbeddedPostgres({ dataDir });
    assert.deepEqual(await query(second.url, "select word from kept"), [{ word: "hello" }]);
    await second.stop();
  });

  it("ends when its starter is killed, and starts again with what was committed", async () => {
    const starter = spawn(
      process.execPath,
      [
        ...process.execArgv,
        "--input-type=module",
        "-e",
        `import { startEmbeddedPostgres } from ${JSON.stringify(new URL("./embedded_postgres.ts", import.meta.url).href)};
         const database = await startEmbeddedPostgres({ dataDir: process.argv[1] });
         console.log(database.url);`,
        dataDir,
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const [url] = await once(starter.stdout, "data");
    const orphanUrl = String(url).trim();
    await query(orphanUrl, "create table after_kill (word text)");
    await query(orphanUrl, "insert into after_kill values ('committed')");
    const pid = postmasterPid(dataDir);
    starter.kill("SIGKILL");
    await gone(pid);

    const next = await startEmbeddedPostgres({ dataDir });
    assert.deepEqual(await query(next.url, "select word from after_kill"), [{ word: "committed" }]);
    await assert.rejects(query(orphanUrl, "select 1"), /ECONNREFUSED|authentication/);
    await next.stop();
  });

  it("stops one that was left running before it uses the folder", async () => {
    const left = await startEmbeddedPostgres({ dataDir });
    const next = await startEmbeddedPostgres({ dataDir });
    await left.exited;
    assert.deepEqual(await query(next.url, "select 1 as one"), [{ one: 1 }]);
    await next.stop();
  });

  const skip = process.getuid?.() === 0 ? false : "only root hands Postgres to another account";
  it("outside of a closed data folder ends, and is named, once that folder is gone", { skip }, async () => {
    const closed = mkdtempSync(join(tmpdir(), "frontdesk-closed-"));
    const inside = join(closed, "data");
    const database = await startEmbeddedPostgres({ dataDir: inside });
    const home = readlinkSync(join(inside, "postgres"));
    try {
      rmSync(closed, { recursive: true });
      const named = async () => (await endLeftoverClusters()).filter((note) => note.includes(home));
      assert.deepEqual(await named(), [], "whoever runs it is still there");
      writeFileSync(join(home, "owner.json"), JSON.stringify({ data_dir: inside, pid: 1, started: "another life" }));
      assert.deepEqual(await named(), [
        `${home} holds the database of ${inside}, which is gone. If nobody needs it: rm -r ${home}`,
      ]);
      await database.exited;
    } finally {
      await database.stop();
      rmSync(home, { recursive: true });
    }
  });

  it("says which variable to change when the given port is taken", async () => {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await assert.rejects(
      startEmbeddedPostgres({ dataDir, port }),
      new RegExp(`port ${port} is already in use.*DATABASE_PORT`),
    );
    server.close();
  });

  it("tells when it ends by itself", async () => {
    const database = await startEmbeddedPostgres({ dataDir });
    process.kill(postmasterPid(dataDir), "SIGINT");
    await database.exited;
    await database.stop();
  });
});

function postmasterPid(dataDir: string): number {
  return Number(readFileSync(join(dataDir, "postgres", "data", "postmaster.pid"), "utf8").split("\n")[0]);
}

/** Resolves when there is no such process; not our child, so nothing reports its end. */
async function gone(pid: number): Promise<void> {
  while (processStartedAt(pid) !== undefined) await delay(20);
}

async function query(url: string, ...statements: string[]): Promise<object[]> {
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => undefined });
  try {
    let rows: object[] = [];
    for (const statement of statements) rows = [...(await sql.unsafe(statement))];
    return rows;
  } finally {
    await sql.end();
  }
}
