/** From what things cost to what a load needs, and to what a machine carries. Pure. */
import type { CostName, Costs } from "./costs.ts";

export interface Demand {
  /** At once. */
  calls: number;
  /** Readers of event streams, at once. */
  streams: number;
  /** That each reader gets, a second. */
  eventsPerS: number;
  runsPerS: number;
  eventsPerRun: number;
  /** How long runs are kept. */
  retentionDays: number;
  vad: "energy" | "silero";
}

/** The pods of `k8s/base`. */
export const pods = {
  gateway: { cores: 2, memoryMib: 1536, callSlots: 250 },
  api: { cores: 1, memoryMib: 512 },
  worker: { cores: 1, memoryMib: 1024 },
} as const;

/** What is asked for is so many times what is needed. */
export const headroom = 1.4;
/** Of a gateway's slots, what KEDA's query keeps free. */
export const freeSlots = 0.3;
/** Two of everything. */
const replicasMin = 2;

const mib = 1024 ** 2;
const gib = 1024 ** 3;
const dayS = 24 * 60 * 60;
const monthS = 30 * dayS;
const megabyte = 1e6;

export interface Need {
  pods: number;
  /** What the load takes, without head-room. */
  cores: number;
  memoryMib: number;
  /** Why it takes so many pods. */
  because: string;
}

export interface Plan {
  gateway: Need;
  api: Need;
  worker: Need;
  postgres: { cores: number; connections: number; walMbPerS: number; gibPerMonth: number; gibKept: number };
}

/** What the load takes, by role, without what a role takes when it idles. */
function loadOf(costs: Costs, demand: Demand) {
  const of = (name: CostName) => costs[name].value;
  const callCpu = of(demand.vad === "silero" ? "call_cpu_silero" : "call_cpu");
  const deliveriesPerS = demand.streams * demand.eventsPerS;
  const bytesPerRun = of("run_storage") + demand.eventsPerRun * of("event_storage");
  return {
    callCores: (demand.calls * callCpu) / 1000,
    deliveryCores: (deliveriesPerS * of("delivery_cpu")) / 1e6,
    runGatewayCores: (demand.runsPerS * of("run_gateway_cpu")) / 1000,
    apiCores: (demand.runsPerS * of("run_api_cpu")) / 1000,
    workerCores: (demand.runsPerS * of("run_worker_cpu")) / 1000,
    postgresCores: (demand.runsPerS * of("run_postgres_cpu")) / 1000,
    callMib: (demand.calls * of("call_memory") * megabyte) / mib,
    streamMib: (demand.streams * of("stream_memory") * 1024) / mib,
    bytesPerS: demand.runsPerS * bytesPerRun,
    walBytesPerS: demand.runsPerS * of("run_wal"),
  };
}

/** Pods of the size of `k8s/base`, with head-room, and what Postgres needs. */
export function planFor(costs: Costs, demand: Demand): Plan {
  const load = loadOf(costs, demand);
  const { callCores, deliveryCores, runGatewayCores, callMib, streamMib } = load;
  const gatewayCores = callCores + deliveryCores + runGatewayCores;
  const gateway = needOf(costs, "gateway", { cores: gatewayCores, memoryMib: callMib + streamMib }, [
    [demand.calls / (pods.gateway.callSlots * (1 - freeSlots)), "call slots"],
    // One thread writes to all readers.
    [headroom * (deliveryCores + runGatewayCores), "its one thread for sockets"],
  ]);
  const api = needOf(costs, "api", { cores: load.apiCores, memoryMib: 0 }, []);
  const worker = needOf(costs, "worker", { cores: load.workerCores, memoryMib: 0 }, []);
  const gibPerS = load.bytesPerS / gib;
  const connections = api.pods * costs.api_connections.value + worker.pods * costs.worker_connections.value;
  return {
    gateway,
    api,
    worker,
    postgres: {
      cores: load.postgresCores,
      connections,
      walMbPerS: load.walBytesPerS / megabyte,
      gibPerMonth: gibPerS * monthS,
      gibKept: gibPerS * dayS * demand.retentionDays,
    },
  };
}

type Reason = readonly [pods: number, because: string];

function needOf(
  costs: Costs,
  role: keyof typeof pods,
  load: { cores: number; memoryMib: number },
  others: readonly Reason[],
): Need {
  const { cores, memoryMib } = pods[role];
  const idleMib = (costs[`${role}_memory`].value * megabyte) / mib;
  const reasons: Reason[] = [
    [replicasMin, "two of everything"],
    [(headroom * load.cores) / cores, "CPU"],
    [(headroom * load.memoryMib) / (memoryMib - headroom * idleMib), "memory"],
    ...others,
  ];
  const [most, because] = reasons.reduce((one, other) => (Math.ceil(other[0]) > Math.ceil(one[0]) ? other : one));
  const count = Math.ceil(most);
  return { pods: count, cores: load.cores, memoryMib: load.memoryMib + count * idleMib, because };
}

/** Whether the requests of a gateway carry all of its slots. @returns what is short, nothing when it fits */
export function shortOfSlots(
  costs: Costs,
  { cores, memoryMib, callSlots }: { cores: number; memoryMib: number; callSlots: number },
): string[] {
  const neededCores = (headroom * callSlots * costs.call_cpu.value) / 1000;
  const neededMib = (headroom * (costs.gateway_memory.value + callSlots * costs.call_memory.value) * megabyte) / mib;
  return [
    ...(neededCores > cores ? [`${callSlots} calls take ${neededCores.toFixed(2)} cores, ${cores} are asked for`] : []),
    ...(neededMib > memoryMib
      ? [`${callSlots} calls take ${Math.ceil(neededMib)} MiB, ${memoryMib} are asked for`]
      : []),
  ];
}

export interface Carried {
  /** Each alone, with head-room, everything on the one machine. */
  calls: number;
  streams: number;
  runsPerS: number;
  bounds: Record<"calls" | "streams" | "runsPerS", "CPU" | "memory" | "one thread">;
}

/** What a machine carries on which all roles, Postgres and Redis run. */
export function carriedBy(
  costs: Costs,
  { cores, memoryGib }: { cores: number; memoryGib: number },
  demand: Pick<Demand, "eventsPerS" | "vad">,
): Carried {
  const one = { calls: 0, streams: 0, runsPerS: 0, eventsPerRun: 0, retentionDays: 0, ...demand };
  const idleBytes =
    (costs.gateway_memory.value + costs.api_memory.value + costs.worker_memory.value) * headroom * megabyte;
  // A quarter is Postgres's and the system's.
  const freeMib = Math.max(0, memoryGib * gib * 0.75 - idleBytes) / mib / headroom;
  const call = loadOf(costs, { ...one, calls: 1 });
  const stream = loadOf(costs, { ...one, streams: 1 });
  const run = loadOf(costs, { ...one, runsPerS: 1 });
  const runCores = run.runGatewayCores + run.apiCores + run.workerCores + run.postgresCores;
  const least = <Bound extends string>(...bounds: readonly (readonly [number, Bound])[]) =>
    bounds.reduce((least, other) => (other[0] < least[0] ? other : least));
  const calls = least([cores / headroom / call.callCores, "CPU" as const], [freeMib / call.callMib, "memory" as const]);
  const streams = least(
    [1 / headroom / stream.deliveryCores, "one thread" as const],
    [freeMib / stream.streamMib, "memory" as const],
  );
  return {
    calls: Math.floor(calls[0]),
    streams: Math.floor(streams[0]),
    runsPerS: Math.floor(cores / headroom / runCores),
    bounds: { calls: calls[1], streams: streams[1], runsPerS: "CPU" },
  };
}
