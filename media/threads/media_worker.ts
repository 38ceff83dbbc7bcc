/** A media thread: runs the sessions that `worker_pool.ts` places here, in batches both ways. */
import { parentPort, workerData } from "node:worker_threads";
import { emptyUsage } from "#contracts/voice_protocol.ts";
import { loadStages } from "#providers/stages.ts";
import type { MediaSession, SessionSink } from "../media_host.ts";
import { createSession, type SessionDeps } from "../session/call_session.ts";
import { ToolPort } from "../tools/remote_tools.ts";
import { type Batch, BatchWriter, readBatch } from "./batch.ts";
import { createScheduler } from "./scheduler.ts";
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

if (!parentPort) throw new Error("Cannot run media_worker.ts by itself: it is started by worker_pool.ts");
const port = parentPort;
const { vad, world } = workerData as ThreadSettings;
const scheduler = createScheduler();
const stages = await loadStages(world);
const remoteTools = new ToolPort();
const deps: SessionDeps = {
  scheduler,
  stages,
  vad,
  remoteTools,
  onFault(callId, cause) {
    const fault: FromThreadObjects["fault"] = { callId, cause: cause instanceof Error ? cause : String(cause) };
    outbox.object(fromThread.fault, 0, fault);
    flushSoon();
  },
};

interface Seat {
  session: MediaSession;
  unsentMs: number;
}
const seats = new Map<number, Seat>();
const outbox = new BatchWriter();
let isFlushDue = false;
let underWayBytes = 0;
let isCongested = false;

/** One message a turn of the loop, however much there is to say. */
function flushSoon(): void {
  if (isFlushDue) return;
  isFlushDue = true;
  setImmediate(flush);
}

function flush(): void {
  isFlushDue = false;
  if (outbox.isEmpty) return;
  const batch = outbox.take();
  underWayBytes += batch.usedBytes;
  port.postMessage(batch, [batch.buffer]);
  if (underWayBytes > underWayBytesMax) setCongested(true);
}

/** While the other thread does not keep up, speech is not pulled: the same brake as for unsent bytes. */
function setCongested(congested: boolean): void {
  if (isCongested === congested) return;
  isCongested = congested;
  for (const seat of seats.values()) seat.session.reportUnsent(congested ? Number.POSITIVE_INFINITY : seat.unsentMs);
}

function sinkFor(id: number): SessionSink {
  const post = <K extends keyof FromThreadObjects>(kind: K, object: FromThreadObjects[K]) => {
    outbox.object(fromThread[kind], id, object);
    flushSoon();
  };
  return {
    audio(frame, durationMs) {
      outbox.bytes(fromThread.audio, id, durationMs, frame);
      flushSoon();
    },
    dropUnsent() {
      outbox.value(fromThread.dropUnsent, id, 0);
      flushSoon();
    },
    message: (message) => post("message", message),
    record: (progress) => post("record", progress),
    ended(end, usage) {
      seats.delete(id);
      post("ended", { end, usage });
    },
  };
}

/** What came for calls whose vendors are being loaded: once a thread and vendor, and as long as that takes. */
const waiting = new Map<number, (() => void)[]>();

function open(id: number, spec: ToThreadObjects["open"]): void {
  const loading = stages.load(spec.config);
  if (loading) void openLater(id, spec, loading);
  else openLoaded(id, spec);
}

async function openLater(id: number, spec: ToThreadObjects["open"], loading: Promise<void>): Promise<void> {
  const late: (() => void)[] = [];
  waiting.set(id, late);
  // Without its vendor the call fails as it opens, and says so.
  await loading.catch(() => {});
  waiting.delete(id);
  openLoaded(id, spec);
  for (const take of late) take();
}

function openLoaded(id: number, spec: ToThreadObjects["open"]): void {
  const sink = sinkFor(id);
  try {
    seats.set(id, { session: createSession(spec, sink, deps), unsentMs: 0 });
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    sink.message({ type: "error", code: "media_open_failed", message, fatal: true });
    sink.ended({ reason: "error", duration_ms: 0, error_code: "media_open_failed" }, emptyUsage());
  }
}

function handle(kind: number, id: number, value: number, bytes: Uint8Array, object: unknown): void {
  if (kind === toThread.open) {
    open(id, object as ToThreadObjects["open"]);
    return;
  }
  const late = waiting.get(id);
  if (late) {
    late.push(() => handle(kind, id, value, bytes, object));
    return;
  }
  const seat = seats.get(id);
  if (!seat) return;
  const { session } = seat;
  if (kind === toThread.audio) session.audio(bytes, value);
  else if (kind === toThread.command) session.command(object as ToThreadObjects["command"]);
  else if (kind === toThread.pause) session.pause();
  else if (kind === toThread.resume) session.resume();
  else if (kind === toThread.delivered) session.reportDelivered(value);
  else if (kind === toThread.unsent) {
    seat.unsentMs = value;
    if (!isCongested) session.reportUnsent(value);
  } else if (kind === toThread.end) {
    const { reason, errorCode } = object as ToThreadObjects["end"];
    session.end(reason, errorCode);
  }
}

function close(): void {
  for (const { session } of seats.values()) session.end("drained");
  flush();
  scheduler.close();
  // Providers may keep workers of their own; what was posted is delivered all the same.
  process.exit(0);
}

port.on("message", (message: Batch | ToolsAreHere | typeof closeThread) => {
  if (message === closeThread) return close();
  if ("toolPort" in message) return remoteTools.connect(message.toolPort);
  underWayBytes -= message.handledBytes;
  if (underWayBytes <= underWayBytesMax / 2) setCongested(false);
  readBatch(message, handle);
  outbox.handled(message.usedBytes);
  flushSoon();
});

await stages.warmUp();
port.postMessage(threadReady);
