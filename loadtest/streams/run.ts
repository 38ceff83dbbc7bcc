/** One run of the streams test against one gateway: hold, deliver, deliver all it can, stall, replay. */
import { setTimeout as delay } from "node:timers/promises";
import { createAppClient } from "../kit/app_client.ts";
import type { Figure } from "../kit/figures.ts";
import type { GatewayUnderLoad } from "../kit/frontdesk_processes.ts";
import { createManagementClient } from "../kit/management_client.ts";
import { processUsage } from "../kit/process_usage.ts";
import { Distribution } from "../kit/statistics.ts";
import { StreamSubscriber } from "../kit/stream_subscriber.ts";
import { attach, type FanOutPlan, type FanOutResult, type FanOutTarget, fanOut, startGated } from "./fan_out.ts";
import type { StreamsOptions } from "./options.ts";
import { heavyInput, heavyWorkflow, speakingWorkflow } from "./workflows.ts";

/** How much longer than it speaks a run may take to be read. */
const lateMs = 30_000;
/** Idle connections are spread over so many runs. */
const heldRuns = 10;
/** Readers beside the stalled ones: their bytes must fit through the machine. */
const besideStalledMax = 100;

export async function runStreams(
  gateway: GatewayUnderLoad,
  options: StreamsOptions,
  report: (line: string) => void,
): Promise<Figure[]> {
  const { accessKey } = gateway.access;
  const app = createAppClient({ url: gateway.url, accessKey, connections: 32 });
  const management = createManagementClient(gateway.access);
  const target: FanOutTarget = { app, port: gateway.port, accessKey, pid: gateway.pid };
  const { seconds, runs, subscribers } = options;
  const plan: FanOutPlan = { host: "", input: {}, runs, subscribers, stalled: 0, withinMs: seconds * 1000 + lateMs };
  const deploy = (eventsPerS: number) => management.deployApp("Streams", speakingWorkflow({ eventsPerS, seconds }));
  const figures: Figure[] = [];
  try {
    const steady = await deploy(options.eventsPerS);
    // The first readers make the processes warm; what they take is not measured.
    report("warming up");
    await fanOut(target, { ...plan, host: steady, runs: 1, subscribers: Math.min(50, subscribers) });
    if (options.held > 0) {
      report(`holding ${options.held} connections`);
      figures.push(...(await hold(target, steady, options.held)));
    }
    report(`${options.eventsPerS} events a second to ${subscribers} readers of ${runs} runs`);
    figures.push(...steadyFigures(await fanOut(target, { ...plan, host: steady })));
    if (options.peakEventsPerS > 0) {
      const host = await deploy(options.peakEventsPerS);
      report(`${options.peakEventsPerS} events a second to ${subscribers} readers of ${runs} runs`);
      const peak = await fanOut(target, { ...plan, host });
      figures.push(...peakFigures(peak));
      if (options.replayers > 0) figures.push(...(await replay(target, host, peak, options.replayers, report)));
    }
    if (options.stalled > 0) {
      const host = await management.deployApp("Heavy", heavyWorkflow({ eventsPerS: options.eventsPerS, seconds }));
      const beside = {
        ...plan,
        host,
        input: heavyInput,
        runs: 1,
        subscribers: Math.min(besideStalledMax, subscribers),
      };
      report("a heavy run, nobody stalled");
      const alone = await fanOut(target, beside);
      report(`a heavy run, ${options.stalled} stalled`);
      figures.push(...stalledFigures(alone, await fanOut(target, { ...beside, stalled: options.stalled })));
    }
    return figures;
  } finally {
    await app.close();
  }
}

async function hold(target: FanOutTarget, host: string, count: number): Promise<Figure[]> {
  const runs = await startGated(target.app, host, {}, heldRuns);
  const before = await processUsage(target.pid);
  const attachMs = new Distribution();
  const startedMs = performance.now();
  const readers = await attach(count, (index) => {
    const path = `/v1/runs/${runs[index % runs.length]?.id}/stream`;
    const dialledMs = performance.now();
    const reader = new StreamSubscriber(
      { port: target.port, host, accessKey: target.accessKey, path },
      { onEvent: () => undefined },
    );
    void reader.opened.then(() => attachMs.record(performance.now() - dialledMs));
    return reader;
  });
  const attachSeconds = (performance.now() - startedMs) / 1000;
  // What attaching took is given back first.
  await delay(2000);
  const after = await processUsage(target.pid);
  const held = readers.filter(({ status }) => status === 200).length;
  for (const reader of readers) reader.close();
  await delay(500);
  return [
    { name: "connections held", unit: "", value: held, goal: "15,000 or the descriptor limit" },
    {
      name: "memory a connection",
      unit: "KiB",
      value: before && after ? (after.rssBytes - before.rssBytes) / 1024 / Math.max(1, held) : Number.NaN,
      goal: "≤ 4",
    },
    { name: "attached a second", unit: "1/s", value: count / attachSeconds },
    { name: "attach to first byte", unit: "ms", value: attachMs },
  ];
}

