/**
 * Closes rooms whose call is over: of an agent that hung up, of a gateway that died, of a caller who
 * came too late. One question to the LiveKit server and one to Postgres, however many rooms there
 * are; rooms that are not ours are left alone. Any number of workers may run it at once.
 */
import type { LiveKit } from "#outbound/livekit.ts";
import type { Sql } from "#store/sql.ts";

/** Rooms that one round closes at most; the next round takes the rest. */
const batchMax = 100;
/** A goodbye still plays in a room for this long after the call's record is closed. */
const goodbyeMs = 3000;
/** How long a webhook's id is kept: LiveKit gives up a delivery much sooner. */
const webhookKeptMs = 60 * 60 * 1000;

export async function sweepRooms(deps: { sql: Sql; liveKit: LiveKit; now(): Date }): Promise<{ closed: number }> {
  const { sql, liveKit } = deps;
  await sql`delete from livekit_webhook where received_at < ${new Date(deps.now().getTime() - webhookKeptMs)}`;
  const open = (await liveKit.openRooms()).filter((name) => name.startsWith("va_"));
  if (open.length === 0) return { closed: 0 };
  const endedBefore = new Date(deps.now().getTime() - goodbyeMs);
  const over = await sql<{ room_name: string }[]>`
    select room_name from call
    where room_name = any (${open}::text[])
      and (state = 'expired' or (state = 'ended' and ended_at < ${endedBefore}))
    limit ${batchMax}`;
  for (const { room_name } of over) await liveKit.closeRoom(room_name);
  return { closed: over.length };
}
