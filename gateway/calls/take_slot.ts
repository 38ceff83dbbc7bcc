/**
 * A slot for a newcomer. When the house is full, a call whose client has been missing for a while gives
 * up the rest of its resume window: who is there goes before who may come back.
 */
import type { CallRegistry } from "./call_registry.ts";
import type { CallSlots, Slot } from "./call_slots.ts";

interface House {
  slots: CallSlots;
  registry: CallRegistry;
  isDraining(): boolean;
}

/** Whether `takeSlot` would find one. */
export function hasSlot({ slots, registry, isDraining }: House, nowMs: number): boolean {
  return !isDraining() && (slots.inUse < slots.total || registry.longestLost(nowMs) !== undefined);
}

/** A free slot, or that of the call which waits longest for its client, and which ends here. */
export function takeSlot(house: House, nowMs: number): Slot | undefined {
  if (!hasSlot(house, nowMs)) return undefined;
  const free = house.slots.take();
  if (free) return free;
  house.registry.longestLost(nowMs)?.giveUpLink();
  return house.slots.take();
}
