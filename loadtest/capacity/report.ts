/** A plan and its costs as text. */
import { table } from "../kit/text_table.ts";
import type { Costs } from "./costs.ts";
import { type Carried, type Demand, freeSlots, headroom, type Plan, pods } from "./plan.ts";

const whole = (value: number) => Math.round(value).toLocaleString("en-US");
const short = (value: number) => (value >= 100 ? whole(value) : value.toFixed(value >= 10 ? 1 : 2));
const percent = Math.round((headroom - 1) * 100);

export function planText(demand: Demand, plan: Plan): string {
  const { calls, streams, eventsPerS, runsPerS, eventsPerRun, vad } = demand;
  const rows = (["gateway", "api", "worker"] as const).map((role) => {
    const { pods: count, cores, memoryMib, because } = plan[role];
    const { cores: coresEach, memoryMib: mibEach } = pods[role];
    return [role, whole(count), `${coresEach}`, `${whole(mibEach)}`, short(cores), whole(memoryMib), because];
  });
  const { postgres } = plan;
  return [
    `${whole(calls)} calls (${vad}), ${whole(streams)} readers of ${eventsPerS} events/s, ${whole(runsPerS)} runs/s of ${eventsPerRun} events`,
    table(["pods of k8s/base", "", "cores each", "MiB each", "cores used", "MiB used", "bounded by"], rows),
    "",
    table(
      ["Postgres", ""],
      [
        ["cores, head-room included", short(postgres.cores * headroom)],
        ["max_connections at least (with apis straight on it)", whole(postgres.connections + 10)],
        ["WAL, MB/s", short(postgres.walMbPerS)],
        ["GiB a month", whole(postgres.gibPerMonth)],
        [`GiB that ${demand.retentionDays} days keep`, whole(postgres.gibKept)],
      ],
    ),
    `Head-room: ${percent} % on what is used; KEDA keeps ${freeSlots * 100} % of the call slots free.`,
  ].join("\n");
}

export function carriedText({ cores, memoryGib }: { cores: number; memoryGib: number }, carried: Carried): string {
  return [
    `One machine of ${cores} cores and ${memoryGib} GiB with everything on it carries, of each alone:`,
    table(
      ["", "", "bounded by"],
      [
        ["calls at once", whole(carried.calls), carried.bounds.calls],
        ["readers of streams at once", whole(carried.streams), carried.bounds.streams],
        ["runs a second", whole(carried.runsPerS), carried.bounds.runsPerS],
      ],
    ),
  ].join("\n");
}

export function costsText(costs: Costs): string {
  const rows = Object.entries(costs).map(([name, { value, unit, measured, by }]) => [
    name,
    `${value} ${unit}`,
    measured,
    by,
  ]);
  return ["From loadtest/capacity/costs.json:", table(["", "", "measured", "by"], rows)].join("\n");
}