function steadyFigures(result: FanOutResult): Figure[] {
  return [
    { name: "emit to client", unit: "ms", value: result.latencyMs, goal: "p50 ≤ 15, p99 ≤ 60" },
    { name: "deliveries", unit: "1/s", value: result.deliveries / result.seconds },
    { name: "gateway CPU", unit: "cores", value: result.gatewayCpuShare },
    { name: "incomplete readers and gaps", unit: "", value: result.incomplete + result.gaps, goal: "0" },
    { name: "load tool CPU", unit: "cores", value: result.ownCpuShare },
    { name: "load tool late (p99)", unit: "ms", value: result.ownLoopDelayP99Ms },
  ];
}

function peakFigures(result: FanOutResult): Figure[] {
  return [
    { name: "peak: emit to client", unit: "ms", value: result.latencyMs },
    { name: "peak: deliveries", unit: "1/s", value: result.deliveries / result.seconds, goal: "≥ 300,000" },
    {
      name: "peak: bytes",
      unit: "MB/s",
      value: ((result.deliveries / Math.max(1, result.events)) * result.bytesOfRun) / result.seconds / 1e6,
    },
    {
      name: "peak: gateway CPU a delivery",
      unit: "µs",
      value: (result.gatewayCpuShare * 1e6 * result.seconds) / Math.max(1, result.deliveries),
    },
    { name: "peak: gateway CPU", unit: "cores", value: result.gatewayCpuShare },
    { name: "peak: incomplete readers and gaps", unit: "", value: result.incomplete + result.gaps, goal: "0" },
    { name: "peak: load tool CPU", unit: "cores", value: result.ownCpuShare },
  ];
}

function stalledFigures(alone: FanOutResult, beside: FanOutResult): Figure[] {
  const p99 = (result: FanOutResult) => result.latencyMs.percentile(0.99);
  return [
    { name: "heavy run: emit to client", unit: "ms", value: alone.latencyMs },
    { name: "beside stalled readers: emit to client", unit: "ms", value: beside.latencyMs },
    { name: "p99 beside stalled readers to alone", unit: "×", value: p99(beside) / p99(alone), goal: "≤ 1.2" },
    { name: "stalled readers: memory growth", unit: "MiB", value: beside.rssGrowthKib / 1024, goal: "≤ 64" },
    { name: "heavy run: memory growth without any", unit: "MiB", value: alone.rssGrowthKib / 1024 },
    { name: "heavy run: bytes for each reader", unit: "MiB", value: beside.bytesOfRun / 1024 / 1024 },
    { name: "stalled: incomplete readers and gaps", unit: "", value: beside.incomplete + beside.gaps, goal: "0" },
  ];
}

/** One client alone, then all at once, from the first event of a run that is over. */
async function replay(
  target: FanOutTarget,
  host: string,
  { runIds, events }: FanOutResult,
  count: number,
  report: (line: string) => void,
): Promise<Figure[]> {
  const path = `/v1/runs/${runIds[0]}/stream`;
  const request = { port: target.port, host, accessKey: target.accessKey, path };
  const read = async (readers: number) => {
    const startedMs = performance.now();
    const all = Array.from({ length: readers }, () => new StreamSubscriber(request, { onEvent: () => undefined }));
    await Promise.race([Promise.all(all.map(({ closed }) => closed)), delay(lateMs)]);
    const seconds = (performance.now() - startedMs) / 1000;
    const incomplete = all.filter(({ lastId, gaps }) => lastId !== events || gaps > 0).length;
    for (const reader of all) reader.close();
    return { seconds, incomplete };
  };
  // A gateway forgets a run that nobody reads after ten seconds; then it is read from the log, as by a client that comes back later.
  report("waiting until the gateway has forgotten the run");
  await delay(12_000);
  report(`replaying ${events} events to one client, then to ${count}`);
  const alone = await read(1);
  const together = await read(count);
  return [
    { name: "replay: events of the run", unit: "", value: events },
    { name: "replay: whole run to one client", unit: "ms", value: alone.seconds * 1000, goal: "≤ 300 for 10,000" },
    { name: "replay: events", unit: "1/s", value: (events * count) / together.seconds, goal: "≥ 50,000" },
    { name: "replay: incomplete", unit: "", value: alone.incomplete + together.incomplete, goal: "0" },
  ];
}
