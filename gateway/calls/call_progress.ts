/** What has been learned of a call since the api last took it. Pure. */
import type { CallEvent, CallProgress, CallRequest, CallTool } from "#contracts/call_record.ts";

/** Items, turns, tools or requests that may wait for the api; the oldest go when a call outlasts a long outage. */
const entriesMax = 2000;

export type ProgressGrowth = Omit<CallProgress, "call_id">;

export class PendingProgress {
  #items = new Map<string, CallProgress["items"][number]>();
  #turns = new Map<string, CallProgress["turns"][number]>();
  #events = new Map<string, CallEvent>();
  #tools = new Map<string, CallTool>();
  #requests = new Map<string, CallRequest>();
  #usage: CallProgress["usage"];

  add(growth: ProgressGrowth): void {
    for (const item of growth.items) upsert(this.#items, item.item_id, item);
    for (const turn of growth.turns) upsert(this.#turns, turn.turn_id, turn);
    for (const event of growth.events ?? []) upsert(this.#events, event.event_id, event);
    for (const tool of growth.tools ?? []) upsert(this.#tools, tool.tool_call_id, tool);
    for (const request of growth.requests ?? []) upsert(this.#requests, request.request_id, request);
    if (growth.usage) this.#usage = growth.usage;
  }

  /** Puts back what the api did not take; newer entries win. */
  putBack(growth: ProgressGrowth): void {
    const newer = this.take();
    this.add(growth);
    this.add(newer);
  }

  /** Everything that waits; nothing waits afterwards. */
  take(): ProgressGrowth {
    const growth: ProgressGrowth = {
      items: [...this.#items.values()],
      turns: [...this.#turns.values()],
      ...(this.#events.size > 0 && { events: [...this.#events.values()] }),
      ...(this.#tools.size > 0 && { tools: [...this.#tools.values()] }),
      ...(this.#requests.size > 0 && { requests: [...this.#requests.values()] }),
      ...(this.#usage && { usage: this.#usage }),
    };
    this.#items = new Map();
    this.#turns = new Map();
    this.#events = new Map();
    this.#tools = new Map();
    this.#requests = new Map();
    this.#usage = undefined;
    return growth;
  }
}

function upsert<T>(entries: Map<string, T>, id: string, entry: T): void {
  entries.set(id, entry);
  if (entries.size > entriesMax) for (const oldest of [...entries.keys()].slice(0, 1)) entries.delete(oldest);
}
