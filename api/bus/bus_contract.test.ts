/** One contract, both implementations. The Redis part needs TEST_REDIS_URL or a redis-server here. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { after, before, describe, it } from "node:test";
import type { ReservedCall } from "#contracts/internal_calls.ts";
import { voiceLimits } from "#contracts/voice_protocol.ts";
import type { Bus } from "./bus.ts";
import { createMemoryBus } from "./memory_bus.ts";
import { openBus } from "./open_bus.ts";
import { BusUnavailableError, createRedisBus } from "./redis_bus.ts";

interface Subject {
  bus: Bus;
  /** Another process on the same bus; the memory bus has one process only. */
  other: Bus;
  nowMs(): number;
  /** Lets `ms` pass: moves the injected clock, or really waits. */
  pass(ms: number): Promise<void>;
}

/** `expiresInMs` counts from the subject's clock. */
function reservationOf(subject: Subject, expiresInMs = 60_000): ReservedCall {
  return {
    call_id: randomUUID(),
    secret_sha256: "00".repeat(32),
    expires_at: new Date(subject.nowMs() + expiresInMs).toISOString(),
    allowed_origins: ["https://hotel.example"],
    state: "reserved",
  };
}

/** Resolves with the first payload that passes `wanted`. */
function firstPayload(bus: Bus, topic: string, wanted: (payload: string) => boolean) {
  const { promise, resolve } = deferred<string>();
  const subscribed = bus.subscribe(topic, (payload) => {
    if (wanted(payload)) resolve(payload);
  });
  return { subscribed, payload: promise };
}

