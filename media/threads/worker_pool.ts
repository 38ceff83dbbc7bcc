/**
 * Sessions spread over media threads, behind the same interface as in one thread. A call lives on
 * the thread with the fewest calls; a thread that crashes ends its calls with `media_thread_lost`
 * and is replaced. Input that a thread cannot take in time is dropped, newest first, and said so.
 */
import type { MessagePort, Worker } from "node:worker_threads";
import { emptyUsage, type Usage } from "#contracts/voice_protocol.ts";
import type { StageWorld } from "#providers/stages.ts";
import { startTypescriptWorker } from "#providers/typescript_worker.ts";
import { opusInstancesMax } from "../audio/opus_codec.ts";
import type { VadEngine } from "../hearing/vad/create_vad.ts";
import {
  MediaFullError,
  type MediaHost,
  type MediaSession,
  nowMs,
  type SessionSink,
  type SessionSpec,
} from "../media_host.ts";
import type { ToolWorld } from "../tools/tool_runner.ts";
import { asksToolThread, ToolThread } from "../tools/tool_thread.ts";
import { type Batch, BatchWriter, readBatch } from "./batch.ts";
import {
  closeThread,
  type FromThreadObjects,
  fromThread,
  type ThreadSettings,
  type ToolsAreHere,
  type ToThreadObjects,
  threadReady,
  toThread,
  underWayBytesMax,
} from "./thread_protocol.ts";

export interface WorkerPoolOptions {
  threads: number;
  vad?: VadEngine;
  /** What the stages of calls may reach; public addresses alone unless given. */
  world?: StageWorld;
  /** What tools may reach; public addresses alone unless given. */
  toolWorld?: ToolWorld;
  logger?: { warn(fields: object, message: string): void };
}

/** How long a closing thread may take before it is stopped. */
const closeTimeoutMs = 2000;
/** A thread that fails this often in a row is not replaced any more. */
const failedStartsMax = 3;

/** Opus encoders and decoders that a call needs; one serves both directions at the same rate. */
export function opusInstancesFor(spec: Pick<SessionSpec, "inputFormat" | "outputFormat">): number {
  const { inputFormat, outputFormat } = spec;
  const isIn = inputFormat.encoding === "opus";
  const isOut = outputFormat.encoding === "opus";
  if (isIn && isOut && inputFormat.sample_rate === outputFormat.sample_rate) return 1;
  return Number(isIn) + Number(isOut);
}

/**
 * Starts `threads` media threads and answers when all have loaded what a first call needs.
 * @throws Error when a thread cannot start
 */
export async function startWorkerPool(options: WorkerPoolOptions): Promise<MediaHost> {
  const pool = new WorkerPool(options);
  await pool.start();
  return pool;
}

class WorkerPool implements MediaHost {
  readonly #options: WorkerPoolOptions;
  readonly #tools: ToolThread;
  #threads: MediaThread[] = [];
  #failedStarts = 0;
  #isClosing = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    const { allowPrivateAddresses = false } = options.world ?? {};
    this.#tools = new ToolThread({ allowPrivateAddresses, ...options.toolWorld }, (cause) =>
      this.#options.logger?.warn({ err: cause }, "tools thread lost"),
    );
  }

  async start(): Promise<void> {
    this.#threads = Array.from({ length: Math.max(1, this.#options.threads) }, () => this.#newThread());
    try {
      await Promise.all(this.#threads.map((thread) => thread.ready));
    } catch (cause) {
      await this.close();
      throw cause;
    }
  }

  #newThread(): MediaThread {
    const thread: MediaThread = new MediaThread(
      {
        vad: this.#options.vad ?? "energy",
        world: this.#options.world ?? {},
      },
      {
        lost: (calls, cause) => this.#replace(thread, calls, cause),
        fault: ({ callId, cause }) => this.#options.logger?.warn({ call_id: callId, err: cause }, "fault in a call"),
      },
    );
    thread.ready.then(
      () => {
        this.#failedStarts = 0;
      },
      () => {},
    );
    return thread;
  }

  #replace(lost: MediaThread, lostCalls: number, cause: unknown): void {
    this.#threads = this.#threads.filter((thread) => thread !== lost);
    if (this.#isClosing) return;
    this.#failedStarts += 1;
    const willReplace = this.#failedStarts <= failedStartsMax;
    this.#options.logger?.warn({ err: cause, calls: lostCalls, replaced: willReplace }, "media thread lost");
    if (willReplace) this.#threads.push(this.#newThread());
  }

  open(spec: SessionSpec, sink: SessionSink): MediaSession {
    const opusInstances = opusInstancesFor(spec);
    let best: MediaThread | undefined;
    for (const thread of this.#threads) {
      if (!thread.isReady || thread.opusInstances + opusInstances > opusInstancesMax) continue;
      if (!best || thread.calls < best.calls) best = thread;
    }
    if (!best)
      throw new MediaFullError("Cannot open a session: no media thread has room for another call of this format");
    const toolPort = asksToolThread(spec.config) ? this.#tools.portFor(best) : undefined;
    if (toolPort) best.connectTools(toolPort);
    return best.open(spec, opusInstances, sink);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#threads.map((thread) => thread.close()), this.#tools.close()]);
  }
}

/** A call as this side sees it. */
interface Call {
  sink: SessionSink;
  opusInstances: number;
  startedMs: number;
  usage: Usage;
  hasOverrun: boolean;
}

interface ThreadEvents {
  /** The thread is gone, and the calls that it had with it. */
  lost(calls: number, cause: unknown): void;
  fault(fault: FromThreadObjects["fault"]): void;
}

