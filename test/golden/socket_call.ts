/**
 * Leads golden calls over real sockets to a real gateway with real media threads; only the api is
 * in memory.
 */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocket } from "ws";
import { createMemoryBus } from "#bus/memory_bus.ts";
import { completeConfig, type VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { type SentMessage, type ServerMessageType, voiceProtocol } from "#contracts/voice_protocol.ts";
import type { OpenResult } from "#gateway/api_client.ts";
import { startGateway } from "#gateway/gateway.ts";
import { startWorkerPool } from "#media/threads/worker_pool.ts";
import { defaultProviders } from "#providers/catalogue.ts";
import { FakeApi, silentLog } from "#test/kit/gateway_fixture.ts";
import { voiceSample } from "#test/kit/session_harness.ts";
import { type CallDriver, type GoldenCall, type Line, leadCall } from "./golden_call.ts";

const frameMs = 20;
const frameSamples = 320;
/** Nothing in a golden call takes this long. */
const limitMs = 30_000;

export interface GoldenGateway {
  /** Leads one call to its end. */
  lead(call: GoldenCall): Promise<{ lines: Line[]; close: { code: number; reason: string } }>;
  slotsInUse(): number;
  stop(): Promise<void>;
}

class GoldenApi extends FakeApi {
  readonly agents = new Map<string, VoiceAgentConfig>();

  override async openCall(callId: string): Promise<OpenResult> {
    const result = await super.openCall(callId);
    if (result.kind === "opened") result.call.config = completeConfig(this.agents.get(callId) ?? {}, defaultProviders);
    return result;
  }
}

export async function startGoldenGateway(transport: "uws" | "ws"): Promise<GoldenGateway> {
  const dataDir = await mkdtemp(join(tmpdir(), "frontdesk-golden-"));
  const bus = createMemoryBus();
  const media = await startWorkerPool({ threads: 1 });
  const api = new GoldenApi();
  const config = {
    gatewayId: "golden",
    bindAddress: "127.0.0.1",
    port: 0,
    apiUrl: "http://127.0.0.1:9",
    publicUrl: undefined,
    gatewayPublicUrl: undefined,
    appDomain: "apps.localhost",
    callSlots: 16,
    mediaThreads: 1,
    transport,
    drainTimeoutS: 1,
    dataDir,
    redisUrl: undefined,
    internalSecret: "secret",
  } as const;
  const gateway = await startGateway({ config, bus, media, logger: silentLog, api });

  return {
    async lead(call) {
      const callId = randomUUID();
      const secret = randomBytes(32).toString("base64url");
      const reservation = {
        call_id: callId,
        secret_sha256: createHash("sha256").update(secret).digest("hex"),
        expires_at: new Date(Date.now() + 120_000).toISOString(),
        allowed_origins: [],
        state: "reserved" as const,
      };
      api.agents.set(callId, call.agent);
      api.calls.set(callId, reservation);
      await bus.putReservation(reservation);
      const caller = new SocketCaller(`ws://127.0.0.1:${gateway.port}/v1/voice/calls/${callId}/${secret}`);
      await leadCall(call.caller, caller);
      return { lines: caller.lines, close: await caller.closed };
    },
    slotsInUse: () => gateway.slotsInUse(),
    async stop() {
      await gateway.close();
      await media.close();
      await bus.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A caller in real time: a frame each 20 ms by the clock, marks echoed when their audio has been played. */
export class SocketCaller implements CallDriver {
  readonly lines: Line[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #socket: WebSocket;
  readonly #opened: Promise<void>;
  #startedAtMs = 0;
  #framesSent = 0;
  #speaks = false;
  #playedUntilMs = 0;
  #marks: { name: string; dueMs: number }[] = [];

  constructor(url: string) {
    this.#socket = new WebSocket(url, voiceProtocol, { perMessageDeflate: false });
    this.#socket.on("message", (data: Buffer, isBinary) => {
      if (isBinary) this.#play(data);
      else this.#take(JSON.parse(data.toString()) as SentMessage);
    });
    this.#opened = new Promise((resolve, reject) => {
      this.#socket.once("open", () => {
        this.#startedAtMs = performance.now();
        resolve();
      });
      this.#socket.once("error", reject);
    });
    this.closed = new Promise((resolve) =>
      this.#socket.once("close", (code, reason) => resolve({ code, reason: reason.toString() })),
    );
  }

  async speak(ms: number): Promise<void> {
    this.#speaks = true;
    await this.wait(ms);
    this.#speaks = false;
  }

  async wait(ms: number): Promise<void> {
    await this.#opened;
    const frames = this.#framesSent + ms / frameMs;
    while (this.#framesSent < frames && this.#socket.readyState === WebSocket.OPEN) await this.#nextFrame();
  }

  async waitFor(type: ServerMessageType, times: number): Promise<void> {
    await this.#opened;
    const count = () => this.lines.filter((line) => "server" in line && line.server.type === type).length;
    while (count() < times && this.#socket.readyState === WebSocket.OPEN) {
      if (this.#nowMs() > limitMs) throw new Error(`Expected ${times} ${type} within ${limitMs} ms, got ${count()}`);
      await this.#nextFrame();
    }
    if (type === "call_ended") await this.closed;
    if (count() < times) throw new Error(`Expected ${times} ${type}, got ${count()} when the socket closed`);
  }

  async send(message: object): Promise<void> {
    await this.#opened;
    this.#socket.send(JSON.stringify(message));
  }

  #nowMs(): number {
    return performance.now() - this.#startedAtMs;
  }

  async #nextFrame(): Promise<void> {
    const dueMs = (this.#framesSent + 1) * frameMs;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - this.#nowMs())));
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    const frame = new Int16Array(frameSamples);
    const first = this.#framesSent * frameSamples;
    if (this.#speaks) for (let i = 0; i < frameSamples; i += 1) frame[i] = voiceSample(first + i);
    this.#socket.send(frame);
    this.#framesSent += 1;
    const due = this.#marks.filter((mark) => mark.dueMs <= this.#nowMs());
    this.#marks = this.#marks.filter((mark) => !due.includes(mark));
    for (const { name } of due) await this.send({ type: "mark", name });
  }

  #play(audio: Buffer): void {
    const ms = audio.length / 2 / (frameSamples / frameMs);
    this.#playedUntilMs = Math.max(this.#playedUntilMs, this.#nowMs()) + ms;
    const last = this.lines.at(-1);
    if (last && "server_audio_ms" in last) last.server_audio_ms += ms;
    else this.lines.push({ at_ms: Math.round(this.#nowMs()), server_audio_ms: ms });
  }

  #take(message: SentMessage): void {
    this.lines.push({ at_ms: Math.round(this.#nowMs()), server: message });
    if (message.type === "mark") this.#marks.push({ name: message.name, dueMs: this.#playedUntilMs });
    if (message.type !== "clear") return;
    this.#playedUntilMs = this.#nowMs();
    for (const { name } of this.#marks) void this.send({ type: "mark", name, cleared: true });
    this.#marks = [];
  }
}
