/** Tells over the bus what the api itself changed about runs. A lost message is no loss: it is also in the log. */
import type { Bus } from "#bus/bus.ts";
import { type RunEventBatch, runTopic } from "#contracts/internal_runs.ts";
import type { RunEvent } from "#contracts/run_event.ts";
import type { CanceledRuns } from "./run_cancel.ts";
import { type RunControl, runControlTopic } from "./run_queue.ts";

export function publishEvents(bus: Bus, events: readonly RunEvent[]): void {
  for (const event of events) {
    const batch: RunEventBatch = { events: [{ id: event.id, type: event.type, json: JSON.stringify(event) }] };
    bus.publish(runTopic(event.run_id), JSON.stringify(batch)).catch(() => undefined);
  }
}

export function tellHolder(bus: Bus, control: RunControl): void {
  bus.publish(runControlTopic, JSON.stringify(control)).catch(() => undefined);
}

export function publishCanceled(bus: Bus, { marked, ended }: CanceledRuns): void {
  publishEvents(bus, ended);
  for (const run_id of marked) tellHolder(bus, { run_id, is: "canceled" });
}