class MediaThread {
  readonly ready: Promise<void>;
  isReady = false;
  opusInstances = 0;
  readonly #worker: Worker;
  readonly #calls = new Map<number, Call>();
  readonly #outbox = new BatchWriter();
  readonly #exited: Promise<void>;
  #nextId = 1;
  #underWayBytes = 0;
  #isFlushDue = false;
  #isGone = false;

  readonly #events: ThreadEvents;

  constructor(settings: ThreadSettings, events: ThreadEvents) {
    this.#events = events;
    this.#worker = startTypescriptWorker(new URL("./media_worker.ts", import.meta.url), { workerData: settings });
    let failure: unknown;
    this.#exited = new Promise((resolve) => {
      this.#worker.on("exit", () => {
        this.isReady = false;
        this.#isGone = true;
        const lostCalls = this.#calls.size;
        this.#endLostCalls();
        events.lost(lostCalls, failure);
        resolve();
      });
    });
    this.#worker.on("error", (cause) => {
      failure = cause;
    });
    this.ready = new Promise((resolve, reject) => {
      this.#worker.on("message", (message: Batch | typeof threadReady) => {
        if (message !== threadReady) return this.#take(message);
        this.isReady = true;
        resolve();
      });
      void this.#exited.then(() =>
        reject(new Error("Cannot start a media thread: it ended before it was ready", { cause: failure })),
      );
    });
  }

  get calls(): number {
    return this.#calls.size;
  }

  open(spec: SessionSpec, opusInstances: number, sink: SessionSink): MediaSession {
    const id = this.#nextId;
    this.#nextId += 1;
    this.opusInstances += opusInstances;
    const call: Call = { sink, opusInstances, startedMs: nowMs(), usage: emptyUsage(), hasOverrun: false };
    this.#calls.set(id, call);
    const post = <K extends keyof ToThreadObjects>(kind: K, object: ToThreadObjects[K]) => {
      if (!this.#calls.has(id)) return;
      this.#outbox.object(toThread[kind], id, object);
      this.#flushSoon();
    };
    const value = (kind: "unsent" | "delivered" | "pause" | "resume", number: number) => {
      if (!this.#calls.has(id)) return;
      this.#outbox.value(toThread[kind], id, number);
      this.#flushSoon();
    };
    post("open", spec);
    return {
      audio: (bytes, arrivedAtMs) => this.#audio(id, call, bytes, arrivedAtMs),
      command: (command) => post("command", command),
      reportUnsent: (unsentMs) => value("unsent", unsentMs),
      reportDelivered: (audioMs) => value("delivered", audioMs),
      pause: () => value("pause", 0),
      resume: () => value("resume", 0),
      end: (reason, errorCode) => post("end", { reason, ...(errorCode && { errorCode }) }),
    };
  }

  /** Its calls' tools run where `toolPort` leads. */
  connectTools(toolPort: MessagePort): void {
    const message: ToolsAreHere = { toolPort };
    this.#worker.postMessage(message, [toolPort]);
  }

  #audio(id: number, call: Call, bytes: Uint8Array, arrivedAtMs: number): void {
    if (!this.#calls.has(id)) return;
    if (this.#underWayBytes + this.#outbox.usedBytes > underWayBytesMax) {
      if (call.hasOverrun) return;
      call.hasOverrun = true;
      const message = "Input was dropped: it could not be processed in time";
      call.sink.message({ type: "warning", code: "input_overrun", message, fatal: false });
      return;
    }
    this.#outbox.bytes(toThread.audio, id, arrivedAtMs, bytes);
    this.#flushSoon();
  }

  /** One message a turn of the loop, however much there is to say. */
  #flushSoon(): void {
    if (this.#isFlushDue || this.#isGone) return;
    this.#isFlushDue = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#isFlushDue = false;
    if (this.#isGone || this.#outbox.isEmpty) return;
    const batch = this.#outbox.take();
    this.#underWayBytes += batch.usedBytes;
    this.#worker.postMessage(batch, [batch.buffer]);
  }

  #take(batch: Batch): void {
    this.#underWayBytes -= batch.handledBytes;
    readBatch(batch, (kind, id, value, bytes, object) => {
      if (kind === fromThread.fault) this.#events.fault(object as FromThreadObjects["fault"]);
      const call = this.#calls.get(id);
      if (!call) return;
      if (kind === fromThread.audio) call.sink.audio(bytes, value);
      else if (kind === fromThread.dropUnsent) call.sink.dropUnsent();
      else if (kind === fromThread.message) call.sink.message(object as FromThreadObjects["message"]);
      else if (kind === fromThread.record) {
        const progress = object as FromThreadObjects["record"];
        if (progress.usage) call.usage = progress.usage;
        call.sink.record(progress);
      } else if (kind === fromThread.ended) {
        const { end, usage } = object as FromThreadObjects["ended"];
        this.#forget(id, call);
        call.sink.ended(end, usage);
      }
    });
    if (batch.usedBytes === 0) return;
    this.#outbox.handled(batch.usedBytes);
    this.#flushSoon();
  }

  #forget(id: number, call: Call): void {
    this.#calls.delete(id);
    this.opusInstances -= call.opusInstances;
  }

  #endLostCalls(): void {
    for (const [id, call] of [...this.#calls]) {
      this.#forget(id, call);
      const durationMs = Math.round(nowMs() - call.startedMs);
      call.sink.ended({ reason: "error", duration_ms: durationMs, error_code: "media_thread_lost" }, call.usage);
    }
  }

  /** Ends the calls and the thread. */
  async close(): Promise<void> {
    if (this.#isGone) return;
    this.#flush();
    this.#worker.postMessage(closeThread);
    const stop = setTimeout(() => void this.#worker.terminate(), closeTimeoutMs);
    await this.#exited;
    clearTimeout(stop);
  }
}
