import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import postgres from "postgres";
import { startEmbeddedPostgres } from "./embedded_postgres.ts";

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

  it("starts again after its starter was killed, with what was committed", async () => {
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
    const killed = once(starter, "exit");
    starter.kill("SIGKILL");
    await killed;
    await query(orphanUrl, "insert into after_kill values ('the orphan answers')");

    const next = await startEmbeddedPostgres({ dataDir });
    assert.deepEqual(await query(next.url, "select word from after_kill"), [{ word: "the orphan answers" }]);
    await assert.rejects(query(orphanUrl, "select 1"), /ECONNREFUSED|authentication/);
    await next.stop();
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
    const [pid] = readFileSync(join(dataDir, "postgres", "data", "postmaster.pid"), "utf8").split("\n");
    process.kill(Number(pid), "SIGINT");
    await database.exited;
    await database.stop();
  });
});

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
