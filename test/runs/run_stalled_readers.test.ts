/**
 * A thousand clients that open a run's stream and do not read: what they cost the gateway's process, that
 * others are served meanwhile, and that each of them has everything once it reads (a fifth of them do, in the
 * short form).
 */
import assert from "node:assert/strict";
import { once, setMaxListeners } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { type RunningApi, startApi } from "#api/process/server.ts";
import { startWorker } from "#api/worker.ts";
import type { Bus } from "#bus/bus.ts";
import { openBus } from "#bus/open_bus.ts";
import { silentLogger } from "#http/logger.ts";
import { type ApiHarness, appConfig, openApiHarness, sessions, workerMail } from "#test/kit/api_harness.ts";
import { type AppClient, openAppClient } from "#test/kit/app_client.ts";
import { type RedisForTests, redisMissing, startRedis } from "#test/kit/redis_fixture.ts";
import { type RoleProcess, sharedSecrets, startRole } from "#test/kit/role_process.ts";
import { type AppAddress, askApp, assertWhole, followRun, jsonOf } from "#test/kit/runs/run_followers.ts";
import { isWhole } from "../kit/patience.ts";
import { bestTransport } from "../kit/transports.ts";

const redisUrl = process.env.TEST_REDIS_URL;
const stalled = 1000;
/** Of them those that then read it all, 5 MB each. */
const finishing = isWhole ? stalled : 200;
const others = 20;
/** As a client does that is told to come back. */
const retryMs = 500;
/** On a machine so busy that fewer stand at once nothing would be measured. */
const standingMin = 50;
const rssGrowthBytesMax = 64 * 1024 * 1024;
/** Above what the kernel keeps for a connection (4 MiB of it unsent): who does not read comes to stand. */
const fillers = 13;
const fillerBytes = 190_000;

/** Says more than any buffer holds, asks, then says a few hundred words. */
const definition = {
  schema_version: 1,
  nodes: [
    { id: "in", type: "input" },
    ...Array.from({ length: fillers }, (_, i) => ({
      id: `fill_${i}`,
      type: "llm",
      config: { model: "echo", messages: [{ role: "user", template: "{{text}}" }] },
      inputs: { text: "$.input.text" },
    })),
    { id: "go", type: "approval", config: { prompt: "Go on?" } },
    {
      id: "talk",
      type: "llm",
      config: {
        model: "scripted",
        options: { replies: [Array.from({ length: 300 }, (_, i) => `w${i}`).join(" ")], tokens_per_s: 150 },
        messages: [{ role: "user", template: "x" }],
      },
    },
    { id: "out", type: "output", inputs: { text: "$.nodes.talk.output.text" } },
  ],
  edges: [
    ...Array.from({ length: fillers }, (_, i) => [
      { from: "in", to: `fill_${i}` },
      { from: `fill_${i}`, to: "go" },
    ]).flat(),
    { from: "go", to: "talk", handle: "approved" },
    { from: "talk", to: "out" },
  ],
};

/** A whole stream as bytes. */
class Reference {
  readonly #opening: Buffer;
  readonly #frames: Buffer;
  /** Where each event ends in the frames. */
  readonly #ends: number[] = [];
  /** By cursor: a thousand readers share a few. */
  readonly #bodies = new Map<number, Buffer>();

  constructor(stream: Buffer) {
    const start = stream.indexOf("id: 1\n");
    this.#opening = stream.subarray(0, start);
    this.#frames = stream.subarray(start);
    for (let at = this.#frames.indexOf("\n\n"); at >= 0; at = this.#frames.indexOf("\n\n", at + 2)) {
      this.#ends.push(at + 2);
    }
  }

  get bytes(): number {
    return this.#frames.length;
  }

