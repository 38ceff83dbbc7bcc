/** What becomes of runs whose workers die, and of commits that Postgres refuses. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { RunUsage } from "#contracts/run_event.ts";
import { createRecorder } from "#runs/engine/recorder.ts";
import { createRunClaims } from "#runs/engine/run_claim.ts";
import { answering, eventually } from "#test/kit/app_client.ts";
import { type EngineHarness, openEngineHarness } from "#test/kit/runs/engine_harness.ts";

const model = {
  async *reply() {
    yield { kind: "text" as const, text: "done" };
  },
  close() {},
};
const usage: RunUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };

describe("a run whose worker is gone", () => {
  let house: EngineHarness;
  before(async () => {
    house = await openEngineHarness();
  });
  after(() => house.close());

  async function post(): Promise<{ host: string; id: string }> {
    const { host } = await house.client.deploy(answering);
    const { body } = await house.client.call(host, "POST", "/v1/runs", {
      body: { input: { question: "?" }, background: true },
    });
    return { host, id: body.data.id };
  }
  const claimAs = (workerId: string, id: string) =>
    createRunClaims({ sql: house.api.sql, workerId, now: house.api.now }).claim(id);
  /** Claims it as a worker that is never heard of again. */
  const die = async (id: string, workerId = "dead") => {
    const claimed = await claimAs(workerId, id);
    assert.ok(claimed);
    house.api.advance(10_000);
    return claimed.run;
  };

  it("is taken up from the lease's end on, not before", async () => {
    const { host, id } = await post();
    await house.dispatch();
    await claimAs("dead", id);
    const engine = await house.start({ model });
    await house.sweep();
    assert.equal(await house.dispatch(engine), 0);
    house.api.advance(10_000);
    await house.sweep();
    assert.equal(await house.dispatch(engine), 1);
    await house.client.until(host, id, "succeeded");
  });

  it("is given up when four workers died over it in a row", async () => {
    const { host, id } = await post();
    for (let deaths = 0; deaths < 4; deaths += 1) assert.equal((await die(id)).recoveries, deaths);
    const engine = await house.start({ model });
    await house.sweep();
    await house.dispatch(engine);
    const run = await house.client.until(host, id, "failed");
    assert.equal(run.error.code, "worker_lost");
    assert.deepEqual(await house.told(id), ["run.created", "run.failed"]);
  });

  it("is not given up for deaths between which it went on", async () => {
    const { id } = await post();
    for (let deaths = 0; deaths < 5; deaths += 1) await die(id);
    const { epoch, last_event_id } = await die(id);
    const recorder = recorderOf("dead");
    const writer = recorder.open({ id, epoch, last_event_id }, () => assert.fail("it is still its own"));
    const row = { id: crypto.randomUUID(), node_id: "in", parent_id: null, iteration: 0, attempt: 1 };
    const rest = { output: {}, error: null, usage: null, handle: "default", wake_at: null };
    writer.saveNode({ ...row, ...rest, status: "succeeded" });
    await writer.flush();
    assert.equal((await die(id)).recoveries, 1);
  });

  it("writes nothing more from a worker that lost it, not even with the same epoch", async () => {
    const { id } = await post();
    const { epoch, last_event_id } = await die(id, "first");
    // What a crash of Postgres does to a claim that was not on the disk yet.
    await house.api.sql`
      update run set status = 'pending', epoch = ${epoch - 1}, worker_id = null, lease_until = null where id = ${id}`;
    const again = await die(id, "second");
    assert.equal(again.epoch, epoch);
    let lost = false;
    const writer = recorderOf("first").open({ id, epoch, last_event_id }, () => {
      lost = true;
    });
    writer.append({ type: "run.started", data: { attempt: 1, worker: "first" } });
    await writer.flush();
    assert.ok(lost);
    assert.deepEqual(await house.told(id), ["run.created"]);
  });

  const recorderOf = (workerId: string, errors: unknown[] = []) =>
    createRecorder({
      sql: house.api.sql,
      bus: house.api.bus,
      workerId,
      now: house.api.now,
      onError: (error) => errors.push(error),
    });

  /** Two claimed runs of one recorder. */
  async function two(lost: string[] = [], errors: unknown[] = []) {
    const recorder = recorderOf("w", errors);
    const open = async () => {
      const { id } = await post();
      const claimed = await claimAs("w", id);
      assert.ok(claimed);
      const writer = recorder.open(claimed.run, () => lost.push(id));
      const started = () => writer.append({ type: "run.started", data: { attempt: 1, worker: "w" } });
      return { id, writer, started };
    };
    return [await open(), await open()] as const;
  }

  it("does not take others with it when Postgres refuses what it writes", async () => {
    const lost: string[] = [];
    const errors: unknown[] = [];
    const [broken, sound] = await two(lost, errors);
    // An event of that id is there already: a broken invariant of this one run.
    await house.api.sql`
      insert into run_event (run_id, id, type, body, created_at) values (${broken.id}, 2, 'x', '{}', now())`;
    broken.started();
    sound.started();
    await Promise.all([broken.writer.flush(), sound.writer.flush()]);
    assert.deepEqual(lost, [broken.id]);
    assert.equal(errors.length, 1);
    assert.deepEqual(await house.told(sound.id), ["run.created", "run.started"]);
    sound.writer.leave({ status: "succeeded", output: {}, usage }, 1);
    await sound.writer.flush();
    const [row] = await house.api.sql`select status from run where id = ${sound.id}`;
    assert.equal(row?.status, "succeeded");
  });

  it("is locked in the order of ids, whatever came first", async () => {
    const pair = await two();
    const [low, high] = [...pair].sort((a, b) => (a.id < b.id ? -1 : 1));
    assert.ok(low && high);
    await house.api.sql.begin(async (transaction) => {
      await transaction`select 1 from run where id = ${low.id} for update`;
      high.started();
      low.started();
      const written = high.writer.flush();
      await eventually(async () => {
        const waiting = await house.api.sql`
          select 1 from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%last_event_id%'`;
        return waiting.length > 0;
      }, "the commit waits");
      await transaction`select 1 from run where id = ${high.id} for update nowait`;
      return { written };
    });
    await Promise.all([low.writer.flush(), high.writer.flush()]);
    for (const { id } of pair) assert.deepEqual(await house.told(id), ["run.created", "run.started"]);
  });
});
