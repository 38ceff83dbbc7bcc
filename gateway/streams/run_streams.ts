/**
 * Run streams of this gateway: feeds by run, readers by connection, one ticker for all. The gateway
 * executes nothing and keeps nothing: what it sends is in the log before it is heard of.
 *
 *     grant ─► feed (bus + log) ─► reader ─► connection
 */
import { runTokenHeader, type StreamGrant, type WaitGrant } from "#contracts/internal_runs.ts";
import { runLimits } from "#contracts/run_event.ts";
import type { HttpResponse, ResponseHeaders } from "../transport/transport.ts";
import { RunFeed, type RunFeedDeps } from "./run_feed.ts";
import { RunWaiter, type WaitEnd } from "./run_waiter.ts";
import { openingBytes } from "./sse_frame.ts";
import { StreamReader } from "./stream_reader.ts";

const tickMs = 1000;
/** A feed without readers is kept so long: clients that come back find its window. */
const idleFeedMs = 10_000;
/** A feed that hears nothing asks for its run's position so often: the bus may lose messages. */
const silentFeedMs = 3000;
const positionsMax = 1000;
/** Beyond these a request that would wait is answered at once, with the run as it is. */
const waitersMax = 20_000;
/** Of a connection's life: clients do not come back all at once. */
const jitter = 0.1;

export interface RunStreams {
  /** Answers with the stream that the api granted. @param signal aborts when the client is gone */
  open(grant: StreamGrant, response: HttpResponse, signal: AbortSignal): void;
  /** Waits for what the grant names, at the latest until its time is over. @param signal aborts when the client is gone */
  wait(grant: WaitGrant, signal: AbortSignal): Promise<WaitEnd>;
  /** How many are served, and how many of them take nothing at the moment. */
  readers(): { open: number; paused: number };
  /** How many wait for a run. */
  waiting(): number;
  /** Sends all clients away, to come back to another process; who waits has waited long enough. */
  drain(): void;
  close(): Promise<void>;
}

export function createRunStreams(deps: RunFeedDeps): RunStreams {
  const { log, logger } = deps;
  const feeds = new Map<string, { feed: RunFeed; idleSinceMs: number | undefined }>();
  const readers = new Set<StreamReader>();
  const waiters = new Set<RunWaiter>();
  let asking = false;

  function feedFor(runId: string, cursor: number): RunFeed {
    const known = feeds.get(runId);
    if (known) return known.feed;
    const feed = new RunFeed(runId, cursor, deps);
    feeds.set(runId, { feed, idleSinceMs: undefined });
    return feed;
  }

  function open(grant: StreamGrant, response: HttpResponse, signal: AbortSignal): void {
    const feed = feedFor(grant.run_id, grant.after);
    const entry = feeds.get(grant.run_id);
    if (entry) entry.idleSinceMs = undefined;
    const stream = response.stream(200, headersFor(grant));
    const lifeMs = runLimits.connectionS * 1000 * (1 + (Math.random() * 2 - 1) * jitter);
    const onAbort = () => reader.disconnected();
    const reader = new StreamReader({
      feed,
      stream,
      cursor: grant.after,
      types: grant.types,
      endsAtMs: performance.now() + lifeMs,
      onError: (err) => logger.warn({ err }, "a run's stream broke off"),
      onEnd: ({ completed }) => {
        readers.delete(reader);
        signal.removeEventListener("abort", onAbort);
        if (entry && feed.readers.size === 0) entry.idleSinceMs = performance.now();
        if (grant.cancel_on_disconnect && !completed && signal.aborted) abandon(grant.run_id);
      },
    });
    readers.add(reader);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) {
      reader.disconnected();
      return;
    }
    stream.write(openingBytes);
    feed.take(grant.events);
    reader.wake();
    // What happened between the grant and the subscription is in the log.
    void feed.listening().then(() => feed.fill());
  }

  function wait(grant: WaitGrant, signal: AbortSignal): Promise<WaitEnd> {
    const leave = () => {
      if (grant.cancel_on_disconnect) abandon(grant.run_id);
    };
    if (signal.aborted) {
      leave();
      return Promise.resolve("left");
    }
    if (waiters.size >= waitersMax) return Promise.resolve("late");
    return new Promise((resolve) => {
      const feed = feedFor(grant.run_id, grant.after);
      const entry = feeds.get(grant.run_id);
      if (entry) entry.idleSinceMs = undefined;
      const onAbort = () => waiter.end("left");
      const waiter = new RunWaiter({
        feed,
        cursor: grant.after,
        until: grant.until,
        dueMs: performance.now() + grant.wait_ms,
        onError: (err) => logger.warn({ err }, "a run that is waited for is not read; it is tried again"),
        onEnd: (end) => {
          waiters.delete(waiter);
          signal.removeEventListener("abort", onAbort);
          if (entry && feed.readers.size === 0) entry.idleSinceMs = performance.now();
          if (end === "left" && signal.aborted) leave();
          resolve(end);
        },
      });
      waiters.add(waiter);
      signal.addEventListener("abort", onAbort, { once: true });
      waiter.wake();
      void feed.listening().then(() => feed.fill());
    });
  }

  function abandon(runId: string): void {
    log.abandon(runId).catch((err: unknown) => logger.warn({ err }, "a run whose client is gone goes on"));
  }

  function tick(): void {
    const nowMs = performance.now();
    for (const reader of readers) reader.tick(nowMs);
    for (const waiter of waiters) waiter.tick(nowMs);
    for (const [runId, { feed, idleSinceMs }] of feeds) {
      if (idleSinceMs === undefined || nowMs - idleSinceMs < idleFeedMs) continue;
      feeds.delete(runId);
      void feed.close();
    }
    if (asking) return;
    asking = true;
    askPositions()
      .catch((err: unknown) => logger.warn({ err }, "runs' positions not read"))
      .finally(() => {
        asking = false;
      });
  }

  async function askPositions(): Promise<void> {
    const silent = [...feeds.values()].filter(({ feed }) => feed.readers.size > 0 && feed.silentMs >= silentFeedMs);
    for (let i = 0; i < silent.length; i += positionsMax) {
      const asked = silent.slice(i, i + positionsMax);
      const positions = await log.positions(asked.map(({ feed }) => feed.runId));
      for (const { feed } of asked) if ((positions.get(feed.runId) ?? 0) > feed.lastId) feed.fill();
    }
  }

  function sendAway(): void {
    for (const reader of [...readers]) reader.leave("drain");
    for (const waiter of [...waiters]) waiter.end("late");
  }

  const timer = setInterval(tick, tickMs);
  return {
    open,
    wait,
    waiting: () => waiters.size,
    readers: () => ({ open: readers.size, paused: [...readers].filter(({ isPaused }) => isPaused).length }),
    drain() {
      sendAway();
    },
    async close() {
      clearInterval(timer);
      sendAway();
      await Promise.all([...feeds.values()].map(({ feed }) => feed.close()));
      feeds.clear();
      await log.close();
    },
  };
}

function headersFor({ run_id, after, run_token }: StreamGrant): ResponseHeaders {
  return [
    ["content-type", "text/event-stream"],
    ["cache-control", "no-cache, no-transform"],
    ["x-accel-buffering", "no"],
    ["run-id", run_id],
    ["run-replayed-from", String(after)],
    ...(run_token === undefined ? [] : ([[runTokenHeader, run_token]] satisfies ResponseHeaders)),
    ["access-control-allow-origin", "*"],
    ["access-control-expose-headers", "Run-Id, Run-Replayed-From, Run-Token"],
  ];
}
