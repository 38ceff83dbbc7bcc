/**
 * Calls in LiveKit rooms: what api and gateway agree on. The api asks a gateway on the bus for the
 * agent's seat; the gateway takes a slot, joins the room and answers. The call opens when the caller
 * comes, over the same seam as any other (`internal_calls.ts`).
 */
import { type Static, Type } from "@sinclair/typebox";
import type { AudioFormat } from "./audio_format.ts";
import { oneOf } from "./one_of.ts";

export const callTransports = ["websocket", "room"] as const;

export const roomLimits = {
  /** The caller may join, and join again, for this long. */
  joinTtlS: 600,
  /** The agent waits for the caller for this long; then the slot is given back. */
  seatTtlS: 120,
  /** An empty room is kept for this long after the last one left. */
  departureTimeoutS: 20,
  participantsMax: 2,
  /** How far ahead of real time speech is sent to the agent's audio source, which paces it. */
  clientBufferMs: 200,
  /** How long a gateway may take to sit down in a room; on a machine that is not busy it takes a fifth of a second. */
  seatAnswerMs: 15_000,
} as const;

/** Who is who in a room: the token decides the identity. */
export const roomIdentities = { caller: "caller", agent: "agent" } as const;

/** What the session hears and says: WebRTC's own 48 kHz Opus is converted in the agent's seat. */
export const roomAudio: { input: AudioFormat; output: AudioFormat } = {
  input: { encoding: "pcm_s16le", sample_rate: 16000, container: "raw" },
  output: { encoding: "pcm_s16le", sample_rate: 24000, container: "raw" },
};

/** `va_{agent}_{call}`; a draft session's room names no agent. */
export function roomNameFor(agentId: string | undefined, callId: string): string {
  return `va_${agentId ?? "draft"}_${callId}`;
}

export const SeatRequest = Type.Object({
  request_id: Type.String(),
  /** The topic on which the answer is awaited. */
  reply_to: Type.String(),
  call_id: Type.String(),
  /** `ws(s)://` of the LiveKit server. */
  url: Type.String(),
  room_name: Type.String(),
  /** The agent's own token: a secret. */
  token: Type.String(),
  /** RFC 3339: when the seat is given up unless the caller has come. */
  expires_at: Type.String(),
});
export type SeatRequest = Static<typeof SeatRequest>;

/** `capacity`: no slot is free here. `unavailable`: the room could not be joined. */
export const seatResults = ["seated", "capacity", "unavailable"] as const;
export const SeatReply = Type.Object({ request_id: Type.String(), result: oneOf(seatResults) });
export type SeatReply = Static<typeof SeatReply>;

/**
 * What a webhook told of a room: that it is finished, or that this very visit of the caller is over.
 * The gateway sees both itself, usually sooner.
 */
export const RoomNews = Type.Union([
  Type.Object({ call_id: Type.String(), news: Type.Literal("room_finished") }),
  Type.Object({ call_id: Type.String(), news: Type.Literal("caller_left"), participant_sid: Type.String() }),
]);
export type RoomNews = Static<typeof RoomNews>;
