/**
 * Callbacks of asynchronous invocations, sent by a real worker to a real TLS server: what they say, that
 * there is one attempt and no second, and what a kill in between leaves.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import https from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { silentLogger } from "#http/logger.ts";
import type { ResolvedAddress } from "#outbound/address_guard.ts";
import { createGuardedHttp, type GuardedHttp, type GuardedResponse } from "#outbound/guarded_http.ts";
import { createCallbackDelivery } from "#runs/callback_delivery.ts";
import { createEncryption } from "#store/encryption.ts";
import { type ApiHarness, appConfig, openApiHarness } from "#test/kit/api_harness.ts";
import { type AppClient, answering, approving, eventually, openAppClient } from "#test/kit/app_client.ts";
import { type RedisForTests, redisMissing, startRedis } from "#test/kit/redis_fixture.ts";
import { type RoleProcess, sharedSecrets, startRole } from "#test/kit/role_process.ts";
import { selfSigned } from "#test/kit/sockets/self_signed.ts";

const redisUrl = process.env.TEST_REDIS_URL;

interface Received {
  path: string;
  method: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Takes callbacks and answers them as it is told. */
class Receiver {
  readonly received: Received[] = [];
  /** Called with every request once its body is there; must answer, now or later. */
  answer: (response: ServerResponse, request: Received) => void = (response) => response.end("ok");
  readonly #server: https.Server;
  readonly #arrivals = new Set<() => void>();

  constructor(identity: { cert: string; key: string }) {
    this.#server = https.createServer(identity, (request, response) => void this.#take(request, response));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const one = { path: request.url ?? "", method: request.method ?? "", headers: request.headers, body };
    this.received.push(one);
    this.answer(response, one);
    for (const arrived of this.#arrivals) arrived();
  }

  async listen(): Promise<void> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
  }

  url(path: string): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  at(path: string): Received[] {
    return this.received.filter((one) => one.path === path);
  }

