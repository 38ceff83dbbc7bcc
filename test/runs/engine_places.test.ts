/** Runs of a full app, and of a session, over several workers: nobody waits for a sweep. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { LanguageModel } from "#providers/language_model.ts";
import { answering, approving, eventually } from "#test/kit/app_client.ts";
import { type EngineHarness, openEngineHarness } from "#test/kit/runs/engine_harness.ts";

/** Answers when it is let. */
function held() {
  const waiting: (() => void)[] = [];
  const model: LanguageModel = {
    async *reply(_, signal) {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      yield { kind: "text", text: "done" };
    },
    close() {},
  };
  return { model, waiting };
}

describe("runs that wait for others", () => {
  let house: EngineHarness;
  before(async () => {
    house = await openEngineHarness();
  });
  after(() => house.close());

  async function post(host: string, body: object = {}): Promise<string> {
    const answer = await house.client.call(host, "POST", "/v1/runs", {
      body: { input: { question: "?" }, background: true, ...body },
    });
    assert.equal(answer.status, 202, JSON.stringify(answer.body));
    return answer.body.data.id;
  }
  const statusOf = async (id: string) => (await house.api.sql`select status from run where id = ${id}`)[0]?.status;

  it("are woken by the end of one in another worker, the oldest first", async () => {
    const { model, waiting } = held();
    const [one, two] = [await house.start({ model }), await house.start({ model })];
    const { host } = await house.client.deploy(answering, { policy: { max_concurrent_runs: 1 } });
    const first = await post(host);
    await house.dispatch(one);
    await eventually(async () => waiting.length === 1, "the first one works");
    const second = await post(host);
    await house.dispatch(two);
    const third = await post(host);
    await house.dispatch(two);
    assert.deepEqual(await Promise.all([first, second, third].map(statusOf)), ["running", "pending", "pending"]);
    for (const [i, id] of [first, second].entries()) {
      waiting[i]?.();
      await house.client.until(host, id, "succeeded");
      await eventually(async () => (await house.dispatch(two)) > 0, "the next one is woken");
      await eventually(async () => waiting.length === i + 2, "it works");
    }
    assert.equal(await statusOf(third), "running");
    waiting[2]?.();
    await house.client.until(host, third, "succeeded");
  });

  it("go on one after the other in a session, and do not keep others from their places", async () => {
    const { model, waiting } = held();
    const [one, two] = [await house.start({ model }), await house.start({ model })];
    const { host } = await house.client.deploy(answering, { policy: { max_concurrent_runs: 2 } });
    const a1 = await post(host, { session_id: "a" });
    const b1 = await post(host, { session_id: "b" });
    await house.dispatch(one, two);
    await eventually(async () => waiting.length === 2, "both work");
    const a2 = await post(host, { session_id: "a" });
    const c1 = await post(host, { session_id: "c" });
    await house.dispatch(two, one);
    waiting[1]?.();
    await house.client.until(host, b1, "succeeded");
    await eventually(async () => (await house.dispatch(one, two)) > 0, "a place is free");
    await eventually(async () => waiting.length === 3, "the other session's goes on");
    assert.deepEqual(await Promise.all([a1, a2, c1].map(statusOf)), ["running", "pending", "running"]);
    waiting[0]?.();
    await house.client.until(host, a1, "succeeded");
    await eventually(async () => (await house.dispatch(one, two)) > 0, "its session is free");
    await eventually(async () => waiting.length === 4, "the second one of the session works");
    for (const go of waiting) go();
    for (const id of [a2, c1]) await house.client.until(host, id, "succeeded");
  });

  it("go on when the one before them in their session is canceled", async () => {
    const engine = await house.start();
    const { host } = await house.client.deploy(approving);
    const first = await post(host, { session_id: "s" });
    await house.dispatch(engine);
    await house.client.until(host, first, "awaiting_input");
    const second = await post(host, { session_id: "s" });
    await house.dispatch(engine);
    assert.equal(await statusOf(second), "pending");
    await house.client.call(host, "POST", `/v1/runs/${first}/cancel`, { body: {} });
    assert.equal(await house.dispatch(engine), 1);
    await house.client.until(host, second, "awaiting_input");
  });

  it("never run more at once than their app may, and are all done without a single sweep", async () => {
    let working = 0;
    let most = 0;
    const model: LanguageModel = {
      async *reply() {
        working += 1;
        most = Math.max(most, working);
        // Long enough for others to be claimed meanwhile.
        for (let n = 0; n < 200 && working < 3; n += 1) await new Promise((resolve) => setImmediate(resolve));
        working -= 1;
        yield { kind: "text", text: "done" };
      },
      close() {},
    };
    const engines = [await house.start({ model }), await house.start({ model }), await house.start({ model })];
    const { id: appId, host } = await house.client.deploy(answering, { policy: { max_concurrent_runs: 3 } });
    const ids = await Promise.all(Array.from({ length: 40 }, (_, n) => post(host, { session_id: `s${n % 7}` })));
    const left = async () =>
      (await house.api.sql`select 1 from run where app_id = ${appId} and status <> 'succeeded'`).length;
    await eventually(async () => {
      await Promise.all(engines.map((engine) => house.dispatch(engine)));
      return (await left()) === 0;
    }, "all are done");
    assert.equal(ids.length, 40);
    assert.ok(most > 1 && most <= 3, `${most} at once`);
  });
});
