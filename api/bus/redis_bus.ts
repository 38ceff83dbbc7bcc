/**
 * The bus over Redis: any number of processes and machines. Commands run on one connection,
 * subscriptions on another; both reconnect by themselves for ever. While Redis is away a command
 * fails within `commandTimeoutMs` instead of waiting in a queue, so that the caller can fall back
 * on the api, which holds the truth.
 */
import { createClient } from "redis";
import type { ReservedCall } from "#contracts/internal_calls.ts";
import { voiceLimits } from "#contracts/voice_protocol.ts";
import type { Bus, CapacityFigures } from "./bus.ts";
import { redisKeys, redisScripts } from "./redis_scripts.ts";

const startTimeoutMs = 5000;
/** Of a Redis that hangs; one that is away refuses at once. A thousand connects on a busy machine take their time. */
const commandTimeoutMs = 3000;
/** Of a timeout, each in a turn of the loop of its own: a loop that stands uses up one. */
const timeoutSlices = 10;
const reconnectDelayMsMax = 2000;
const ttlAfterExpiryMs = String(voiceLimits.reservationTtlS * 1000);
const tombstoneMs = String(voiceLimits.tombstoneTtlS * 1000);

/** The bus could not do it: Redis is away, does not answer in time, or refused. */
export class BusUnavailableError extends Error {
  constructor(action: string, cause: unknown) {
    super(`Cannot ${action}: Redis does not answer`, { cause });
    this.name = "BusUnavailableError";
  }
}

/**
 * Connects to `url` (`redis://` or `rediss://`).
 * @throws BusUnavailableError when Redis cannot be reached at the start; later losses reconnect
 */
export async function createRedisBus(url: string): Promise<Bus> {
  let closing = false;
  const client = createClient({
    url,
    scripts: redisScripts,
    disableOfflineQueue: true,
    socket: { connectTimeout: commandTimeoutMs, reconnectStrategy: reconnectDelayMs },
  });
  const subscriber = createClient({
    url,
    disableOfflineQueue: true,
    // Notices a link that died in silence; its subscriptions are renewed on the new one.
    pingInterval: 10_000,
    socket: { connectTimeout: commandTimeoutMs, reconnectStrategy: reconnectDelayMs, socketTimeout: 30_000 },
  });
  let readies = 0;
  for (const connection of [client, subscriber]) connection.on("ready", () => readies++);
  // Without a listener an error event would end the process; every command tells its own failure.
  client.on("error", () => {});
  subscriber.on("error", () => {});

  try {
    await Promise.all([client.connect(), subscriber.connect()].map((connected) => within(startTimeoutMs, connected)));
  } catch (cause) {
    client.destroy();
    subscriber.destroy();
    throw new BusUnavailableError("connect to the bus", cause);
  }

  async function run<T>(action: string, command: () => Promise<T>): Promise<T> {
    try {
      return await within(commandTimeoutMs, command());
    } catch (cause) {
      throw new BusUnavailableError(action, cause);
    }
  }

  return {
    async putReservation(reservation) {
      const expiresAtMs = String(Date.parse(reservation.expires_at));
      const key = redisKeys.reservation(reservation.call_id);
      await run("put a reservation", () =>
        client.putReservation(key, JSON.stringify(reservation), expiresAtMs, ttlAfterExpiryMs),
      );
    },

    async peekReservation(callId) {
      const [json, consumed] = await run("look up a reservation", () =>
        client.hmGet(redisKeys.reservation(callId), ["reservation", "consumed"]),
      );
      if (!json) return undefined;
      return { reservation: JSON.parse(json) as ReservedCall, consumed: consumed === "1" };
    },

    takeReservation: (callId, taker) =>
      run("take a reservation", () => client.takeReservation(redisKeys.reservation(callId), tombstoneMs, taker)),

    async restoreReservation(callId, taker) {
      await run("give a reservation back", () =>
        client.restoreReservation(redisKeys.reservation(callId), ttlAfterExpiryMs, taker),
      );
    },

    async publish(topic, payload) {
      await run("publish", () => client.publish(redisKeys.topic(topic), payload));
    },

    async subscribe(topic, listener) {
      let active = true;
      // A function of its own for each subscription, run apart from the client's parser.
      const subscription = (payload: string) => {
        queueMicrotask(() => {
          if (active) listener(payload);
        });
      };
      const channel = redisKeys.topic(topic);
      await run("subscribe", () => subscriber.subscribe(channel, subscription));
      return async () => {
        active = false;
        // When Redis is away there is nothing to tell it; the listener is forgotten all the same.
        if (!closing) await run("unsubscribe", () => subscriber.unsubscribe(channel, subscription)).catch(() => {});
      };
    },

    async reportCapacity(gatewayId, capacity, ttlMs) {
      await run("report capacity", () =>
        client.reportCapacity(redisKeys.capacities, gatewayId, JSON.stringify(capacity), String(Math.ceil(ttlMs))),
      );
    },

    async capacities() {
      const reply = await run("read capacities", () => client.capacities(redisKeys.capacities));
      const live = new Map<string, CapacityFigures>();
      for (let i = 0; i + 1 < reply.length; i += 2) {
        live.set(String(reply[i]), JSON.parse(String(reply[i + 1])) as CapacityFigures);
      }
      return live;
    },

    async hitRateLimit(key, limit, windowMs) {
      const [hits = 0, leftMs = 0] = await run("count a rate limit", () =>
        client.hitRateLimit(redisKeys.rate(key), String(Math.ceil(windowMs))),
      );
      const allowed = hits <= limit;
      return { allowed, retryAfterMs: allowed ? 0 : Math.max(0, leftMs) };
    },

    async ping() {
      await run("ping the bus", () => client.ping());
      if (!subscriber.isReady)
        throw new BusUnavailableError("ping the bus", new Error("The subscriber is not connected"));
    },

    // Each of the two connections becomes ready once at the start.
    link: () => ({ isUp: client.isReady && subscriber.isReady, reconnects: Math.max(0, readies - 2) }),

    async close() {
      if (closing) return;
      closing = true;
      client.destroy();
      subscriber.destroy();
    },
  };
}

/** 50 ms, 100 ms, 200 ms … with jitter, so that processes do not come back all at once. */
function reconnectDelayMs(retries: number): number {
  return Math.min(reconnectDelayMsMax, 50 * 2 ** Math.min(retries, 10)) + Math.random() * 50;
}

/**
 * Settles like `promise`, or rejects after `timeoutMs` in which this process ran: while its loop stands, the
 * answer may long be there and wait to be read.
 */
async function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    let left = timeoutSlices;
    timer = setInterval(() => {
      left -= 1;
      if (left === 0) reject(new Error(`No answer within ${timeoutMs} ms`));
    }, timeoutMs / timeoutSlices);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearInterval(timer);
  }
}
