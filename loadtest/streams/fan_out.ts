/** One measurement of the streams test: runs that wait, readers that attach, then all events to all of them. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import type { AppClient, LoadedRun } from "../kit/app_client.ts";
import { createdAtMs, type ScannedEvents } from "../kit/event_scanner.ts";
import { processUsage } from "../kit/process_usage.ts";
import { Distribution } from "../kit/statistics.ts";
import { StreamSubscriber } from "../kit/stream_subscriber.ts";

export interface FanOutTarget {
  app: AppClient;
  port: number;
  accessKey: string;
  pid: number;
}

export interface FanOutPlan {
  host: string;
  input: Record<string, unknown>;
  runs: number;
  /** Of each run. */
  subscribers: number;
  /** Of each run, more: they read nothing until the others have everything. */
  stalled: number;
  /** Longest time from the approval to the last event. */
  withinMs: number;
}

export interface FanOutResult {
  /** From an event's `created_at` to its arrival at a reader, in whole milliseconds. */
  latencyMs: Distribution;
  deliveries: number;
  /** From the first delivery to the last one. */
  seconds: number;
  /** Events of a run, and what one reader got of it. */
  events: number;
  bytesOfRun: number;
  /** Readers that did not get every event: must be 0; stalled ones included once they read. */
  incomplete: number;
  gaps: number;
  gatewayCpuShare: number;
  /** What the gateway's memory grew by since before the readers attached, at most. */
  rssGrowthKib: number;
  ownCpuShare: number;
  ownLoopDelayP99Ms: number;
  runIds: string[];
}

const attachAtOnce = 100;
const memoryEveryMs = 250;
/** Until the gateway has written what it can to readers that do not read. */
const stallingMs = 4000;
const caughtUpWithinMs = 20_000;
const stalledWithinMs = 20_000;

/** Starts runs that wait at their gate. @throws Error when one does not get there */
export async function startGated(
  app: AppClient,
  host: string,
  input: Record<string, unknown>,
  count: number,
): Promise<LoadedRun[]> {
  const started = await Promise.all(Array.from({ length: count }, () => app.start(host, input)));
  return Promise.all(started.map(({ id }) => gated(app, host, id)));
}

async function gated(app: AppClient, host: string, runId: string): Promise<LoadedRun> {
  let status = "";
  for (let tries = 0; tries < 200; tries += 1) {
    const run = await app.read(host, runId);
    if (run.status === "awaiting_input" && run.input_requests.length > 0) return run;
    status = JSON.stringify(run);
    await delay(50);
  }
  throw new Error(`Cannot measure streams: a run did not get to its approval, it is ${status}`);
}

/** Opens that many streams, some at once. Settles when all have answered. */
export async function attach(count: number, open: (index: number) => StreamSubscriber): Promise<StreamSubscriber[]> {
  const subscribers: StreamSubscriber[] = [];
  const next = async () => {
    while (subscribers.length < count) {
      const subscriber = open(subscribers.length);
      subscribers.push(subscriber);
      await subscriber.opened;
    }
  };
  await Promise.all(Array.from({ length: Math.min(attachAtOnce, count) }, next));
  return subscribers;
}

/** What the runs said before is read: it is not to be taken for late. @throws Error when it takes too long */
async function caughtUp(all: readonly { reader: StreamSubscriber; run: LoadedRun | undefined }[]): Promise<void> {
  for (let waitedMs = 0; waitedMs < caughtUpWithinMs; waitedMs += 100) {
    if (all.every(({ reader, run }) => reader.lastId >= (run?.last_event_id ?? 0))) return;
    await delay(100);
  }
  throw new Error("Cannot measure streams: the readers do not get what their runs said before");
}

