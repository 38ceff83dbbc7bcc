/** One run of the runs test: at a pace for the queue's wait, as many as there can be, and streamed. */
import { setTimeout as delay } from "node:timers/promises";
import { type AppClient, createAppClient, type LoadedRun } from "../kit/app_client.ts";
import type { Figure } from "../kit/figures.ts";
import type { GatewayUnderLoad } from "../kit/frontdesk_processes.ts";
import { createManagementClient } from "../kit/management_client.ts";
import { Distribution } from "../kit/statistics.ts";
import { StreamSubscriber } from "../kit/stream_subscriber.ts";
import type { RunsOptions } from "./options.ts";

const creationsAtOnce = 32;
const finishWithinMs = 60_000;
const pageSize = 100;

/** A run of it is nine events. */
export const threeNodes = {
  nodes: [
    { id: "in", type: "input" },
    { id: "text", type: "template", config: { template: "Hello {{name}}" }, inputs: { name: "$.input.name" } },
    { id: "out", type: "output", inputs: { text: "$.nodes.text.output.text" } },
  ],
  edges: [
    { from: "in", to: "text" },
    { from: "text", to: "out" },
  ],
};

export async function runRuns(
  gateway: GatewayUnderLoad,
  options: RunsOptions,
  report: (line: string) => void,
): Promise<Figure[]> {
  const { accessKey } = gateway.access;
  const management = createManagementClient(gateway.access);
  const app = createAppClient({ url: gateway.url, accessKey, connections: creationsAtOnce });
  try {
    report("warming up");
    const warm = await management.deployApp("Warm", threeNodes);
    await burst(app, warm, 200);
    report(`${options.rate} background runs a second`);
    const paced = await pace(app, await management.deployApp("Paced", threeNodes), options);
    report(`${options.streamRate} streamed runs a second`);
    const streamed = await streamRuns(gateway, await management.deployApp("Streamed", threeNodes), options);
    report(`${options.burst} background runs as fast as they are taken`);
    const fast = await burst(app, await management.deployApp("Burst", threeNodes), options.burst);
    return [...paced, ...streamed, ...fast];
  } finally {
    await app.close();
  }
}

/** Calls `start` at an even pace, whether the calls before have answered or not. Settles when all have. */
async function atRate<T>(rate: number, seconds: number, start: () => Promise<T>): Promise<T[]> {
  const startedMs = performance.now();
  const started: Promise<T>[] = [];
  for (let index = 0; index < rate * seconds; index += 1) {
    const dueMs = startedMs + (index * 1000) / rate;
    if (dueMs > performance.now()) await delay(dueMs - performance.now());
    started.push(start());
  }
  return Promise.all(started);
}

async function pace(app: AppClient, host: string, { rate, seconds }: RunsOptions): Promise<Figure[]> {
  const acceptedMs = new Distribution();
  await atRate(rate, seconds, async () => {
    const sentMs = performance.now();
    await app.start(host, { name: "you" });
    acceptedMs.record(performance.now() - sentMs);
  });
  const runs = await finished(app, host);
  const waitMs = new Distribution();
  const wholeMs = new Distribution();
  for (const run of runs) {
    if (run.started_at) waitMs.record(between(run.created_at, run.started_at));
    if (run.ended_at) wholeMs.record(between(run.created_at, run.ended_at));
  }
  return [
    { name: "background: POST to 202", unit: "ms", value: acceptedMs },
    { name: "background: queue wait", unit: "ms", value: waitMs, goal: "p50 ≤ 5" },
    { name: "background: created to ended", unit: "ms", value: wholeMs },
    { name: "background: not succeeded", unit: "", value: failures(runs, rate * seconds), goal: "0" },
  ];
}

async function burst(app: AppClient, host: string, count: number): Promise<Figure[]> {
  const startedMs = performance.now();
  let next = 0;
  const create = async () => {
    while (next < count) {
      next += 1;
      await app.start(host, { name: "you" });
    }
  };
  await Promise.all(Array.from({ length: creationsAtOnce }, create));
  const createdS = (performance.now() - startedMs) / 1000;
  const runs = await finished(app, host);
  const firstMs = Math.min(...runs.map((run) => Date.parse(run.created_at)));
  const lastMs = Math.max(...runs.map((run) => Date.parse(run.ended_at ?? run.created_at)));
  return [
    { name: "burst: created", unit: "1/s", value: count / createdS },
    { name: "burst: begun and ended", unit: "1/s", value: (runs.length * 1000) / (lastMs - firstMs), goal: "≥ 300" },
    { name: "burst: not succeeded", unit: "", value: failures(runs, count), goal: "0" },
  ];
}

async function streamRuns(
  gateway: GatewayUnderLoad,
  host: string,
  { streamRate, seconds }: RunsOptions,
): Promise<Figure[]> {
  const firstByteMs = new Distribution();
  const firstEventMs = new Distribution();
  const wholeMs = new Distribution();
  let incomplete = 0;
  const body = { stream: true, input: { name: "you" } };
  const { accessKey } = gateway.access;
  await atRate(streamRate, seconds, async () => {
    const sentMs = performance.now();
    const onEvent = (id: number) => {
      if (id === 1) firstEventMs.record(performance.now() - sentMs);
    };
    const reader = new StreamSubscriber({ port: gateway.port, host, accessKey, path: "/v1/runs", body }, { onEvent });
    await reader.opened;
    firstByteMs.record(performance.now() - sentMs);
    await Promise.race([reader.closed, delay(finishWithinMs, undefined, { ref: false })]);
    wholeMs.record(performance.now() - sentMs);
    if (reader.gaps > 0 || reader.lastId < threeNodes.nodes.length) incomplete += 1;
    reader.close();
  });
  return [
    { name: "stream: POST to first byte", unit: "ms", value: firstByteMs, goal: "p50 ≤ 10, p99 ≤ 40" },
    { name: "stream: POST to first event", unit: "ms", value: firstEventMs },
    { name: "stream: POST to end", unit: "ms", value: wholeMs },
    { name: "stream: incomplete", unit: "", value: incomplete, goal: "0" },
  ];
}

/** All runs of the app, once none is under way any more. */
async function finished(app: AppClient, host: string): Promise<LoadedRun[]> {
  const untilMs = performance.now() + finishWithinMs;
  const underWay = async () => {
    const totals = await Promise.all(
      ["pending", "running"].map(async (status) => (await app.list(host, `status=${status}&page_size=1`)).total),
    );
    return totals.reduce((sum, total) => sum + total, 0);
  };
  while (performance.now() < untilMs && (await underWay()) > 0) await delay(200);
  const runs: LoadedRun[] = [];
  for (let page = 1; ; page += 1) {
    const { runs: more } = await app.list(host, `page=${page}&page_size=${pageSize}`);
    runs.push(...more);
    if (more.length < pageSize) return runs;
  }
}

function failures(runs: readonly LoadedRun[], started: number): number {
  return started - runs.filter(({ status }) => status === "succeeded").length;
}

function between(fromIso: string, toIso: string): number {
  return Date.parse(toIso) - Date.parse(fromIso);
}