function deferred<T>() {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

function contract(subjectOf: () => Subject) {
  it("tells an unknown reservation from a known one", async () => {
    const { bus } = subjectOf();
    assert.equal(await bus.peekReservation(randomUUID()), undefined);
    assert.equal(await bus.takeReservation(randomUUID(), "anybody"), "unknown");
    await bus.restoreReservation(randomUUID(), "anybody");
  });

  it("keeps a reservation as it was put, and peeking does not take it", async () => {
    const subject = subjectOf();
    const reservation = reservationOf(subject);
    await subject.bus.putReservation(reservation);
    assert.deepEqual(await subject.other.peekReservation(reservation.call_id), { reservation, consumed: false });
    assert.deepEqual(await subject.bus.peekReservation(reservation.call_id), { reservation, consumed: false });
    assert.equal(await subject.bus.takeReservation(reservation.call_id, "one"), "taken");
    assert.deepEqual(await subject.other.peekReservation(reservation.call_id), { reservation, consumed: true });
  });

  it("gives a reservation to one of 50 racing takers", async () => {
    const subject = subjectOf();
    const reservation = reservationOf(subject);
    await subject.bus.putReservation(reservation);
    const takers = Array.from({ length: 50 }, (_, i) => (i % 2 ? subject.bus : subject.other));
    const results = await Promise.all(takers.map((bus, i) => bus.takeReservation(reservation.call_id, `taker ${i}`)));
    assert.equal(results.filter((result) => result === "taken").length, 1);
    assert.equal(results.filter((result) => result === "consumed").length, 49);
  });

  it("never revives a taken reservation by a second put", async () => {
    const subject = subjectOf();
    const reservation = reservationOf(subject);
    await subject.bus.putReservation(reservation);
    assert.equal(await subject.bus.takeReservation(reservation.call_id, "one"), "taken");
    await subject.other.putReservation(reservation);
    assert.equal(await subject.bus.takeReservation(reservation.call_id, "two"), "consumed");
  });

  it("gives a restored reservation to exactly one more taker", async () => {
    const subject = subjectOf();
    const reservation = reservationOf(subject);
    await subject.bus.putReservation(reservation);
    assert.equal(await subject.bus.takeReservation(reservation.call_id, "one"), "taken");
    await subject.bus.restoreReservation(reservation.call_id, "one");
    assert.deepEqual(await subject.bus.peekReservation(reservation.call_id), { reservation, consumed: false });
    assert.equal(await subject.other.takeReservation(reservation.call_id, "one"), "taken");
    assert.equal(await subject.bus.takeReservation(reservation.call_id, "two"), "consumed");
  });

  it("tells a taker that asks again what it has, and lets nobody give back what another has taken", async () => {
    const subject = subjectOf();
    const { bus, other } = subject;
    const reservation = reservationOf(subject);
    const { call_id } = reservation;
    await bus.putReservation(reservation);
    assert.equal(await bus.takeReservation(call_id, "first"), "taken");
    assert.equal(await other.takeReservation(call_id, "first"), "taken");
    await other.restoreReservation(call_id, "second");
    assert.equal(await other.takeReservation(call_id, "second"), "consumed");
    await bus.restoreReservation(call_id, "first");
    assert.equal(await other.takeReservation(call_id, "second"), "taken");
    await bus.restoreReservation(call_id, "first");
    assert.equal(await bus.takeReservation(call_id, "first"), "consumed");
  });

  it("answers expired after the time is over, restored or not", async () => {
    const subject = subjectOf();
    const unused = reservationOf(subject, 500);
    const restored = reservationOf(subject, 500);
    await subject.bus.putReservation(unused);
    await subject.bus.putReservation(restored);
    assert.equal(await subject.bus.takeReservation(restored.call_id, "one"), "taken");
    await subject.bus.restoreReservation(restored.call_id, "one");
    await subject.pass(600);
    assert.equal(await subject.bus.takeReservation(unused.call_id, "two"), "expired");
    assert.equal(await subject.bus.takeReservation(restored.call_id, "two"), "expired");
    assert.equal((await subject.bus.peekReservation(unused.call_id))?.consumed, false);
  });

  it("forgets a reservation that expired long ago", async () => {
    const subject = subjectOf();
    const old = reservationOf(subject, -voiceLimits.reservationTtlS * 1000 - 1);
    await subject.bus.putReservation(old);
    assert.equal(await subject.bus.takeReservation(old.call_id, "two"), "unknown");
  });

  it("fans a payload out to every subscriber of the topic and to no other", async () => {
    const { bus, other } = subjectOf();
    const topic = `topic-${randomUUID()}`;
    const here = firstPayload(bus, topic, (payload) => payload === "last");
    const there = firstPayload(other, topic, (payload) => payload === "last");
    const heard: string[] = [];
    const stops = [
      await here.subscribed,
      await there.subscribed,
      await bus.subscribe(topic, (payload) => heard.push(payload)),
      await bus.subscribe(`${topic}-another`, (payload) => heard.push(`wrong ${payload}`)),
    ];
    await other.publish(topic, "grüß Gott");
    await other.publish(topic, "last");
    assert.deepEqual(await Promise.all([here.payload, there.payload]), ["last", "last"]);
    assert.deepEqual(heard, ["grüß Gott", "last"]);
    for (const stop of stops) await stop();
  });

  it("hears nothing after the subscription ended, while the others go on", async () => {
    const { bus } = subjectOf();
    const topic = `topic-${randomUUID()}`;
    const heard: string[] = [];
    const listener = (payload: string) => heard.push(payload);
    const stopFirst = await bus.subscribe(topic, listener);
    const stopSecond = await bus.subscribe(topic, listener);
    await stopFirst();
    await stopFirst();
    const witness = firstPayload(bus, topic, (payload) => payload === "end");
    const stopWitness = await witness.subscribed;
    await bus.publish(topic, "one");
    await bus.publish(topic, "end");
    await witness.payload;
    assert.deepEqual(heard, ["one", "end"]);
    await stopSecond();
    await stopWitness();
  });

  it("shows a gateway's capacity until it stops reporting", async () => {
    const subject = subjectOf();
    const [alive, dead] = [randomUUID(), randomUUID()];
    await subject.bus.reportCapacity(alive, { slots: 8, inUse: 1, draining: false }, 60_000);
    await subject.bus.reportCapacity(dead, { slots: 8, inUse: 8, draining: true }, 500);
    assert.deepEqual((await subject.other.capacities()).get(dead), { slots: 8, inUse: 8, draining: true });
    await subject.bus.reportCapacity(alive, { slots: 8, inUse: 2, draining: false }, 60_000);
    await subject.pass(600);
    const capacities = await subject.other.capacities();
    assert.deepEqual(capacities.get(alive), { slots: 8, inUse: 2, draining: false });
    assert.equal(capacities.has(dead), false);
  });

  it("allows exactly the limit in a window, over all processes, and again in the next", async () => {
    const subject = subjectOf();
    const key = randomUUID();
    const buses = Array.from({ length: 20 }, (_, i) => (i % 2 ? subject.bus : subject.other));
    const hits = await Promise.all(buses.map((bus) => bus.hitRateLimit(key, 7, 60_000)));
    assert.equal(hits.filter((hit) => hit.allowed).length, 7);
    for (const hit of hits.filter((hit) => !hit.allowed)) {
      assert.ok(hit.retryAfterMs > 0 && hit.retryAfterMs <= 60_000, `retry after ${hit.retryAfterMs} ms`);
    }
    const short = randomUUID();
    assert.equal((await subject.bus.hitRateLimit(short, 1, 500)).allowed, true);
    await subject.pass(600);
    assert.equal((await subject.bus.hitRateLimit(short, 1, 60_000)).allowed, true);
    assert.equal((await subject.bus.hitRateLimit(short, 1, 60_000)).allowed, false);
  });

  it("answers a ping", async () => {
    await subjectOf().bus.ping();
  });
}

describe("the memory bus", () => {
  let nowMs = 1_800_000_000_000;
  const bus = createMemoryBus({ nowMs: () => nowMs });
  const pass = async (ms: number) => {
    nowMs += ms;
  };
  const subject: Subject = { bus, other: bus, nowMs: () => nowMs, pass };
  contract(() => subject);

  it("answers consumed for the tombstone's 15 minutes, then unknown", async () => {
    const reservation = reservationOf(subject);
    await bus.putReservation(reservation);
    await bus.takeReservation(reservation.call_id, "one");
    await pass(voiceLimits.tombstoneTtlS * 1000 - 1);
    assert.equal(await bus.takeReservation(reservation.call_id, "two"), "consumed");
    await pass(1);
    assert.equal(await bus.takeReservation(reservation.call_id, "two"), "unknown");
  });

  it("holds no more than what lives: the expired and the used are swept", async () => {
    for (let i = 0; i < 500; i++) {
      const reservation = reservationOf(subject);
      await bus.putReservation(reservation);
      if (i % 2) await bus.takeReservation(reservation.call_id, "one");
      await bus.hitRateLimit(`key-${i}`, 1, 1000);
      await bus.reportCapacity(`gateway-${i}`, { slots: 1, inUse: 0, draining: false }, 1000);
    }
    assert.ok(bus.entryCount() >= 1500);
    await pass(voiceLimits.tombstoneTtlS * 1000 + voiceLimits.reservationTtlS * 1000);
    await bus.hitRateLimit("after", 1, 1000);
    assert.equal(bus.entryCount(), 1);
  });

  it("is what openBus opens without a Redis address", async () => {
    const opened = await openBus({});
    const reservation = reservationOf({ ...subject, nowMs: Date.now });
    await opened.putReservation(reservation);
    assert.equal(await opened.takeReservation(reservation.call_id, "one"), "taken");
    await opened.close();
  });
});

const redisServer = spawnSync("redis-server", ["--version"]).status === 0;
const redisUrlGiven = process.env.TEST_REDIS_URL;
const skipRedis = redisUrlGiven || redisServer ? false : "no TEST_REDIS_URL and no redis-server on this machine";

describe("the Redis bus", { skip: skipRedis }, () => {
  let server: RedisServer | undefined;
  let subject: Subject;

  before(async () => {
    server = redisUrlGiven ? undefined : await startRedis(await freePort());
    const url = redisUrlGiven ?? (server as RedisServer).url;
    const [bus, other] = await Promise.all([openBus({ redisUrl: url }), createRedisBus(url)]);
    const pass = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
    subject = { bus, other, nowMs: Date.now, pass };
  });
  after(async () => {
    await subject?.bus.close();
    await subject?.other.close();
    await server?.stop();
  });
  contract(() => subject);

  it("does not take an answer for late that waits to be read while this process stands", async () => {
    const answered = subject.bus.ping();
    const until = Date.now() + 4000;
    while (Date.now() < until);
    await answered;
  });
});

describe("the Redis bus when Redis is away", { skip: redisServer ? false : "no redis-server on this machine" }, () => {
  it("refuses to start without one", async () => {
    const port = await freePort();
    await assert.rejects(createRedisBus(`redis://127.0.0.1:${port}`), BusUnavailableError);
  });

  it("fails fast, comes back by itself and renews its subscriptions", async () => {
    const port = await freePort();
    let server = await startRedis(port);
    const bus = await createRedisBus(server.url);
    const topic = randomUUID();
    const heard = firstPayload(bus, topic, () => true);
    await heard.subscribed;

    await server.stop();
    await assert.rejects(bus.takeReservation(randomUUID(), "anybody"), BusUnavailableError);
    await assert.rejects(bus.ping(), BusUnavailableError);
    assert.deepEqual(bus.link(), { isUp: false, reconnects: 0 });

    server = await startRedis(port);
    await answers(() => bus.ping());
    assert.equal(bus.link().isUp, true);
    assert.ok(bus.link().reconnects > 0);
    await bus.publish(topic, "back");
    assert.equal(await heard.payload, "back");
    await bus.close();
    await server.stop();
  });

  it("does not wait for a Redis that hangs", async () => {
    const server = await startRedis(await freePort());
    const bus = await createRedisBus(server.url);
    server.process.kill("SIGSTOP");
    await assert.rejects(bus.takeReservation(randomUUID(), "anybody"), BusUnavailableError);
    server.process.kill("SIGCONT");
    await answers(() => bus.ping());
    await bus.close();
    await server.stop();
  });
});

interface RedisServer {
  url: string;
  process: ChildProcess;
  stop(): Promise<void>;
}

/** Starts a server that stores nothing and waits until it says that it is ready. */
async function startRedis(port: number): Promise<RedisServer> {
  const options = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const child = spawn("redis-server", options, { stdio: ["ignore", "pipe", "ignore"] });
  child.stdout.setEncoding("utf8");
  let output = "";
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    output += chunk;
    if (output.includes("Ready to accept connections")) break;
  }
  assert.match(output, /Ready to accept connections/, "redis-server did not start");
  child.stdout.resume();
  return {
    url: `redis://127.0.0.1:${port}`,
    process: child,
    async stop() {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** Resolves when `attempt` succeeds; the test runner's own time limit bounds it. */
async function answers(attempt: () => Promise<void>): Promise<void> {
  for (;;) {
    const done = await attempt().then(
      () => true,
      () => false,
    );
    if (done) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
