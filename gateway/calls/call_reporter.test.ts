import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { TranscriptItem } from "#contracts/call_record.ts";
import { eventually, FakeApi, ManualClock, noUsage, silentLog } from "#test/kit/gateway_fixture.ts";
import { type CallReporter, createCallReporter } from "./call_reporter.ts";
import { createCloseSpool } from "./close_spool.ts";

const callId = "11111111-1111-4111-8111-111111111111";
const end = { reason: "client_hangup", duration_ms: 10 } as const;

const item = (id: string, text = "hello"): TranscriptItem => ({
  item_id: id,
  turn_id: "t",
  role: "user",
  text,
  heard_text: text,
  interrupted: false,
  start_ms: 0,
  end_ms: 1,
});

describe("call reports", () => {
  let folder: string;
  let api: FakeApi;
  let clock: ManualClock;
  let closedElsewhere: string[];
  let overLimit: string[];
  let reporter: CallReporter;

  const start = async () => {
    reporter = createCallReporter({
      gatewayId: "g",
      api,
      clock,
      spool: createCloseSpool(folder),
      log: silentLog,
      onClosedElsewhere: (id) => closedElsewhere.push(id),
      onOverLimit: (id) => overLimit.push(id),
    });
    await reporter.start();
  };
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "frontdesk-spool-"));
    api = new FakeApi();
    clock = new ManualClock();
    closedElsewhere = [];
    overLimit = [];
    await start();
  });
  afterEach(async () => {
    await reporter.stop(0);
    await rm(folder, { recursive: true, force: true });
  });
  const beats = async (count: number) => {
    await eventually(() => api.heartbeats.length === count, `${count} heartbeats`);
    // The reporter hears of its answer a turn later.
    await new Promise((resolve) => setImmediate(resolve));
  };

  it("hears of calls that a ceiling of the day ends", async () => {
    reporter.opened(callId);
    api.overLimit = [callId];
    clock.advance(5000);
    await beats(1);
    assert.deepEqual([overLimit, closedElsewhere], [[callId], []]);
  });

  it("beats every 5 s with what each call has grown by, changed items once", async () => {
    reporter.opened(callId);
    reporter.progress(callId, { items: [item("a", "he")], turns: [] });
    reporter.progress(callId, { items: [item("a", "hello"), item("b")], turns: [], usage: noUsage });
    clock.advance(5000);
    await beats(1);
    assert.deepEqual(api.heartbeats[0], {
      gateway_id: "g",
      calls: [{ call_id: callId, items: [item("a", "hello"), item("b")], turns: [], usage: noUsage }],
    });
    clock.advance(5000);
    await beats(2);
    assert.deepEqual(api.heartbeats[1]?.calls, [{ call_id: callId, items: [], turns: [] }]);
  });

  it("splits what is more than the api takes at once", async () => {
    for (let n = 0; n < 2500; n++) reporter.opened(`11111111-1111-4111-8111-${String(n).padStart(12, "0")}`);
    clock.advance(5000);
    await beats(3);
    assert.deepEqual(
      api.heartbeats.map(({ calls }) => calls.length),
      [1000, 1000, 500],
    );
  });

  it("keeps what a failed heartbeat could not tell for the next one", async () => {
    reporter.opened(callId);
    reporter.progress(callId, { items: [item("a", "old"), item("b")], turns: [] });
    api.isDown = true;
    clock.advance(5000);
    await new Promise((resolve) => setImmediate(resolve));
    reporter.progress(callId, { items: [item("a", "new")], turns: [] });
    api.isDown = false;
    clock.advance(5000);
    await beats(1);
    const texts = api.heartbeats[0]?.calls[0]?.items.map(({ item_id, text }) => [item_id, text]);
    assert.deepEqual(texts?.sort(), [
      ["a", "new"],
      ["b", "hello"],
    ]);
  });

  it("names the calls that the api holds closed already", async () => {
    reporter.opened(callId);
    api.closedElsewhere = [callId];
    clock.advance(5000);
    await eventually(() => closedElsewhere.length === 1, "the call is named");
    assert.deepEqual(closedElsewhere, [callId]);
  });

  it("repeats a close record until the api takes it, and keeps it on disk meanwhile", async () => {
    reporter.opened(callId);
    reporter.progress(callId, { items: [item("a")], turns: [] });
    api.isDown = true;
    reporter.ended(callId, end);
    const files = () => readdir(folder);
    while ((await files()).length !== 1) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(reporter.pendingCloses, 1);
    api.isDown = false;
    clock.advance(60_000);
    const request = await api.closeOf(callId);
    assert.deepEqual(request.progress.items, [item("a")]);
    assert.deepEqual(request.end, end);
    await eventually(() => reporter.pendingCloses === 0, "nothing is pending");
    while ((await files()).length !== 0) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(api.closes.length, 1);
  });

  it("sends after a restart what the earlier process could not", async () => {
    reporter.opened(callId);
    api.isDown = true;
    reporter.ended(callId, end);
    await reporter.stop(0);
    await writeFile(join(folder, "22222222-2222-4222-8222-222222222222.json"), '{"half');
    await writeFile(join(folder, "README"), "not ours");
    api.isDown = false;
    await start();
    assert.deepEqual((await api.closeOf(callId)).end, end);
    assert.equal(api.closes.length, 1);
  });
});
