/** What the api's processes tell Prometheus about themselves, beside what they do. */
import { collectDefaultMetrics, Gauge, type Registry } from "prom-client";
import type { Bus } from "#bus/bus.ts";
import { exportBusLink } from "#bus/bus_metrics.ts";
import { version } from "#contracts/version.ts";
import type { SqlPool } from "#store/sql.ts";

export interface ProcessSources {
  role: "api" | "worker";
  sql: Pick<SqlPool, "transactions">;
  bus: Bus;
}

export function exportProcess(registry: Registry, { role, sql, bus }: ProcessSources): void {
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: "frontdesk_build_info",
    help: "1, with the version of Frontdesk and of Node",
    labelNames: ["role", "version", "node"],
    registers: [registry],
  }).set({ role, version, node: process.version }, 1);
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(read());
      },
    });
  gauge("frontdesk_pg_pool_in_use", "Transactions that hold a connection of this process", sql.transactions.taken);
  gauge("frontdesk_pg_pool_waiting", "Transactions that wait for one", sql.transactions.waiting);
  exportBusLink(registry, bus);
}
