/** What things cost, as measured: `costs.json` has each with the day and the command that measured it. */
import { readFileSync, writeFileSync } from "node:fs";

export interface Cost {
  value: number;
  unit: string;
  /** The day it was measured, as YYYY-MM-DD. */
  measured: string;
  /** The command that measures it. */
  by: string;
}

export const costNames = [
  "call_cpu",
  "call_cpu_silero",
  "call_memory",
  "stream_memory",
  "delivery_cpu",
  "run_gateway_cpu",
  "run_api_cpu",
  "run_worker_cpu",
  "run_postgres_cpu",
  "run_storage",
  "event_storage",
  "run_wal",
  "gateway_memory",
  "api_memory",
  "worker_memory",
  "api_connections",
  "worker_connections",
] as const;
export type CostName = (typeof costNames)[number];
export type Costs = Readonly<Record<CostName, Cost>>;

const file = new URL("./costs.json", import.meta.url);

export function readCosts(): Costs {
  return JSON.parse(readFileSync(file, "utf8"));
}

/** Replaces those that were measured now, and keeps the others. */
export function writeCosts(measured: Partial<Record<CostName, Cost>>): void {
  const all = { ...readCosts(), ...measured };
  const sorted = Object.fromEntries(costNames.map((name) => [name, all[name]]));
  writeFileSync(file, `${JSON.stringify(sorted, null, 2)}\n`);
}
