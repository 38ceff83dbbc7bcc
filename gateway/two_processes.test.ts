import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Bus } from "#bus/bus.ts";
import { createRedisBus } from "#bus/redis_bus.ts";
import type { CloseCallRequest, ReservedCall } from "#contracts/internal_calls.ts";
import { CallClient, eventually, FakeApi, inBatches } from "#test/kit/gateway_fixture.ts";
import { type RedisForTests, redisMissing, startRedis } from "#test/kit/redis_fixture.ts";
import { roleArguments } from "#test/kit/role_process.ts";
import { bestTransport } from "#test/kit/transports.ts";

const internalSecret = "internal-secret-of-this-test";

/** The seam over HTTP, as a gateway in a process of its own needs it. */
async function serveApi(api: FakeApi): Promise<{ server: Server; url: string }> {
  const server = createServer(async (req, res) => {
    let body = "";
    for await (const chunk of req) body += String(chunk);
    const answer = (status: number, json?: unknown) => {
      res.writeHead(status, { "content-type": "application/json" });
      res.end(json === undefined ? undefined : JSON.stringify(json));
    };
    if (req.url === "/readyz") return answer(200, {});
    if (req.headers.authorization !== `Bearer ${internalSecret}`) return answer(401, {});
    const [, , , callId = "", action] = (req.url ?? "").split("/");
    if (callId === "heartbeat") return answer(200, { closed: [] });
    if (action === "close") {
      await api.closeCall(callId, JSON.parse(body) as CloseCallRequest);
      return answer(204);
    }
    if (action !== "open") return answer(404, {});
    const opened = await api.openCall(callId);
    return opened.kind === "opened" ? answer(200, opened.call) : answer(409, {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe("two gateway processes on Redis, 8 slots each", { skip: redisMissing(process.env.TEST_REDIS_URL) }, () => {
  const api = new FakeApi();
  const processes: { child: ChildProcess; url: string; metricsUrl: string }[] = [];
  let dataDir: string;
  let redis: RedisForTests;
  let bus: Bus;
  let seam: Awaited<ReturnType<typeof serveApi>>;

  async function startProcess(transport: string): Promise<{ child: ChildProcess; url: string; metricsUrl: string }> {
    const child = spawn(process.execPath, roleArguments("gateway/main.ts"), {
      env: {
        PATH: process.env.PATH,
        GATEWAY_PORT: "0",
        API_URL: seam.url,
        REDIS_URL: redis.url,
        INTERNAL_SECRET: internalSecret,
        CALL_SLOTS: "8",
        MEDIA_THREADS: "1",
        TRANSPORT: transport,
        DATA_DIR: dataDir,
        METRICS_PORT: "0",
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.on("data", (data: Buffer) => {
      output += data.toString();
    });
    const listens = () => /"url":"(http:[^"]+)"/.exec(output)?.[1];
    const metricsPort = () => /"port":(\d+)[^\n]*"msg":"metrics are served"/.exec(output)?.[1];
    await eventually(() => metricsPort() !== undefined || child.exitCode !== null, "the gateway listens");
    const metricsUrl = `http://127.0.0.1:${metricsPort()}/metrics`;
    return { child, url: listens() ?? assert.fail(output), metricsUrl };
  }

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "frontdesk-processes-"));
    redis = await startRedis(process.env.TEST_REDIS_URL);
    bus = await createRedisBus(redis.url);
    seam = await serveApi(api);
    processes.push(...(await Promise.all([startProcess(bestTransport), startProcess("ws")])));
  });
  after(async () => {
    for (const { child } of processes) if (child.exitCode === null) child.kill("SIGKILL");
    await bus?.close();
    await redis?.stop();
    seam?.server.closeAllConnections();
    seam?.server.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  /** A reservation, and its path at any gateway. */
  async function reserve(): Promise<string> {
    const call_id = randomUUID();
    const secret = randomBytes(32).toString("base64url");
    const reservation: ReservedCall = {
      call_id,
      secret_sha256: createHash("sha256").update(secret).digest("hex"),
      expires_at: new Date(Date.now() + 120_000).toISOString(),
      allowed_origins: [],
      state: "reserved",
    };
    api.calls.set(call_id, reservation);
    await bus.putReservation(reservation);
    return `/v1/voice/calls/${call_id}/${secret}`;
  }
  const at = (index: number, path: string) => {
    const one = processes[index % processes.length] ?? assert.fail("a gateway runs");
    return one.url.replace("http:", "ws:") + path;
  };
  const slotsInUse = async () => {
    const figures = await Promise.all(processes.map(async ({ metricsUrl }) => (await fetch(metricsUrl)).text()));
    return figures.reduce((sum, text) => sum + Number(/^frontdesk_call_slots_in_use (\d+)$/m.exec(text)?.[1]), 0);
  };
  const untilFree = async () => {
    while ((await slotsInUse()) > 0);
  };

  it("admit exactly 16 of 1,000 racing connects, and every refused reservation afterwards", async () => {
    const paths = await inBatches(1000, reserve);
    const results = await Promise.all(paths.map((path, index) => CallClient.connect(at(index, path))));
    const admitted = results.filter((result) => result instanceof CallClient);
    assert.equal(admitted.length, 16);
    assert.equal(await slotsInUse(), 16);
    for (const result of results) {
      if (!(result instanceof CallClient)) assert.deepEqual([result.status, result.body], [503, '{"code":"capacity"}']);
    }
    for (const client of admitted) client.ws.close();
    await untilFree();
    const refused = paths.filter((_, index) => !(results[index] instanceof CallClient));
    for (let from = 0; from < refused.length; from += 16) {
      const batch = refused.slice(from, from + 16);
      const clients = await Promise.all(batch.map((path, index) => CallClient.call(at(index + 1, path))));
      for (const client of clients) client.ws.close();
      await untilFree();
    }
    assert.equal(api.opens, 1000);
  });

  it("make one call of one reservation raced by 50 sockets", async () => {
    const opensBefore = api.opens;
    const path = await reserve();
    const results = await Promise.all(Array.from({ length: 50 }, (_, index) => CallClient.connect(at(index, path))));
    const admitted = results.filter((result) => result instanceof CallClient);
    assert.equal(admitted.length, 1);
    assert.equal(api.opens - opensBefore, 1);
    for (const client of admitted) client.ws.close();
    await untilFree();
  });

  it("drain on SIGTERM and exit with 0", async () => {
    for (const { child } of processes) {
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      assert.deepEqual(await exited, [0, null]);
    }
  });
});
