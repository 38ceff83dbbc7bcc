/**
 * The bus's Redis scripts: each one atomic, on one key, by Redis's own clock, so that any number
 * of processes and machines agree. Keys and replies stand beside each script.
 *
 * A reservation is one hash: `reservation` (JSON), `expires_at_ms`, `consumed` ("0" or "1") and
 * once it was taken `taker`. The key outlives `expires_at_ms` a while, so that "expired" and "used" differ
 * from "unknown".
 */
import { defineScript } from "redis";

const prefix = "frontdesk:";

export const redisKeys = {
  reservation: (callId: string) => `${prefix}reservation:${callId}`,
  /** One hash for all gateways: id to JSON with `expires_at_ms`. */
  capacities: `${prefix}capacities`,
  rate: (key: string) => `${prefix}rate:${key}`,
  topic: (topic: string) => `${prefix}topic:${topic}`,
} as const;

/** Start of every script that needs the time: `now_ms`. */
const readClock = `
local clock = redis.call('TIME')
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
`;

interface Parser {
  pushKey(key: string): unknown;
  push(...args: string[]): unknown;
}

/** A script on one key; arguments follow it as text. The reply's shape is the script's promise. */
function scriptOnKey<Reply>(lua: string) {
  return defineScript({
    SCRIPT: lua,
    NUMBER_OF_KEYS: 1,
    IS_READ_ONLY: false,
    parseCommand(parser: Parser, key: string, ...args: string[]) {
      parser.pushKey(key);
      parser.push(...args);
    },
    transformReply: (reply: unknown) => reply as Reply,
  });
}

export const redisScripts = {
  /** KEYS reservation; ARGV json, expires_at_ms, ttl_after_ms -> 1 stored | 0 consumed or too old */
  putReservation: scriptOnKey<0 | 1>(`${readClock}
if redis.call('HGET', KEYS[1], 'consumed') == '1' then return 0 end
local forget_at_ms = tonumber(ARGV[2]) + tonumber(ARGV[3])
if forget_at_ms <= now_ms then return 0 end
redis.call('HSET', KEYS[1], 'reservation', ARGV[1], 'expires_at_ms', ARGV[2], 'consumed', '0')
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', forget_at_ms))
return 1`),

  /** KEYS reservation; ARGV tombstone_ms, taker -> the take's result */
  takeReservation: scriptOnKey<"taken" | "consumed" | "expired" | "unknown">(`${readClock}
local entry = redis.call('HMGET', KEYS[1], 'consumed', 'expires_at_ms', 'taker')
if not entry[1] then return 'unknown' end
if entry[1] == '1' then return entry[3] == ARGV[2] and 'taken' or 'consumed' end
if tonumber(entry[2]) <= now_ms then return 'expired' end
redis.call('HSET', KEYS[1], 'consumed', '1', 'taker', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 'taken'`),

  /** KEYS reservation; ARGV ttl_after_ms, taker -> 1 given back | 0 not taken by this taker, or forgotten */
  restoreReservation: scriptOnKey<0 | 1>(`
local entry = redis.call('HMGET', KEYS[1], 'consumed', 'expires_at_ms', 'taker')
if entry[1] ~= '1' or entry[3] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'consumed', '0')
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', tonumber(entry[2]) + tonumber(ARGV[1])))
return 1`),

  /** KEYS capacities; ARGV gateway id, capacity json, ttl_ms -> 1 */
  reportCapacity: scriptOnKey<1>(`${readClock}
local expires_at_ms = string.format('%.0f', now_ms + tonumber(ARGV[3]))
redis.call('HSET', KEYS[1], ARGV[1], expires_at_ms .. ' ' .. ARGV[2])
return 1`),

  /** KEYS capacities -> [gateway id, capacity json, …] of the live ones; the dead are removed */
  capacities: scriptOnKey<string[]>(`${readClock}
local all = redis.call('HGETALL', KEYS[1])
local live = {}
for i = 1, #all, 2 do
  local expires_at_ms, json = string.match(all[i + 1], '^(%d+) (.*)$')
  if expires_at_ms and tonumber(expires_at_ms) > now_ms then
    live[#live + 1] = all[i]
    live[#live + 1] = json
  else
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return live`),

  /** KEYS rate; ARGV window_ms -> [hits in this window, milliseconds left of it] */
  hitRateLimit: scriptOnKey<[number, number]>(`
local hits = redis.call('INCR', KEYS[1])
if hits == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return {hits, redis.call('PTTL', KEYS[1])}`),
};
