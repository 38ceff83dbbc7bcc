/**
 * Finds a gateway that lets the agent sit down in a room: asks over the bus, the one with the most
 * free slots first. The figures on the bus are a guess of some seconds ago; the slot is counted by
 * the gateway that takes it.
 */
import { Value } from "@sinclair/typebox/value";
import { type Bus, type CapacityFigures, topics } from "#bus/bus.ts";
import { roomLimits, SeatReply, type SeatRequest } from "#contracts/room_call.ts";

export type WantedSeat = Omit<SeatRequest, "request_id" | "reply_to">;
export type FoundSeat = { result: "seated"; gatewayId: string } | { result: "capacity" | "unavailable" };

export interface SeatRequests {
  /** @throws when the bus does not answer */
  find(wanted: WantedSeat): Promise<FoundSeat>;
  close(): Promise<void>;
}

/** Gateways that are asked at most before the caller is told to come back. */
const askedMax = 4;
/** What they may take together. */
export const seatsMsMax = askedMax * roomLimits.seatAnswerMs;

export function createSeatRequests({ bus, answerMs }: { bus: Bus; answerMs: number }): SeatRequests {
  const askerId = crypto.randomUUID();
  const waiting = new Map<string, (result: SeatReply["result"]) => void>();
  let subscription: Promise<() => Promise<void>> | undefined;

  const hear = (payload: string) => {
    const reply: unknown = JSON.parse(payload);
    if (Value.Check(SeatReply, reply)) waiting.get(reply.request_id)?.(reply.result);
  };

  /** Subscribed once, with the first request: most processes never ask. */
  async function listen(): Promise<void> {
    subscription ??= bus.subscribe(topics.seatReply(askerId), hear);
    await subscription.catch((error: unknown) => {
      subscription = undefined;
      throw error;
    });
  }

  async function ask(gatewayId: string, wanted: WantedSeat): Promise<SeatReply["result"] | "no_answer"> {
    const request: SeatRequest = {
      ...wanted,
      request_id: crypto.randomUUID(),
      reply_to: topics.seatReply(askerId),
    };
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      const answered = new Promise<SeatReply["result"] | "no_answer">((resolve) => {
        waiting.set(request.request_id, resolve);
        timer = setTimeout(() => resolve("no_answer"), answerMs);
      });
      await bus.publish(topics.seatRequest(gatewayId), JSON.stringify(request));
      return await answered;
    } finally {
      clearTimeout(timer);
      waiting.delete(request.request_id);
    }
  }

  return {
    async find(wanted) {
      const gateways = byFreeSlots(await bus.capacities());
      if (gateways.length === 0) return { result: "unavailable" };
      await listen();
      const answers = new Set<string>();
      for (const gatewayId of gateways.slice(0, askedMax)) {
        const result = await ask(gatewayId, wanted);
        if (result === "seated") return { result, gatewayId };
        // The LiveKit server does not answer: another gateway would find the same.
        if (result === "unavailable") return { result };
        // Without an answer the next is asked: of two agents in a room the server keeps the later one.
        answers.add(result);
      }
      return { result: answers.has("capacity") ? "capacity" : "unavailable" };
    },

    async close() {
      const unsubscribe = await subscription?.catch(() => undefined);
      await unsubscribe?.().catch(() => undefined);
    },
  };
}

/** Those that take calls, the emptiest first. A full one stays in: its figures may be old. */
function byFreeSlots(capacities: ReadonlyMap<string, CapacityFigures>): string[] {
  return [...capacities]
    .filter(([, { draining }]) => !draining)
    .sort(([, a], [, b]) => b.slots - b.inUse - (a.slots - a.inUse))
    .map(([gatewayId]) => gatewayId);
}
