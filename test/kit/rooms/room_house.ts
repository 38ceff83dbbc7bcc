/**
 * Everything that a call in a room needs, in this process: api and worker on a database of their own,
 * gateway with media threads, and a LiveKit server, where the machine has one.
 */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApi } from "#api/process/server.ts";
import { startWorker } from "#api/worker.ts";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { silentLogger } from "#http/logger.ts";
import { startWorkerPool } from "#media/threads/worker_pool.ts";
import { type LiveKitServer, startLiveKitServer } from "#standalone/livekit_server.ts";
import { freePort } from "#standalone/ports.ts";
import type { Sql } from "#store/sql.ts";
import { appConfig, openApiHarness, workerMail } from "../api_harness.ts";
import { silentLog } from "../gateway_fixture.ts";
import { patienceMs } from "../patience.ts";
import type { RoomTicket } from "./room_caller.ts";

export interface RoomHouse {
  gateway: Gateway;
  liveKit: LiveKitServer;
  sql: Sql;
  /** A request to the public port. */
  call(method: string, path: string, body?: unknown): Promise<{ status: number; body: Body }>;
  createAgent(config: VoiceAgentConfig): Promise<string>;
  connect(provider: string, access: { secret: string; baseUrl: string }): Promise<string>;
  /** A room with an agent, or with a new one of this configuration. */
  openRoom(agent: string | VoiceAgentConfig): Promise<RoomTicket & { room_name: string; callId: string }>;
  /** The call's record once `found` is true of it. */
  record(callId: string, found: (call: CallRecord) => boolean): Promise<CallRecord>;
  close(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads bodies as a client in JavaScript does
type Body = any;
type CallRecord = Body;

/** The reason to skip tests of rooms, or false where the machine has a LiveKit server. */
export const noLiveKit =
  spawnSync("livekit-server", ["--version"]).error === undefined ? false : "no livekit-server on the PATH";

/** What a test of more than rooms needs. */
export interface RoomHouseOptions {
  /** Tools and vendors may be on this machine. */
  allowPrivateAddresses?: boolean;
  /** False: no LiveKit server, and calls over WebSockets alone. */
  withRooms?: boolean;
}

export async function openRoomHouse(
  config: Partial<GatewayConfig> = {},
  { allowPrivateAddresses = false, withRooms = true }: RoomHouseOptions = {},
): Promise<RoomHouse> {
  const port = await freePort();
  const webhookUrl = `http://127.0.0.1:${port}/v1/agents/voice/rooms/webhook`;
  const liveKit = withRooms ? await startLiveKitServer({ webhookUrl }) : undefined;
  if (withRooms && !liveKit) throw new Error("Expected a livekit-server on the PATH");
  const harness = await openApiHarness(undefined, { liveKit }).catch(async (error: unknown) => {
    await liveKit?.stop();
    throw error;
  });
  const { bus, sql, owner, projectId } = harness;
  const dataDir = await mkdtemp(join(tmpdir(), "frontdesk-rooms-"));
  const { databaseUrl } = harness;
  const shared = { ...appConfig, ...workerMail, bindAddress: "127.0.0.1", databaseUrl, liveKit, allowPrivateAddresses };
  const api = await startApi({ config: { ...shared, apiPort: 0 }, sql, bus, logger: silentLogger });
  const worker = await startWorker({ config: { ...shared, workerPort: 0 }, sql, bus, logger: silentLogger });
  const media = await startWorkerPool({ threads: 1, world: { allowPrivateAddresses } });
  const gateway = await startGateway({
    config: {
      gatewayId: "rooms",
      bindAddress: "127.0.0.1",
      port,
      apiUrl: api.url,
      publicUrl: undefined,
      gatewayPublicUrl: undefined,
      appDomain: "apps.localhost",
      callSlots: 4,
      mediaThreads: 1,
      transport: "ws",
      drainTimeoutS: 120,
      dataDir,
      redisUrl: undefined,
      ...(liveKit && { liveKitUrl: liveKit.url }),
      internalSecret: appConfig.internalSecret,
      ...config,
    },
    bus,
    media,
    logger: silentLog,
  });
  const call: RoomHouse["call"] = async (method, path, body) => {
    const response = await fetch(`${gateway.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${owner.token}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
  };

  const createAgent = async (config: VoiceAgentConfig): Promise<string> => {
    const made = await call("POST", "/v1/agents/voice/agents", { name: "Desk", project_id: projectId, config });
    if (made.status !== 201) throw new Error(`Expected an agent, got ${JSON.stringify(made.body)}`);
    return made.body.data.id;
  };

  return {
    gateway,
    get liveKit() {
      if (!liveKit) throw new Error("Expected a house with rooms");
      return liveKit;
    },
    sql,
    call,
    createAgent,
    async connect(provider, { secret, baseUrl }) {
      const connection = { name: provider, project_id: projectId, provider, secret, base_url: baseUrl };
      const made = await call("POST", "/v1/connections", connection);
      if (made.status !== 201) throw new Error(`Expected a connection, got ${JSON.stringify(made.body)}`);
      return made.body.data.id;
    },
    async openRoom(agent) {
      const agentId = typeof agent === "string" ? agent : await createAgent(agent);
      const room = await call("POST", `/v1/agents/voice/agents/${agentId}/rooms`, {});
      if (room.status !== 201) throw new Error(`Expected a room, got ${room.status} ${JSON.stringify(room.body)}`);
      return { ...room.body, callId: room.body.room_name.slice(-36) };
    },
    async record(callId, found) {
      const giveUpAtMs = Date.now() + patienceMs;
      for (;;) {
        const { body } = await call("GET", `/v1/agents/voice/calls/${callId}`);
        if (body.data && found(body.data)) return body.data;
        if (Date.now() > giveUpAtMs) throw new Error(`Expected another record than ${JSON.stringify(body)}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    async close() {
      await gateway.close();
      await media.close();
      await worker.close();
      await api.close();
      await liveKit?.stop();
      await harness.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
