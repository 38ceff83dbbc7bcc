/**
 * What the gateway and the processes that sit in rooms tell each other, over the IPC channel of
 * `node:child_process`, many at a time. `seat` counts up and is never used again.
 */

/** `audio` is raw PCM of the formats in `contracts/room_call.ts`; `text` is a message of `voice.v1`. */
export type ToSeat =
  | { kind: "join"; seat: number; room: RoomToJoin }
  | { kind: "text"; seat: number; text: string }
  | { kind: "audio"; seat: number; bytes: Uint8Array }
  | { kind: "ping"; seat: number }
  /** Says what was handed over before, then leaves the room. `left` follows. */
  | { kind: "leave"; seat: number };

export type FromSeat =
  | { kind: "joined"; seat: number }
  /** The room could not be joined; nothing follows but `left`. */
  | { kind: "failed"; seat: number; reason: string }
  /** The caller is in the room and can be heard and told. */
  | { kind: "caller_came"; seat: number; participantSid: string }
  /** `hungUp`: of their own will, or sent out; otherwise the link broke and they may come back. */
  | { kind: "caller_left"; seat: number; hungUp: boolean }
  | { kind: "text"; seat: number; text: string }
  /** A message above the protocol's bound, dropped. */
  | { kind: "oversized"; seat: number }
  | { kind: "audio"; seat: number; bytes: Uint8Array }
  /** Bytes of audio, counted from the seat's beginning, that the audio source has taken or that were cleared. */
  | { kind: "taken"; seat: number; bytes: number }
  | { kind: "pong"; seat: number }
  /** The room is lost for the moment: the server does not answer. */
  | { kind: "interrupted"; seat: number }
  | { kind: "restored"; seat: number }
  /** The room is gone: `room_deleted` by somebody, or `room_lost` with its server. Nothing follows but `left`. */
  | { kind: "ended"; seat: number; reason: "room_deleted" | "room_lost" }
  /** Last: the process has forgotten the seat. */
  | { kind: "left"; seat: number };

export interface RoomToJoin {
  /** `ws(s)://` of the LiveKit server. */
  url: string;
  token: string;
}

/** `text` fit for a log: a LiveKit server repeats the token that it refuses. */
export function withoutTokens(text: string): string {
  return text.replaceAll(/eyJ[\w-]*(\.[\w-]*)*/g, "(token)");
}