  bodyAfter(cursor: number): Buffer {
    const body =
      this.#bodies.get(cursor) ??
      Buffer.concat([this.#opening, this.#frames.subarray(cursor === 0 ? 0 : this.#ends[cursor - 1])]);
    this.#bodies.set(cursor, body);
    return body;
  }

  /** The last event that is whole within so many bytes of the body after `cursor`. */
  lastWithin(cursor: number, bytes: number): number {
    const read = (this.#ends[cursor - 1] ?? 0) + Math.max(0, bytes - this.#opening.length);
    return this.#ends.filter((end) => end <= read).length;
  }
}

/** All sockets are read into it, one after the other: what is in it is dealt with at once. */
const readBuffer = Buffer.alloc(256 * 1024);

/** One connection after the other, each read as bytes and compared with what must have been sent. */
class StalledReader {
  readonly #app: AppAddress;
  readonly #runId: string;
  #socket: Socket;
  #take: (chunk: Buffer) => void = () => undefined;
  /** Events that it has from earlier connections. */
  #cursor = 0;

  constructor(app: AppAddress, runId: string) {
    this.#app = app;
    this.#runId = runId;
    this.#socket = this.#dial().pause();
  }

  #dial(): Socket {
    const { port, host, accessKey } = this.#app;
    const callback = (size: number, buffer: Uint8Array) => {
      this.#take(Buffer.from(buffer.buffer, buffer.byteOffset, size));
      return true;
    };
    const socket = connect({ port, host: "127.0.0.1", onread: { buffer: readBuffer, callback } });
    socket.on("error", () => undefined);
    const cursor = this.#cursor > 0 ? `last-event-id: ${this.#cursor}\r\n` : "";
    socket.write(
      `GET /v1/runs/${this.#runId}/stream HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${accessKey}\r\n${cursor}\r\n`,
    );
    return socket;
  }

  /** Reads to the end, coming back with its cursor where it was cut. @returns how many connections that took */
  async finish(reference: Reference): Promise<number> {
    for (let connections = 1; ; connections += 1) {
      const body = new ExpectedBody(reference.bodyAfter(this.#cursor));
      await this.#read(body);
      if (body.isWhole) return connections;
      if (body.isTurnedAway) await wait(retryMs);
      this.#cursor = reference.lastWithin(this.#cursor, body.bytes);
      this.#socket = this.#dial();
    }
  }

  /** Until the body is whole, or the connection over. @throws AssertionError where it differs */
  async #read(body: ExpectedBody): Promise<void> {
    const over = once(this.#socket, "close");
    let wrong: unknown;
    this.#take = (chunk) => {
      try {
        body.take(chunk);
      } catch (error) {
        wrong = error;
      }
      if (wrong || body.isWhole || body.isTurnedAway) this.#socket.destroy();
    };
    this.#socket.resume();
    await over;
    if (wrong) throw wrong;
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** A chunked answer (RFC 9112, section 7.1) whose content is known beforehand. */
class ExpectedBody {
  readonly #expected: Buffer;
  #head = "";
  #hasHead = false;
  #size = "";
  #left = 0;
  bytes = 0;
  /** A thousand at once are more than a busy machine lets in: these are told to come back. */
  isTurnedAway = false;

  constructor(expected: Buffer) {
    this.#expected = expected;
  }

  get isWhole(): boolean {
    return this.bytes === this.#expected.length;
  }

  take(chunk: Buffer): void {
    let at = 0;
    if (!this.#hasHead) {
      this.#head += chunk.toString("latin1");
      const end = this.#head.indexOf("\r\n\r\n");
      if (end < 0) return;
      this.isTurnedAway = this.#head.startsWith("HTTP/1.1 503 ");
      if (this.isTurnedAway) return;
      assert.match(this.#head, /^HTTP\/1.1 200 /);
      this.#hasHead = true;
      at = chunk.length - (this.#head.length - end - 4);
    }
    while (at < chunk.length) {
      if (this.#left === 0) {
        const byte = String.fromCharCode(chunk[at] ?? 0);
        at += 1;
        if (byte !== "\n") this.#size += byte;
        else if (this.#size.trim() !== "") {
          this.#left = Number.parseInt(this.#size, 16);
          this.#size = "";
        } else this.#size = "";
        continue;
      }
      const part = chunk.subarray(at, at + this.#left);
      const same = part.equals(this.#expected.subarray(this.bytes, this.bytes + part.length));
      assert.ok(same, `the stream differs within ${part.length} bytes after ${this.bytes}`);
      this.bytes += part.length;
      this.#left -= part.length;
      at += part.length;
    }
  }
}

describe("a thousand readers that do not read", { skip: redisMissing(redisUrl) }, () => {
  let api: ApiHarness;
  let client: AppClient;
  let redis: RedisForTests;
  let bus: Bus;
  let server: RunningApi;
  let worker: { close(): Promise<void> };
  let gateway: RoleProcess;
  let folder: string;
  let port: number;
  let metricsPort: number;
  let app: AppAddress;
  const readers: StalledReader[] = [];

  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
    redis = await startRedis(redisUrl);
    bus = await openBus({ redisUrl: redis.url });
    folder = mkdtempSync(join(tmpdir(), "frontdesk-stalled-"));
    const shared = { sql: api.sql, bus, logger: silentLogger };
    const common = { ...appConfig, ...sessions, bindAddress: "127.0.0.1", databaseUrl: api.databaseUrl };
    const internalSecret = sharedSecrets.INTERNAL_SECRET;
    server = await startApi({ ...shared, config: { ...common, apiPort: 0, internalSecret } });
    worker = await startWorker({ ...shared, config: { ...common, ...workerMail, workerPort: 0 } });
    gateway = startRole("gateway/main.ts", {
      ...sharedSecrets,
      REDIS_URL: redis.url,
      API_URL: server.url,
      APP_DOMAIN: appConfig.appDomain,
      DATA_DIR: folder,
      GATEWAY_PORT: "0",
      METRICS_PORT: "0",
      MEDIA_THREADS: "1",
      TRANSPORT: bestTransport,
      // What readers cost, not the room that the collector takes for garbage: by default as much again, or none.
      NODE_OPTIONS: "--max-semi-space-size=2 --max-old-space-size=128",
    });
    const [, listening] = await gateway.until(/"url":"http:\/\/127\.0\.0\.1:(\d+)"[^\n]*"msg":"gateway listens"/);
    port = Number(listening);
    const [, told] = await gateway.until(/"port":(\d+)[^\n]*"msg":"metrics are served"/);
    metricsPort = Number(told);
    const { host } = await client.deploy(definition);
    app = { port, host, accessKey: client.accessKey };
  });
  after(async () => {
    for (const reader of readers) reader.close();
    await gateway?.stop("SIGKILL");
    await worker?.close();
    await server?.close();
    await bus?.close();
    await redis?.stop();
    await api?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const rssBytes = () => {
    const status = readFileSync(`/proc/${gateway.child.pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  };

  async function pausedStreams(): Promise<number> {
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return Number(/^frontdesk_run_streams_paused (\d+)$/m.exec(metrics)?.[1]);
  }

  async function wholeStream(runId: string): Promise<Reference> {
    const response = await askApp(app, "GET", `/v1/runs/${runId}/stream`);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return new Reference(Buffer.concat(chunks));
  }

  it("cost the gateway at most 64 MiB, hold up nobody, and get everything once they read", async (t) => {
    const input = { text: "x".repeat(fillerBytes) };
    const run = (await jsonOf(await askApp(app, "POST", "/v1/runs", { body: { input, background: true } }))).data;
    // What any first reader makes the process grow by is not the stalled ones' doing.
    await readUntil(run.id, "run.awaiting_input");
    const asking = await client.until(app.host, run.id, "awaiting_input");
    const rssBefore = rssBytes();

    for (let i = 0; i < stalled; i += 1) readers.push(new StalledReader(app, run.id));
    // On a busy machine the first are cut for standing so long before the last have come to stand.
    let standing = 0;
    let now = 0;
    do {
      now = await pausedStreams();
      standing = Math.max(standing, now);
    } while (standing < 0.95 * stalled && now >= standing - standingMin);
    assert.ok(standing >= standingMin, `${standing} stood at once`);
    let rssMax = rssBytes();
    setMaxListeners(2 * others, t.signal);
    const following = Array.from({ length: others }, () =>
      followRun(app, run.id, {
        isCut: () => false,
        signal: t.signal,
        onEvent: () => {
          rssMax = Math.max(rssMax, rssBytes());
        },
      }),
    );
    const responses = asking.input_requests.map(({ id }: { id: string }) => ({
      input_request_id: id,
      decision: "approve",
    }));
    const resumed = await client.call(app.host, "POST", `/v1/runs/${run.id}/resume`, { body: { responses } });
    assert.equal(resumed.status, 200);
    for (const seen of await Promise.all(following)) {
      assertWhole(seen);
      assert.equal(seen.at(-1)?.type, "run.succeeded");
    }
    rssMax = Math.max(rssMax, rssBytes());
    t.diagnostic(
      `RSS grew by ${((rssMax - rssBefore) / 1024 / 1024).toFixed(1)} MiB with ${standing} standing at once`,
    );

    const reference = await wholeStream(run.id);
    for (const reader of readers.slice(finishing)) reader.close();
    const connections = await Promise.all(readers.slice(0, finishing).map((reader) => reader.finish(reference)));
    t.diagnostic(`${reference.bytes} bytes each; cut and come back: ${connections.filter((n) => n > 1).length}`);
    assert.ok(rssMax - rssBefore <= rssGrowthBytesMax, `RSS grew by ${rssMax - rssBefore} bytes`);
  });

  /** Reads the stream up to an event of this type and leaves. */
  async function readUntil(runId: string, type: string): Promise<void> {
    const abort = new AbortController();
    let isSeen = false;
    await followRun(app, runId, {
      isCut: () => false,
      signal: abort.signal,
      onEvent: (event) => {
        if (event.type !== type) return;
        isSeen = true;
        abort.abort();
      },
    }).catch(() => undefined);
    assert.ok(isSeen);
  }
});
