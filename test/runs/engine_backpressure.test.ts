/** A worker whose Postgres stalls: what its runs say stays bounded, and is complete once it moves again. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { RunEvent } from "#contracts/run_event.ts";
import type { LanguageModel } from "#providers/language_model.ts";
import { openSql, type Sql } from "#store/sql.ts";
import { answering, eventually } from "#test/kit/app_client.ts";
import { type EngineHarness, openEngineHarness } from "#test/kit/runs/engine_harness.ts";
import { CutLink } from "#test/kit/sockets/cut_link.ts";

const chunk = "x".repeat(1024);
const chunksEach = 200;

const chunksFirst = 10;
/** What a run may have noted and not written, and what a chunk takes of it, at two bytes a character. */
const unwrittenBytesOfRunMax = 256 * 1024;

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Says a few words, and after `goOn` the others, as fast as it is listened to. */
function talker() {
  const spoken = { chunks: 0 };
  let goOn: () => void = () => undefined;
  const mayGoOn = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const model: LanguageModel = {
    async *reply() {
      for (let n = 0; n < chunksEach; n += 1) {
        if (n === chunksFirst) await mayGoOn;
        spoken.chunks += 1;
        yield { kind: "text", text: chunk };
        // As from a socket: one at a time.
        await turn();
      }
    },
    close() {},
  };
  return { model, spoken, goOn };
}

const talking = structuredClone(answering);
Object.assign(talking, {
  nodes: [
    { id: "in", type: "input" },
    ...["a", "b"].map((id) => ({
      ...answering.nodes[1],
      id,
      config: { model: "echo", messages: [{ role: "user", template: "" }] },
    })),
    { id: "out", type: "output", inputs: { answer: "done" } },
  ],
  edges: ["a", "b"].flatMap((id) => [
    { from: "in", to: id },
    { from: id, to: "out" },
  ]),
});

describe("a stalled Postgres", () => {
  let house: EngineHarness;
  let link: CutLink;
  let sql: Sql;
  before(async () => {
    house = await openEngineHarness();
    const url = new URL(house.api.databaseUrl);
    link = await CutLink.open(Number(url.port));
    url.port = new URL(link.url).port;
    sql = openSql({ databaseUrl: url.href });
  });
  after(async () => {
    link.flow();
    await house.close();
    await sql.end({ timeout: 5 });
    await link.close();
  });

  it("holds up what goes on talking, and nothing is lost or doubled once it moves again", async () => {
    const { model, spoken, goOn } = talker();
    const engine = await house.start({ model, sql });
    const { host } = await house.client.deploy(talking);
    const body = { input: { question: "?" }, background: true };
    const [one, two] = [
      await house.client.call(host, "POST", "/v1/runs", { body }),
      await house.client.call(host, "POST", "/v1/runs", { body }),
    ].map((answer) => answer.body.data.id as string);
    assert.ok(one && two);
    await house.dispatch(engine);
    await eventually(async () => spoken.chunks === 4 * chunksFirst, "both nodes of both talk");

    link.stall();
    const before = spoken.chunks;
    goOn();
    await eventually(async () => engine.unwrittenBytes() > 2 * unwrittenBytesOfRunMax, "there is no more room");
    for (let i = 0; i < 500; i += 1) await turn();
    // 256 KiB a run at two bytes a character, what was under way, and what each says before it looks.
    assert.ok(spoken.chunks - before < 340, `${spoken.chunks - before} KiB more were taken`);

    link.flow();
    for (const id of [one, two]) {
      await house.client.until(host, id, "succeeded");
      const rows = await house.api.sql<{ id: number; body: string }[]>`
        select id, body from run_event where run_id = ${id} order by id`;
      assert.deepEqual(
        rows.map((row) => row.id),
        rows.map((_, i) => i + 1),
      );
      const events = rows.map((row) => JSON.parse(row.body) as RunEvent);
      for (const node of ["a", "b"]) {
        const text = events.flatMap((event) =>
          event.type === "content.delta" && event.node_id === node ? [event.data.text ?? ""] : [],
        );
        assert.equal(text.join("").length, chunksEach * chunk.length);
      }
    }
  });

  it("does not keep a run from being canceled by somebody whose Postgres moves", async () => {
    const { model, goOn } = talker();
    const engine = await house.start({ model, sql });
    const { host } = await house.client.deploy(talking);
    const { body } = await house.client.call(host, "POST", "/v1/runs", {
      body: { input: { question: "?" }, background: true },
    });
    await house.dispatch(engine);
    await eventually(async () => (await house.told(body.data.id)).includes("content.delta a"), "it talks");
    link.stall();
    goOn();
    await eventually(async () => engine.unwrittenBytes() > unwrittenBytesOfRunMax, "it waits for room");
    const canceled = house.client.call(host, "POST", `/v1/runs/${body.data.id}/cancel`, { body: {} });
    link.flow();
    assert.equal((await canceled).body.data.status, "canceled");
    await eventually(async () => engine.running() === 0, "nothing is left");
  });

  it("gives up a commit that nobody answers: another worker goes on with the run, and no event is told twice", async () => {
    const { model, goOn } = talker();
    const late = new Set<() => void>();
    const commitDeadline = (onLate: () => void) => {
      late.add(onLate);
      return () => late.delete(onLate);
    };
    const engine = await house.start({ model, sql, commitDeadline });
    const { host } = await house.client.deploy(talking);
    const { body } = await house.client.call(host, "POST", "/v1/runs", {
      body: { input: { question: "?" }, background: true },
    });
    await house.dispatch(engine);
    await eventually(async () => (await house.told(body.data.id)).includes("content.delta a"), "it talks");
    link.stall();
    goOn();
    await eventually(async () => engine.unwrittenBytes() > unwrittenBytesOfRunMax, "a commit is not answered");
    for (const giveUp of late) giveUp();
    await eventually(async () => engine.running() === 0, "it is given up");
    house.api.advance(10_000);
    const other = await house.start({ model });
    // Where the link broke inside of a transaction, Postgres holds the run until it gives that up too.
    await eventually(async () => {
      await house.sweep();
      return (await house.dispatch(other)) === 1;
    }, "another worker has it");
    await house.client.until(host, body.data.id, "succeeded");
    link.flow();
    const ids = await house.api.sql<{ id: number }[]>`
      select id from run_event where run_id = ${body.data.id} order by id`;
    assert.deepEqual(
      ids.map(({ id }) => id),
      ids.map((_, i) => i + 1),
    );
    const told = await house.told(body.data.id);
    assert.equal(told.filter((type) => type === "run.succeeded").length, 1);
    assert.equal(told.filter((type) => type === "node.completed a").length, 1);
  });
});
