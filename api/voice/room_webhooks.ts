/**
 * What the LiveKit server tells of rooms. It only hastens what the gateway sees in the room itself
 * and what the sweeper would find: no slot hangs on a webhook that never comes.
 */
import { topics } from "#bus/bus.ts";
import { ApiError } from "#contracts/errors.ts";
import { type RoomNews, roomIdentities } from "#contracts/room_call.ts";
import { readBodyBytes } from "#http/json_body.ts";
import type { Logger } from "#http/logger.ts";
import { publicAccess, type Route, route } from "#http/route.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import type { LiveKit, LiveKitEvent } from "#outbound/livekit.ts";
import type { AnySql } from "#store/sql.ts";

const bodyBytesMax = 256 * 1024;

export interface RoomWebhookDeps extends Pick<ApiDeps, "sql" | "bus" | "now"> {
  liveKit: LiveKit | undefined;
  logger: Logger;
}

export function roomWebhookRoutes({ sql, bus, now, liveKit, logger }: RoomWebhookDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/agents/voice/rooms/webhook",
      summary: "For the LiveKit server: news of rooms, signed with the API key",
      guard: publicAccess,
      reply: { status: 204 },
      errors: ["unauthorized", "payload_too_large", "unavailable"],
      handle: async ({ request }) => {
        if (!liveKit)
          throw new ApiError("unavailable", { details: { room: "Expected a LiveKit server: there is none here" } });
        const event = await verified(liveKit, request);
        if (!(await isNew(sql, event.id, now()))) return;
        const call = event.roomName === undefined ? undefined : await callIn(sql, event.roomName);
        if (!call) return;
        const news = newsIn(event, call.id);
        if (news && call.gateway_id !== null) {
          await bus.publish(topics.roomNews(call.gateway_id), JSON.stringify(news));
        }
        if (event.event === "participant_joined" && call.is_over) {
          logger.info({ call_id: call.id }, "a caller came to a room whose call is over; the room is closed");
          await liveKit.closeRoom(event.roomName ?? "");
        }
      },
    }),
  ];
}

async function verified(liveKit: LiveKit, request: Request): Promise<LiveKitEvent> {
  const body = new TextDecoder().decode(await readBodyBytes(request, bodyBytesMax));
  try {
    return await liveKit.readWebhook(body, request.headers.get("authorization"));
  } catch (cause) {
    throw new ApiError("unauthorized", { cause });
  }
}

/** False for a webhook that was delivered before. */
async function isNew(sql: AnySql, id: string, now: Date): Promise<boolean> {
  // Without an id it cannot be told from another; what follows from it can be done twice.
  if (id === "") return true;
  const inserted = await sql`
    insert into livekit_webhook (id, received_at) values (${id}, ${now}) on conflict (id) do nothing`;
  return inserted.count === 1;
}

function newsIn({ event, participant }: LiveKitEvent, call_id: string): RoomNews | undefined {
  if (event === "room_finished") return { call_id, news: "room_finished" };
  if (event !== "participant_left" || participant?.identity !== roomIdentities.caller) return undefined;
  return { call_id, news: "caller_left", participant_sid: participant.sid };
}

async function callIn(sql: AnySql, roomName: string) {
  const [call] = await sql<{ id: string; gateway_id: string | null; is_over: boolean }[]>`
    select id, gateway_id, state in ('ended', 'expired') as is_over from call where room_name = ${roomName}`;
  return call;
}