export async function fanOut(target: FanOutTarget, plan: FanOutPlan): Promise<FanOutResult> {
  const runs = await startGated(target.app, plan.host, plan.input, plan.runs);
  const latencyMs = new Distribution();
  const measured: ScannedEvents[] = [];
  let isSpeaking = false;
  let deliveries = 0;
  let firstAtMs = 0;
  let lastAtMs = 0;
  for (const _ of runs) {
    const created = new Map<number, number>();
    measured.push({
      onEvent(id, bytes, at) {
        if (!isSpeaking) return;
        const nowMs = Date.now();
        firstAtMs ||= nowMs;
        lastAtMs = nowMs;
        deliveries += 1;
        let createdMs = created.get(id);
        if (createdMs === undefined) {
          createdMs = createdAtMs(bytes, at);
          created.set(id, createdMs);
        }
        latencyMs.record(nowMs - createdMs);
      },
    });
  }
  const ignored: ScannedEvents = { onEvent: () => undefined };
  const request = (run: LoadedRun | undefined, stalled: boolean) => ({
    port: target.port,
    host: plan.host,
    accessKey: target.accessKey,
    path: `/v1/runs/${run?.id}/stream`,
    stalled,
  });
  const of = (index: number) => index % runs.length;
  const alone = await processUsage(target.pid);
  // They do not read, so there is no answer to wait for; what is there already fills what the kernel keeps for them.
  const stalled = Array.from(
    { length: plan.stalled * runs.length },
    (_, index) => new StreamSubscriber(request(runs[of(index)], true), ignored),
  );
  if (stalled.length > 0) await delay(stallingMs);
  const readers = await attach(
    plan.subscribers * runs.length,
    (index) => new StreamSubscriber(request(runs[of(index)], false), measured[of(index)] ?? ignored),
  );
  await caughtUp(readers.map((reader, index) => ({ reader, run: runs[of(index)] })));

  const before = await processUsage(target.pid);
  let rssMax = before?.rssBytes ?? 0;
  const memory = setInterval(async () => {
    rssMax = Math.max(rssMax, (await processUsage(target.pid))?.rssBytes ?? 0);
  }, memoryEveryMs);
  const loopDelay = monitorEventLoopDelay({ resolution: 1 });
  loopDelay.enable();
  const ownCpu = process.cpuUsage();
  const startedMs = performance.now();
  isSpeaking = true;
  try {
    await Promise.all(runs.map((run) => target.app.approve(plan.host, run)));
    await Promise.race([Promise.all(readers.map(({ closed }) => closed)), delay(plan.withinMs)]);
  } finally {
    clearInterval(memory);
    loopDelay.disable();
  }
  const wallMs = performance.now() - startedMs;
  const own = process.cpuUsage(ownCpu);
  const usage = await processUsage(target.pid);
  const ended = await Promise.all(runs.map((run) => target.app.read(plan.host, run.id)));
  for (const one of stalled) one.resume();
  await Promise.race([Promise.all(stalled.map(({ closed }) => closed)), delay(stalledWithinMs)]);
  const everybody = [
    ...readers.map((reader, index) => ({ reader, run: ended[of(index)] })),
    ...stalled.map((reader, index) => ({ reader, run: ended[of(index)] })),
  ];
  for (const { reader } of everybody) reader.close();
  return {
    latencyMs,
    deliveries,
    seconds: Math.max(0.001, (lastAtMs - firstAtMs) / 1000),
    events: ended[0]?.last_event_id ?? 0,
    bytesOfRun: readers[0]?.bytes ?? 0,
    incomplete: everybody.filter(({ reader, run }) => reader.lastId !== run?.last_event_id).length,
    gaps: everybody.reduce((sum, { reader }) => sum + reader.gaps, 0),
    gatewayCpuShare: usage && before ? (usage.cpuMs - before.cpuMs) / wallMs : Number.NaN,
    rssGrowthKib: (rssMax - (alone?.rssBytes ?? 0)) / 1024,
    ownCpuShare: (own.user + own.system) / 1000 / wallMs,
    ownLoopDelayP99Ms: loopDelay.percentile(99) / 1e6,
    runIds: runs.map(({ id }) => id),
  };
}
