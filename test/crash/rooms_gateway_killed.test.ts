/**
 * A gateway that is killed in mid-call: its processes in the rooms leave by themselves, or vanish with
 * it; either way no ghost is left and the caller is sent home, within a minute.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { dispose, RoomEvent } from "@livekit/rtc-node";
import { startApi } from "#api/process/server.ts";
import { startWorker } from "#api/worker.ts";
import { openBus } from "#bus/open_bus.ts";
import { silentLogger } from "#http/logger.ts";
import { type LiveKitServer, startLiveKitServer } from "#standalone/livekit_server.ts";
import { type ApiHarness, appConfig, openApiHarness, workerMail } from "#test/kit/api_harness.ts";
import { type RoleProcess, startRole } from "#test/kit/role_process.ts";
import { RoomCaller } from "#test/kit/rooms/room_caller.ts";
import { noLiveKit } from "#test/kit/rooms/room_house.ts";

const redisUrl = process.env.TEST_REDIS_URL;
const skip = noLiveKit || (redisUrl ? false : "no TEST_REDIS_URL (no redis-server on this machine)");
const withinMs = 60_000;

describe("a gateway killed in mid-call", { skip }, () => {
  let liveKit: LiveKitServer | undefined;
  let harness: ApiHarness;
  let dataDir: string;
  let apiUrl: string;
  const closers: (() => Promise<unknown>)[] = [];

  before(async () => {
    liveKit = await startLiveKitServer();
    if (!liveKit) throw new Error("Expected a livekit-server on the PATH");
    harness = await openApiHarness();
    dataDir = await mkdtemp(join(tmpdir(), "frontdesk-killed-"));
    const bus = await openBus({ redisUrl });
    const { sql, databaseUrl } = harness;
    const config = { ...appConfig, ...workerMail, bindAddress: "127.0.0.1", databaseUrl, redisUrl, liveKit };
    const api = await startApi({ config: { ...config, apiPort: 0 }, sql, bus, logger: silentLogger });
    const worker = await startWorker({ config: { ...config, workerPort: 0 }, sql, bus, logger: silentLogger });
    apiUrl = api.url;
    closers.push(worker.close, api.close, bus.close);
  });
  after(async () => {
    for (const close of closers) await close();
    await liveKit?.stop();
    await harness?.close();
    await rm(dataDir, { recursive: true, force: true });
    await dispose();
  });

  async function startGateway(id: string): Promise<RoleProcess> {
    const gateway = startRole("gateway/main.ts", {
      GATEWAY_ID: id,
      GATEWAY_PORT: "0",
      API_URL: apiUrl,
      REDIS_URL: redisUrl ?? "",
      INTERNAL_SECRET: appConfig.internalSecret,
      DATA_DIR: join(dataDir, id),
      MEDIA_THREADS: "1",
      CALL_SLOTS: "1",
    });
    await gateway.until(/"msg":"gateway listens"/);
    return gateway;
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test reads bodies as a client in JavaScript does
  const request = async (method: string, path: string, body?: object): Promise<any> => {
    const headers = { authorization: `Bearer ${harness.owner.token}`, "content-type": "application/json" };
    const response = await fetch(`${apiUrl}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return response.json();
  };

  it("leaves no ghost, whether its processes in rooms are killed with it or not, and callers are sent home", async () => {
    // One slot each: each takes one of the two calls.
    const [alone, whole] = [await startGateway("alone"), await startGateway("whole")];
    const sessions = [await openSession(), await openSession()];
    const callers = await Promise.all(sessions.map((session) => RoomCaller.join(session, { microphone: false })));
    await Promise.all(callers.map((caller) => caller.message("agent_speech_done")));
    const left = new Set<RoomCaller>();
    for (const caller of callers) caller.room.on(RoomEvent.ParticipantDisconnected, () => left.add(caller));
    const killedAtMs = performance.now();
    const family = familyOf(whole.child.pid ?? 0);
    assert.ok(family.length > 1, "a gateway with a call in a room has a process in it");
    for (const pid of [alone.child.pid ?? 0, ...family]) process.kill(pid, "SIGKILL");

    // Whoever is sent home first is not told any more that the agent left.
    await Promise.all(
      callers.map((caller) => caller.until("no ghost", () => left.has(caller) || caller.isDisconnected)),
    );
    await Promise.all(callers.map((caller) => caller.until("to be sent home", () => caller.isDisconnected)));
    assert.ok(performance.now() - killedAtMs < withinMs, "within a minute");
    for (const session of sessions) {
      const { data } = await request("GET", `/v1/agents/voice/calls/${session.room_name.slice(-36)}`);
      assert.deepEqual([data.state, data.end_reason, data.error_code], ["ended", "error", "gateway_lost"]);
    }
    await Promise.all(callers.map((caller) => caller.leave()));
  });

  const openSession = () =>
    request("POST", "/v1/agents/voice/sessions", {
      config: { welcome_message: "Hello.", tts: { provider: "flite" } },
    });
});

/** A process and its descendants. */
function familyOf(pid: number): number[] {
  const parents = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [[Number(name), parentOf(name)]] : []));
  const family = [pid];
  for (const one of family) family.push(...parents.flatMap(([child = 0, parent]) => (parent === one ? [child] : [])));
  return family;
}

/** The fourth field of `stat`: the second one, in parentheses, may hold anything. */
function parentOf(pid: string): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return 0; // It has ended meanwhile.
  }
}
