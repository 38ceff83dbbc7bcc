/** Picks the bus that a process is configured for. */
import type { Bus } from "./bus.ts";
import { createMemoryBus } from "./memory_bus.ts";

/**
 * Redis when `redisUrl` is set, otherwise the memory bus of this process alone.
 * @throws BusUnavailableError when Redis cannot be reached
 */
export async function openBus(options: { redisUrl?: string | undefined } = {}): Promise<Bus> {
  if (!options.redisUrl) return createMemoryBus();
  const { createRedisBus } = await import("./redis_bus.ts");
  return createRedisBus(options.redisUrl);
}
