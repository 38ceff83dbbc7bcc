/** The bus's figures for Prometheus, the same in every role. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { Bus } from "./bus.ts";

export function exportBusLink(registry: Registry, bus: Pick<Bus, "link">): void {
  new Gauge({
    name: "frontdesk_bus_up",
    help: "1 while this process is connected to the bus, otherwise 0",
    registers: [registry],
    collect() {
      this.set(bus.link().isUp ? 1 : 0);
    },
  });
  new Counter({
    name: "frontdesk_bus_reconnects_total",
    help: "Times that this process came back to the bus after having lost it",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(bus.link().reconnects);
    },
  });
}
