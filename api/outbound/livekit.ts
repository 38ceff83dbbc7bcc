/**
 * LiveKit as the api sees it: tokens, webhooks, and the rooms that are open. The only file that
 * knows its server SDK. A token is signed here, without asking the server.
 */
import { roomIdentities, roomLimits } from "#contracts/room_call.ts";

export interface LiveKitSettings {
  /** `ws(s)://` or `http(s)://`, as callers reach the server. */
  url: string;
  apiKey: string;
  apiSecret: string;
}

/** A LiveKit Agents worker that the server is to call into the room. */
export interface Dispatch {
  agentName: string;
  /** JSON that the worker gets. */
  metadata: string;
}

/** What a webhook tells, as far as we read it. */
export interface LiveKitEvent {
  id: string;
  event: string;
  roomName: string | undefined;
  participant: { identity: string; sid: string } | undefined;
}

export interface LiveKit {
  /** `ws(s)://`, what clients are handed. */
  readonly url: string;
  /** Joins this one room: microphone, listening and data; nothing else. */
  callerToken(roomName: string, dispatch?: Dispatch): Promise<string>;
  /** The same room as the agent, whose state is shown in its attributes. */
  agentToken(roomName: string): Promise<string>;
  /** @throws Error unless the signature and the body's hash hold */
  readWebhook(body: string, authorization: string | null): Promise<LiveKitEvent>;
  /** Names of all rooms that are open. @throws Error when the server does not answer */
  openRooms(): Promise<string[]>;
  /** Sends everybody out; a room that is gone already is fine. @throws Error when the server does not answer */
  closeRoom(roomName: string): Promise<void>;
}

const requestTimeoutS = 5;

export async function openLiveKit({ url, apiKey, apiSecret }: LiveKitSettings): Promise<LiveKit> {
  // A fifth of all modules: only where LiveKit is configured do they load.
  const sdk = await import("livekit-server-sdk");
  const webSocketUrl = url.replace(/^http/, "ws").replace(/\/+$/, "");
  const rooms = new sdk.RoomServiceClient(webSocketUrl.replace(/^ws/, "http"), apiKey, apiSecret, {
    requestTimeout: requestTimeoutS,
    failover: false,
  });
  const receiver = new sdk.WebhookReceiver(apiKey, apiSecret);

  const roomConfig = (name: string, dispatch?: Dispatch) =>
    new sdk.RoomConfiguration({
      name,
      emptyTimeout: roomLimits.seatTtlS,
      departureTimeout: roomLimits.departureTimeoutS,
      maxParticipants: roomLimits.participantsMax,
      ...(dispatch && { agents: [new sdk.RoomAgentDispatch(dispatch)] }),
    });

  return {
    url: webSocketUrl,

    async callerToken(roomName, dispatch) {
      const token = new sdk.AccessToken(apiKey, apiSecret, {
        identity: roomIdentities.caller,
        ttl: roomLimits.joinTtlS,
      });
      token.addGrant({
        roomJoin: true,
        room: roomName,
        canPublish: true,
        canPublishSources: [sdk.TrackSource.MICROPHONE],
        canSubscribe: true,
        canPublishData: true,
      });
      token.roomConfig = roomConfig(roomName, dispatch);
      return token.toJwt();
    },

    async agentToken(roomName) {
      const token = new sdk.AccessToken(apiKey, apiSecret, {
        identity: roomIdentities.agent,
        ttl: roomLimits.joinTtlS,
      });
      token.kind = "agent";
      token.addGrant({
        roomJoin: true,
        room: roomName,
        canPublish: true,
        canPublishSources: [sdk.TrackSource.MICROPHONE],
        canSubscribe: true,
        canPublishData: true,
        canUpdateOwnMetadata: true,
      });
      token.roomConfig = roomConfig(roomName);
      return token.toJwt();
    },

    async readWebhook(body, authorization) {
      const { id, event, room, participant } = await receiver.receive(body, authorization ?? undefined);
      return { id, event, roomName: room?.name, participant };
    },

    async openRooms() {
      return (await rooms.listRooms()).map((room) => room.name);
    },

    async closeRoom(roomName) {
      await rooms.deleteRoom(roomName).catch((error: unknown) => {
        if ((error as { status?: unknown }).status !== 404) throw error;
      });
    },
  };
}