  /** Resolves once so many requests have come to paths that begin so. */
  async until(count: number, prefix: string): Promise<Received[]> {
    for (;;) {
      const matching = this.received.filter(({ path }) => path.startsWith(prefix));
      if (matching.length >= count) return matching;
      await new Promise<void>((resolve) => {
        this.#arrivals.add(resolve);
      });
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

describe("callbacks, as they are sent", { skip: redisMissing(redisUrl) }, () => {
  let api: ApiHarness;
  let client: AppClient;
  let redis: RedisForTests;
  let receiver: Receiver;
  let folder: string;
  let worker: RoleProcess | undefined;
  let environment: Record<string, string>;
  let host: string;

  before(async () => {
    api = await openApiHarness(silentLogger, {
      allowPrivateAddresses: true,
      encryptionKey: sharedSecrets.ENCRYPTION_KEY,
    });
    client = await openAppClient(api);
    redis = await startRedis(redisUrl);
    const identity = selfSigned();
    folder = mkdtempSync(join(tmpdir(), "frontdesk-callbacks-"));
    writeFileSync(join(folder, "cert.pem"), identity.cert);
    environment = {
      ...sharedSecrets,
      DATABASE_URL: api.databaseUrl,
      REDIS_URL: redis.url,
      DATA_DIR: folder,
      WORKER_PORT: "0",
      ALLOW_PRIVATE_ADDRESSES: "true",
      NODE_EXTRA_CA_CERTS: join(folder, "cert.pem"),
    };
    receiver = new Receiver(identity);
    await receiver.listen();
    await startWorkerRole();
    ({ host } = await client.deploy(answering));
  });
  afterEach(() => {
    receiver.answer = (response) => response.end("ok");
  });
  after(async () => {
    await worker?.stop("SIGKILL");
    await receiver.close();
    await redis.stop();
    await api.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function startWorkerRole(): Promise<void> {
    worker = startRole("api/process/worker_main.ts", environment);
    await worker.until(/"msg":"worker runs"/);
  }

  async function invoke(at: string, callbacks: object[], question = "Late check-out?"): Promise<string> {
    const { status, body } = await client.call(at, "POST", "/", {
      body: { input: { question }, execution_mode: "async", callbacks },
    });
    assert.equal(status, 202, JSON.stringify(body));
    assert.deepEqual(Object.keys(body).sort(), ["id", "status"]);
    return body.id;
  }

  const outcomesOf = (runId: string) => api.sql<{ attempted: boolean; outcome: string | null }[]>`
    select attempted_at is not null as attempted, outcome from callback where run_id = ${runId} order by position`;

  /** The run's job once more, as after a crash of the queue: until somebody has looked at it. */
  async function lookAgain(runId: string): Promise<void> {
    const key = `callbacks:${runId}`;
    await api.sql`
      select graphile_worker.add_job('deliver_callbacks', json_build_object('run_id', ${runId}::uuid), job_key := ${key})`;
    const left = () => api.sql`select 1 from graphile_worker.jobs where key = ${key}`;
    await eventually(async () => (await left()).length === 0, "the job is done");
  }

  it("reach private addresses only from a worker that says so when it starts", () => {
    assert.match(worker?.said() ?? "", /"level":40[^\n]*ALLOW_PRIVATE_ADDRESSES is true/);
  });

  it("say what the interface document says, byte for byte", async () => {
    const metadata = { z: "first", a: [1, { deep: "ünï" }], empty: {} };
    const id = await invoke(host, [
      { url: receiver.url("/exact?of=it"), auth: { type: "bearer", token: "hook-token" }, metadata },
      { url: receiver.url("/plain") },
    ]);
    await Promise.all([receiver.until(1, "/exact"), receiver.until(1, "/plain")]);
    const run = await client.until(host, id, "succeeded");
    const [exact] = receiver.at("/exact?of=it");
    const [plain] = receiver.at("/plain");
    assert.ok(exact && plain);
    const { ended_at } = run;
    assert.match(ended_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    const told = `"id":"${id}","status":"succeeded","timestamp":"${ended_at}","output":{"answer":"Late check-out?"}`;
    assert.equal(exact.body, `{${told},"metadata":{"z":"first","a":[1,{"deep":"ünï"}],"empty":{}}}`);
    assert.equal(plain.body, `{${told}}`);
    assert.equal(exact.method, "POST");
    assert.equal(exact.headers["content-type"], "application/json");
    assert.match(exact.headers["user-agent"] ?? "", /^Frontdesk/);
    assert.equal(exact.headers.authorization, "Bearer hook-token");
    assert.match(String(exact.headers.traceparent), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    assert.equal(plain.headers.authorization, undefined);
  });

  it("tell of a run that failed, and of one that was canceled", async () => {
    const failing = structuredClone(answering);
    Object.assign(failing.nodes[1]?.config ?? {}, { options: { fail_on: [1] } });
    const failed = await invoke((await client.deploy(failing)).host, [{ url: receiver.url("/failed") }]);
    const [told] = await receiver.until(1, "/failed");
    const body = JSON.parse(told?.body ?? "");
    assert.deepEqual([body.id, body.status, body.output.error.node_id], [failed, "failed", "ask"]);

    const waiting = (await client.deploy(approving)).host;
    const id = await invoke(waiting, [{ url: receiver.url("/canceled"), metadata: {} }]);
    await client.until(waiting, id, "awaiting_input");
    const { body: canceled } = await client.call(waiting, "POST", `/v1/runs/${id}/cancel`, { body: {} });
    const [end] = await receiver.until(1, "/canceled");
    const timestamp = canceled.data.ended_at;
    assert.deepEqual(JSON.parse(end?.body ?? ""), { id, status: "failed", timestamp, metadata: {} });
  });

  it("go out side by side, follow no redirect, and are not repeated whatever is answered", async () => {
    const held: (() => void)[] = [];
    receiver.answer = (response, { path }) => {
      held.push(() => {
        if (path === "/five/1") response.writeHead(302, { location: receiver.url("/elsewhere") }).end();
        else if (path === "/five/2") response.writeHead(500).end("no");
        else if (path === "/five/3") response.destroy();
        else response.end("x".repeat(200_000));
      });
      // Nobody is answered before all have asked.
      if (held.length === 5) for (const release of held) release();
    };
    const id = await invoke(
      host,
      [1, 2, 3, 4, 5].map((n) => ({ url: receiver.url(`/five/${n}`) })),
    );
    await receiver.until(5, "/five/");
    const noted = async () => (await outcomesOf(id)).every(({ outcome }) => outcome !== null);
    await eventually(noted, "every attempt is over");
    await lookAgain(id);
    assert.deepEqual(
      (await outcomesOf(id)).map(({ outcome }) => outcome),
      ["sent: 302", "sent: 500", "failed", "sent: 200", "sent: 200"],
    );
    assert.equal(receiver.received.filter(({ path }) => path.startsWith("/five/")).length, 5);
    assert.deepEqual(receiver.at("/elsewhere"), []);
  });

  it("hold up neither each other nor runs while nobody answers them", async () => {
    const silent: ServerResponse[] = [];
    receiver.answer = (response) => void silent.push(response);
    await Promise.all(Array.from({ length: 12 }, (_, n) => invoke(host, [{ url: receiver.url(`/silent/${n}`) }])));
    await receiver.until(12, "/silent/");
    const id = await invoke(host, []);
    await client.until(host, id, "succeeded");
    assert.equal(silent.filter(({ writableEnded, destroyed }) => !writableEnded && !destroyed).length, 12);
    for (const response of silent) response.end();
  });

  it("are not sent again when the worker is killed after it sent them", async () => {
    let asked: () => void = () => undefined;
    const arrived = new Promise<void>((resolve) => {
      asked = resolve;
    });
    receiver.answer = () => asked();
    const id = await invoke(host, [{ url: receiver.url("/unanswered") }]);
    await arrived;
    await worker?.stop("SIGKILL");
    await startWorkerRole();
    await lookAgain(id);
    assert.equal(receiver.at("/unanswered").length, 1);
    assert.deepEqual([...(await outcomesOf(id))], [{ attempted: true, outcome: null }]);
  });

  it("are not sent when the worker is killed between the claim and the request", async () => {
    let connections = 0;
    let dialled: () => void = () => undefined;
    const dialling = new Promise<void>((resolve) => {
      dialled = resolve;
    });
    // Takes connections and says nothing: the client waits for TLS, with its request unsent.
    const mute = createTcpServer((socket) => {
      connections += 1;
      socket.on("error", () => undefined);
      dialled();
    });
    await once(mute.listen(0, "127.0.0.1"), "listening");
    const id = await invoke(host, [{ url: `https://127.0.0.1:${(mute.address() as AddressInfo).port}/` }]);
    await dialling;
    assert.deepEqual([...(await outcomesOf(id))], [{ attempted: true, outcome: null }]);
    await worker?.stop("SIGKILL");
    await startWorkerRole();
    await lookAgain(id);
    assert.equal(connections, 1);
    mute.close();
  });

  it("are sent by another worker when theirs is killed before it claimed them", async () => {
    const lock = 4_711;
    await api.sql.unsafe(`
      create function hold_claim() returns trigger language plpgsql as
        'begin perform pg_advisory_xact_lock(${lock}); return new; end';
      create trigger hold_claim before update on callback for each row
        when (old.attempted_at is null) execute function hold_claim()`);
    const holder = await api.sql.reserve();
    await holder`select pg_advisory_lock(${lock})`;
    const id = await invoke(host, [{ url: receiver.url("/rescued") }]);
    const claiming = () => api.sql<{ pid: number }[]>`
      select pid from pg_locks where locktype = 'advisory' and objid = ${lock} and not granted`;
    await eventually(async () => (await claiming()).length === 1, "a worker is about to claim");
    await worker?.stop("SIGKILL");
    await api.sql`select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = ${lock} and not granted`;
    await eventually(async () => (await claiming()).length === 0, "its claim is undone");
    await holder`select pg_advisory_unlock(${lock})`;
    holder.release();
    await api.sql.unsafe("drop trigger hold_claim on callback; drop function hold_claim()");
    assert.deepEqual([...(await outcomesOf(id))], [{ attempted: false, outcome: null }]);
    // As if some time had passed since the dead worker took the job.
    await api.sql`
      update graphile_worker._private_jobs set locked_at = now() - interval '1 minute' where locked_at is not null`;
    await startWorkerRole();
    await receiver.until(1, "/rescued");
    await lookAgain(id);
    assert.equal(receiver.at("/rescued").length, 1);
  });
});

describe("callbacks, as they are asked for", () => {
  let api: ApiHarness;
  let client: AppClient;
  let host: string;
  before(async () => {
    api = await openApiHarness();
    client = await openAppClient(api);
    ({ host } = await client.deploy(answering));
  });
  after(() => api.close());

  const invoke = (body: object) => client.call(host, "POST", "/", { body: { input: { question: "x" }, ...body } });
  const url = "https://93.184.216.34/hook";

  it("are refused with the field that is wrong, and no run is made", async () => {
    const refusals: [object, RegExp][] = [
      [{ callbacks: [{ url }] }, /^callbacks$/],
      [{ execution_mode: "sync", callbacks: [{ url }] }, /^callbacks$/],
      [{ execution_mode: "later" }, /^execution_mode$/],
      [{ execution_mode: "async", callbacks: Array.from({ length: 6 }, () => ({ url })) }, /^callbacks$/],
      [{ execution_mode: "async", callbacks: url }, /^callbacks$/],
      [{ execution_mode: "async", callbacks: [{ url: "http://93.184.216.34/" }] }, /^callbacks\.0\.url$/],
      [{ execution_mode: "async", callbacks: [{ url }, { url: "hook" }] }, /^callbacks\.1\.url$/],
      [{ execution_mode: "async", callbacks: [{}] }, /^callbacks\.0\.url$/],
      [{ execution_mode: "async", callbacks: [{ url, retries: 3 }] }, /^callbacks\.0\.retries$/],
      [{ execution_mode: "async", callbacks: [{ url, metadata: "x" }] }, /^callbacks\.0\.metadata$/],
      [
        { execution_mode: "async", callbacks: [{ url, auth: { type: "basic", token: "x" } }] },
        /^callbacks\.0\.auth\.type$/,
      ],
      [{ execution_mode: "async", callbacks: [{ url, auth: { type: "bearer" } }] }, /^callbacks\.0\.auth\.token$/],
      [
        { execution_mode: "async", callbacks: [{ url, auth: { type: "bearer", token: "a\r\nb: c" } }] },
        /^callbacks\.0\.auth\.token$/,
      ],
      ...[
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "[::1]",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::a00:1]",
        "localhost",
        "user:pass@93.184.216.34",
        "no-such-name.invalid",
      ].map((name): [object, RegExp] => [
        { execution_mode: "async", callbacks: [{ url: `https://${name}/` }] },
        /^callbacks\.0\.url$/,
      ]),
    ];
    for (const [body, field] of refusals) {
      const { status, body: answer } = await invoke(body);
      assert.equal(status, 400, JSON.stringify(body));
      assert.equal(answer.error.code, "bad_request");
      assert.ok(
        Object.keys(answer.error.details).every((name) => field.test(name)),
        JSON.stringify(answer.error.details),
      );
    }
    assert.equal((await client.call(host, "GET", "/v1/runs")).body.pagination.total_count, 0);
  });

  it("are kept with their tokens sealed", async () => {
    const auth = { type: "bearer", token: "the-hook-token" };
    assert.equal((await invoke({ execution_mode: "async", callbacks: [{ url, auth }] })).status, 202);
    const [row] = await api.sql<{ token_encrypted: Buffer }[]>`select token_encrypted from callback`;
    assert.ok(row && !row.token_encrypted.includes("the-hook-token"));
  });

  const deliveryDeps = () => ({
    sql: api.sql,
    encryption: createEncryption(appConfig.encryptionKey),
    logger: silentLogger,
    now: api.now,
  });

  async function endedRun(): Promise<string> {
    const { body } = await invoke({ execution_mode: "async", callbacks: [{ url }] });
    await client.call(host, "POST", `/v1/runs/${body.id}/cancel`, { body: {} });
    return body.id;
  }

  it("come back later, unclaimed, while a worker sends as many as it may", async () => {
    const [one, two] = [await endedRun(), await endedRun()];
    const release: (() => void)[] = [];
    const send = () =>
      new Promise<GuardedResponse>((resolve) => {
        release.push(() => resolve({ status: 204, headers: {}, body: Buffer.of(), truncated: false }));
      });
    const http = { send } as unknown as GuardedHttp;
    const delivery = createCallbackDelivery({ ...deliveryDeps(), http, sendingMax: 1 });
    await delivery.deliver(one);
    await delivery.deliver(two);
    assert.equal(release.length, 1);
    const [job] = await api.sql<{ later: boolean }[]>`
      select run_at > now() as later from graphile_worker.jobs where key = ${`callbacks:${two}`}`;
    assert.equal(job?.later, true);
    release[0]?.();
    await delivery.close();
    await delivery.deliver(two);
    release[1]?.();
    await delivery.close();
    const outcomes = await api.sql<{ outcome: string }[]>`
      select outcome from callback where run_id in (${one}, ${two})`;
    assert.deepEqual([...outcomes], [{ outcome: "sent: 204" }, { outcome: "sent: 204" }]);
  });

  it("are not dialled when the name has come to lead inside since it was checked", async () => {
    const id = await endedRun();
    await api.sql`update callback set url = 'https://rebound.example/hook' where run_id = ${id}`;
    const asked: string[] = [];
    const resolve = async (hostname: string): Promise<ResolvedAddress[]> => {
      asked.push(hostname);
      return [{ address: "127.0.0.1", family: 4 }];
    };
    const http = createGuardedHttp({ allowPrivateAddresses: false, resolve });
    const delivery = createCallbackDelivery({ ...deliveryDeps(), http });
    await delivery.deliver(id);
    await delivery.close();
    await http.close();
    assert.deepEqual(asked, ["rebound.example"]);
    const rows = await api.sql<{ outcome: string }[]>`select outcome from callback where run_id = ${id}`;
    assert.deepEqual([...rows], [{ outcome: "refused" }]);
  });
});
