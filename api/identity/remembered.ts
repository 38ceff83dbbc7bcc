/**
 * What a credential opens, remembered for at most 10 s and dropped at once when the bus says so.
 * A look-up that an invalidation overtook is used, and not remembered.
 */
import { type Bus, topics } from "#bus/bus.ts";

const rememberedForMs = 10_000;
/** Above this many the oldest is forgotten. */
const rememberedMax = 10_000;

export interface Remembered<Value> {
  /** The remembered value of `key`, or what `find` finds; undefined is not remembered. */
  get(key: string, find: () => Promise<Found<Value> | undefined>): Promise<Value | undefined>;
  close(): Promise<void>;
}

export interface Found<Value> {
  value: Value;
  /** When it ends by itself. */
  expiresAt?: Date | null;
}

export async function openRemembered<Value>({ bus, now }: { bus: Bus; now(): Date }): Promise<Remembered<Value>> {
  const entries = new Map<string, { value: Value; untilMs: number }>();
  let invalidations = 0;
  const unsubscribe = await bus.subscribe(topics.credentialRevoked, (key) => {
    invalidations += 1;
    entries.delete(key);
  });
  return {
    async get(key, find) {
      const nowMs = now().getTime();
      const known = entries.get(key);
      if (known && known.untilMs > nowMs) return known.value;
      const before = invalidations;
      const found = await find();
      if (!found) return undefined;
      if (invalidations === before) {
        const endsAtMs = found.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY;
        entries.delete(key);
        entries.set(key, { value: found.value, untilMs: Math.min(nowMs + rememberedForMs, endsAtMs) });
        if (entries.size > rememberedMax) {
          const [oldest] = entries.keys();
          if (oldest !== undefined) entries.delete(oldest);
        }
      }
      return found.value;
    },
    close: unsubscribe,
  };
}
