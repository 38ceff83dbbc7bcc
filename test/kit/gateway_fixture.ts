/**
 * What the gateway's tests run on: an api and a media host in memory, a clock that moves when told,
 * and a client that remembers everything it hears.
 */

import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocket } from "ws";
import type { Bus } from "#bus/bus.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import { type AudioFormat, audioFormatFor } from "#contracts/audio_format.ts";
import type { CallEnd, CallFailure } from "#contracts/call_record.ts";
import type {
  CloseCallRequest,
  HeartbeatReply,
  HeartbeatRequest,
  OpenedCall,
  ReservedCall,
} from "#contracts/internal_calls.ts";
import { type CallConfig, completeConfig, type VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { type EndReason, emptyUsage, type SentMessage } from "#contracts/voice_protocol.ts";
import { ApiUnavailableError, type CallsApi, type OpenResult } from "#gateway/api_client.ts";
import { type Clock, systemClock } from "#gateway/calls/clock.ts";
import type { GatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import type { Log } from "#gateway/log.ts";
import type { MediaHost, MediaSession, SessionCommand, SessionSink, SessionSpec } from "#media/media_host.ts";
import { patienceMs } from "./patience.ts";

export const noUsage = emptyUsage();

export const silentLog = { info() {}, warn() {}, error() {} };

/** What the api makes of an agent's configuration. */
export function callConfig(config: VoiceAgentConfig = {}): CallConfig {
  return completeConfig(config, { stt: "scripted", llm: "rules", tts: "flite" });
}

/** The api's side of the seam, in maps. */
export class FakeApi implements CallsApi {
  readonly calls = new Map<string, ReservedCall>();
  readonly closes: { callId: string; request: CloseCallRequest }[] = [];
  readonly heartbeats: HeartbeatRequest[] = [];
  readonly formats = new Map<string, { input: AudioFormat; output: AudioFormat }>();
  /** What every opened call runs on. */
  config: CallConfig = callConfig();
  opens = 0;
  isDown = false;
  archived = new Set<string>();
  closedElsewhere: string[] = [];
  overLimit: string[] = [];
  /** Called inside of every `openCall`, before it answers. */
  onOpen: (callId: string) => Promise<void> = async () => {};
  onClose: () => void = () => {};

  async getCall(callId: string): Promise<ReservedCall | undefined> {
    this.#assertUp();
    return this.calls.get(callId);
  }

  async openCall(callId: string): Promise<OpenResult> {
    await this.onOpen(callId);
    this.#assertUp();
    const call = this.calls.get(callId);
    if (!call) return { kind: "refused", code: "not_found" };
    if (this.archived.has(callId)) return { kind: "refused", code: "gone" };
    if (call.state !== "reserved") return { kind: "refused", code: "consumed" };
    call.state = "in_progress";
    this.opens += 1;
    const formats = this.formats.get(callId);
    const opened: OpenedCall = {
      call_id: callId,
      agent_id: randomUUID(),
      organization_id: randomUUID(),
      config: this.config,
      input_format: formats?.input ?? audioFormatFor(),
      output_format: formats?.output ?? audioFormatFor(),
      client_buffer_ms: 400,
      initial_messages: [],
    };
    return { kind: "opened", call: opened };
  }

  async heartbeat(request: HeartbeatRequest): Promise<HeartbeatReply> {
    this.#assertUp();
    this.heartbeats.push(structuredClone(request));
    return { closed: this.closedElsewhere, over_limit: this.overLimit };
  }

  async closeCall(callId: string, request: CloseCallRequest): Promise<boolean> {
    this.#assertUp();
    this.closes.push({ callId, request: structuredClone(request) });
    const call = this.calls.get(callId);
    if (call) call.state = "ended";
    this.onClose();
    return true;
  }

  /** Resolves with the first close record of `callId`. */
  async closeOf(callId: string): Promise<CloseCallRequest> {
    for (;;) {
      const found = this.closes.find((close) => close.callId === callId);
      if (found) return found.request;
      await new Promise<void>((resolve) => {
        const earlier = this.onClose;
        this.onClose = () => {
          earlier();
          resolve();
        };
      });
    }
  }

  async isReady(): Promise<boolean> {
    return !this.isDown;
  }

  async close(): Promise<void> {}

  #assertUp(): void {
    if (this.isDown) throw new ApiUnavailableError("reach the api");
  }
}

/** A session that does what the test says and remembers what it was told. */
export class FakeSession implements MediaSession {
  readonly spec: SessionSpec;
  readonly sink: SessionSink;
  readonly heard: Uint8Array[] = [];
  readonly commands: SessionCommand[] = [];
  readonly unsentMs: number[] = [];
  deliveredMs: number | undefined;
  pauses = 0;
  resumes = 0;
  end_: { reason: EndReason; errorCode: CallFailure | undefined } | undefined;
  /** A stuck session never reports its end. */
  isStuck = false;
  onCommand: (command: SessionCommand) => void = () => {};

  constructor(spec: SessionSpec, sink: SessionSink) {
    this.spec = spec;
    this.sink = sink;
  }

  audio(bytes: Uint8Array): void {
    this.heard.push(bytes);
  }
  get heardBytes(): number {
    return this.heard.reduce((sum, bytes) => sum + bytes.byteLength, 0);
  }
  command(command: SessionCommand): void {
    this.commands.push(command);
    this.onCommand(command);
  }
  reportUnsent(unsentMs: number): void {
    this.unsentMs.push(unsentMs);
  }
  reportDelivered(audioMs: number): void {
    this.deliveredMs = audioMs;
  }
  pause(): void {
    this.pauses += 1;
  }
  resume(): void {
    this.resumes += 1;
  }
  end(reason: EndReason, errorCode?: CallFailure): void {
    if (this.end_) return;
    this.end_ = { reason, errorCode };
    if (this.isStuck) return;
    const end: CallEnd = { reason, duration_ms: 1, ...(errorCode !== undefined && { error_code: errorCode }) };
    queueMicrotask(() => this.sink.ended(end, noUsage));
  }
}

export class FakeMedia implements MediaHost {
  readonly sessions = new Map<string, FakeSession>();
  open(spec: SessionSpec, sink: SessionSink): FakeSession {
    const session = new FakeSession(spec, sink);
    this.sessions.set(spec.callId, session);
    return session;
  }
  of(callId: string): FakeSession {
    const session = this.sessions.get(callId);
    assert.ok(session, "a session was opened");
    return session;
  }
  async close(): Promise<void> {}
}

/** Stands still until `advance`. */
export class ManualClock implements Clock {
  #now = 1_800_000_000_000;
  readonly #timers = new Set<{ dueMs: number; intervalMs: number; task: () => void }>();

  nowMs = (): number => this.#now;

  every(intervalMs: number, task: () => void): () => void {
    const timer = { dueMs: this.#now + intervalMs, intervalMs, task };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Runs what is due on the way, in order. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      let next: { dueMs: number; intervalMs: number; task: () => void } | undefined;
      for (const timer of this.#timers) if (timer.dueMs <= until && (!next || timer.dueMs < next.dueMs)) next = timer;
      if (!next) break;
      this.#now = next.dueMs;
      next.dueMs += next.intervalMs;
      next.task();
    }
    this.#now = until;
  }
}

export interface TestGateway {
  gateway: Gateway;
  api: FakeApi;
  media: FakeMedia;
  bus: Bus;
  /** Makes a reservation and its URL. */
  reserve(
    options?: Partial<ReservedCall> & { onBus?: boolean },
  ): Promise<{ callId: string; secret: string; url: string }>;
  stop(): Promise<void>;
}

export interface TestGatewayOptions {
  transport: "uws" | "ws";
  slots?: number;
  clock?: Clock;
  api?: FakeApi;
  /** The real one, in place of `TestGateway.media`. */
  media?: MediaHost;
  bus?: Bus;
  config?: Partial<GatewayConfig>;
  logger?: Log;
}

export async function startTestGateway(options: TestGatewayOptions): Promise<TestGateway> {
  const api = options.api ?? new FakeApi();
  const media = new FakeMedia();
  const bus = options.bus ?? createMemoryBus();
  const clock = options.clock ?? systemClock;
  const dataDir = await mkdtemp(join(tmpdir(), "frontdesk-gateway-"));
  const config: GatewayConfig = {
    gatewayId: `gateway-${randomUUID()}`,
    bindAddress: "127.0.0.1",
    port: 0,
    apiUrl: "http://127.0.0.1:9",
    publicUrl: undefined,
    gatewayPublicUrl: undefined,
    appDomain: "apps.localhost",
    callSlots: options.slots ?? 16,
    mediaThreads: 1,
    transport: options.transport,
    drainTimeoutS: 120,
    dataDir,
    redisUrl: undefined,
    internalSecret: "secret",
    ...options.config,
  };
  const gateway = await startGateway({
    config,
    bus,
    media: options.media ?? media,
    logger: options.logger ?? silentLog,
    api,
    clock,
  });
  return {
    gateway,
    api,
    media,
    bus,
    async reserve({ onBus = true, ...fields } = {}) {
      const callId = fields.call_id ?? randomUUID();
      const secret = randomBytes(32).toString("base64url");
      const reservation: ReservedCall = {
        call_id: callId,
        secret_sha256: createHash("sha256").update(secret).digest("hex"),
        expires_at: new Date(Math.max(clock.nowMs(), Date.now()) + 120_000).toISOString(),
        allowed_origins: [],
        state: "reserved",
        ...fields,
      };
      api.calls.set(callId, reservation);
      if (onBus) await bus.putReservation(reservation);
      return { callId, secret, url: `ws://127.0.0.1:${gateway.port}/v1/voice/calls/${callId}/${secret}` };
    },
    async stop() {
      await gateway.close();
      if (!options.bus) await bus.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export interface Refused {
  status: number;
  body: string;
  headers: IncomingMessage["headers"];
}

/** A caller: hears, remembers, and can be waited on. */
export class CallClient {
  readonly ws: WebSocket;
  /** Everything in the order in which it came. */
  readonly heard: (SentMessage | Uint8Array)[] = [];
  closed: { code: number; reason: string } | undefined;
  readonly #waiters = new Set<() => void>();

  private constructor(ws: WebSocket) {
    this.ws = ws;
    ws.on("message", (data: Buffer, isBinary: boolean) => {
      this.heard.push(isBinary ? new Uint8Array(data) : (JSON.parse(data.toString()) as SentMessage));
      this.#wake();
    });
    ws.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
      this.#wake();
    });
    ws.on("error", () => {});
  }

  get messages(): SentMessage[] {
    return this.heard.filter((one): one is SentMessage => !(one instanceof Uint8Array));
  }

  get audio(): Uint8Array[] {
    return this.heard.filter((one): one is Uint8Array => one instanceof Uint8Array);
  }

  get socket(): Socket {
    return (this.ws as unknown as { _socket: Socket })._socket;
  }

  /** Resolves when `found` finds something in what was heard. */
  async until<T>(found: () => T | undefined | false): Promise<T> {
    for (;;) {
      const value = found();
      if (value !== undefined && value !== false) return value;
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }

  message<K extends SentMessage["type"]>(type: K): Promise<Extract<SentMessage, { type: K }>> {
    return this.until(() => this.messages.find((one): one is Extract<SentMessage, { type: K }> => one.type === type));
  }

  whenClosed(): Promise<{ code: number; reason: string }> {
    return this.until(() => this.closed);
  }

  send(message: object): void {
    this.ws.send(JSON.stringify(message));
  }

  #wake(): void {
    for (const resolve of this.#waiters) resolve();
    this.#waiters.clear();
  }

  /** Connects; a refused upgrade is a value, not an error. */
  static connect(url: string, options: { protocols?: string[]; origin?: string } = {}): Promise<CallClient | Refused> {
    return new Promise((resolve, reject) => {
      const ws = new WebSocket(url, options.protocols ?? [], {
        perMessageDeflate: false,
        ...(options.origin !== undefined && { origin: options.origin }),
      });
      const client = new CallClient(ws);
      ws.on("open", () => resolve(client));
      ws.on("error", reject);
      ws.on("unexpected-response", (_request, response) => {
        let body = "";
        response.on("data", (chunk: Buffer) => {
          body += chunk.toString();
        });
        response.on("end", () => {
          ws.terminate();
          resolve({ status: response.statusCode ?? 0, body, headers: response.headers });
        });
      });
    });
  }

  /** Connects and expects to be admitted. */
  static async call(url: string): Promise<CallClient> {
    const client = await CallClient.connect(url);
    if (!(client instanceof CallClient))
      throw new Error(`Expected to be admitted, got ${client.status} ${client.body}`);
    await client.message("call_started");
    return client;
  }
}

/** Waits for a fact that no event announces, turn by turn of the event loop. */
export async function eventually(fact: () => boolean, what: string): Promise<void> {
  const untilMs = performance.now() + patienceMs;
  while (!fact()) {
    if (performance.now() > untilMs) assert.fail(`Expected within ${patienceMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** `count` results of `make`, a hundred at a time: what comes before a race is no race itself. */
export async function inBatches<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  const made: T[] = [];
  while (made.length < count) made.push(...(await Promise.all(Array.from({ length: 100 }, make))));
  return made;
}
