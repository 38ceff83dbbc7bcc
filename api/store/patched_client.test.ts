/** What `patches/postgres+3.4.9.patch` mends in the Postgres client. Each of these fails without it. */
import assert from "node:assert/strict";
import { type AddressInfo, createServer, Socket } from "node:net";
import { after, afterEach, before, describe, it } from "node:test";
import postgres from "postgres";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { CutLink } from "#test/kit/sockets/cut_link.ts";
import { openSql } from "./sql.ts";

describe("the Postgres client, when a connection is lost", () => {
  let database: TestDatabase;
  before(async () => {
    database = await createTestDatabase();
  });
  after(() => database.drop());

  const clients: postgres.Sql[] = [];
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.end({ timeout: 5 });
  });

  /**
   * A client of one connection. It has heard of a socket's error, and not yet of its close, while `beforeClose`
   * runs and whatever that sets off, timers and what is scheduled for later left out.
   */
  function openClient() {
    const hooks = { beforeClose: () => {}, afterClose: () => {} };
    const sockets: Socket[] = [];
    class WatchedSocket extends Socket {
      override emit(event: string | symbol, ...values: unknown[]): boolean {
        if (event !== "close") return super.emit(event, ...values);
        hooks.beforeClose();
        void settled().then(() => {
          super.emit(event, ...values);
          hooks.afterClose();
        });
        return true;
      }
    }
    const socket = ({ host, port }: { host: string[]; port: number[] }) => {
      const made = new WatchedSocket().connect(port[0] ?? 0, host[0] ?? "");
      sockets.push(made);
      return made;
    };
    const sql = postgres(database.url, {
      max: 1,
      connect_timeout: 20,
      backoff: () => 0,
      // The client's types do not know this option.
      ...({ socket } as object),
    });
    clients.push(sql);
    return { sql, hooks, lose: (error?: Error) => void sockets.at(-1)?.destroy(error) };
  }

  /** Long enough for promises to run, too short for what `setImmediate` schedules. */
  async function settled(): Promise<void> {
    for (let turn = 0; turn < 20; turn += 1) await undefined;
  }

  for (const [title, error] of [
    ["ended", undefined],
    ["was reset", Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })],
  ] as const)
    it(`fails what it is given before it hears that its socket ${title}, and keeps nothing of it for the next one`, async () => {
      const { sql, hooks, lose } = openClient();
      await sql`select 1`;
      const outcome = new Promise((resolve) => {
        hooks.beforeClose = () => {
          hooks.beforeClose = () => {};
          sql`select 2`.then(resolve, resolve);
        };
      });
      lose(error);
      assert.equal(((await outcome) as { code?: string }).code, "CONNECTION_CLOSED");
      assert.deepEqual([...(await sql`select 3 as n`)], [{ n: 3 }]);
    });

  it("ends after a statement that failed with its connection", async () => {
    const { sql, lose } = openClient();
    await sql`select 1`;
    const waiting = sql`select pg_sleep(60)`.execute();
    lose(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
    await assert.rejects(waiting);
    await sql.end();
  });

  it("answers the next statement with its own outcome, not with the old connection's last words", async () => {
    const { sql, hooks } = openClient();
    const [session] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    const isClosed = new Promise<void>((resolve) => {
      hooks.afterClose = resolve;
    });
    await database.sql`select pg_terminate_backend(${session?.pid ?? 0}, 5000)`;
    await isClosed;
    assert.deepEqual([...(await sql`select 3 as n`)], [{ n: 3 }]);
  });

  it("lets nothing of a transaction whose connection is gone into the next one's", async () => {
    await database.sql`create table kept (writer text)`;
    const { sql } = openClient();
    let writeLate: () => void = () => {};
    const isTimeToWrite = new Promise<void>((resolve) => {
      writeLate = resolve;
    });
    let late: Promise<PromiseSettledResult<unknown>[]> | undefined;
    const first = sql.begin(async (transaction) => {
      const [session] = await transaction<{ pid: number }[]>`select pg_backend_pid() as pid`;
      late = isTimeToWrite.then(() =>
        Promise.allSettled([transaction`insert into kept values ('first')`, transaction`commit`]),
      );
      await database.sql`select pg_terminate_backend(${session?.pid ?? 0}, 5000)`;
      await late;
    });
    await assert.rejects(first, { code: "CONNECTION_CLOSED" });
    const second = sql.begin(async (transaction) => {
      await transaction`insert into kept values ('second')`;
      writeLate();
      await late;
      throw new Error("taken back");
    });
    await assert.rejects(second, /taken back/);
    assert.deepEqual(
      (await late)?.map(({ status }) => status),
      ["rejected", "rejected"],
    );
    assert.deepEqual([...(await database.sql`select * from kept`)], []);
  });

  it("fails what a transaction had still in its queue", async () => {
    const { sql, lose } = openClient();
    let outcomes: Promise<PromiseSettledResult<unknown>[]> | undefined;
    const lostInside = sql.begin(async (transaction) => {
      // One that is described first holds back those after it.
      outcomes = Promise.allSettled([1, 2, 3].map((n) => transaction`select ${n}::int, pg_sleep(60)`));
      lose();
      await outcomes;
    });
    await assert.rejects(lostInside, { code: "CONNECTION_CLOSED" });
    assert.deepEqual(
      (await outcomes)?.map(({ status }) => status),
      ["rejected", "rejected", "rejected"],
    );
  });

  it("fails a statement whose connection is closed before it is open, instead of trying without end", async () => {
    let connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      socket.resume().end();
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const sql = postgres(`postgres://nobody@127.0.0.1:${(server.address() as AddressInfo).port}/none`, { max: 1 });
    await assert.rejects(sql`select 1`.execute(), { code: "CONNECTION_CLOSED" });
    assert.equal(connections, 1);
    await sql.end();
    await new Promise((resolve) => server.close(resolve));
  });

  it("leaves no statement without an answer where many are under way and connections are reset", async () => {
    const talkers = 24;
    const databaseUrl = new URL(database.url);
    const link = await CutLink.open(Number(databaseUrl.port));
    databaseUrl.port = new URL(link.url).port;
    const sql = openSql({ databaseUrl: databaseUrl.href, connectionsMax: 4 });
    let answered = 0;
    let failed = 0;
    for (let round = 0; round < 6; round += 1) {
      const target = answered + 5 * talkers;
      const talk = async () => {
        while (answered < target) {
          // Who fails asks again at once, on whatever connection the client believes to be open.
          await sql`select ${"x".repeat(500)}::text`.then(
            () => {
              answered += 1;
            },
            () => {
              failed += 1;
            },
          );
        }
      };
      const talking = Array.from({ length: talkers }, talk);
      await sql`select 1`.catch(() => undefined);
      link.cut();
      // Without an answer to each, this would never be over.
      await Promise.all(talking);
    }
    assert.ok(failed > 0, "statements were under way when connections were reset");
    await sql.end({ timeout: 5 });
    await link.close();
  });
});
