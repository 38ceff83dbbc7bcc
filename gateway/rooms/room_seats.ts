/**
 * The seats of this gateway's agents in rooms, from the request on the bus to the end of the call:
 *
 *     request ─► slot, else capacity ─► join the room, else unavailable ─► seated
 *       seated ── the caller comes ─► opened at the api ─► a call like any other, over a RoomLink
 *       seated ── two minutes, and nobody came ─► slot back, room left
 *       call   ── ended by whoever ─► room left
 *
 * What happens in a room is seen in the room. Webhooks say the same again; no slot waits for one.
 */

import { Value } from "@sinclair/typebox/value";
import type { Bus } from "#bus/bus.ts";
import type { CallFailureCode } from "#contracts/codes.ts";
import { RoomNews, roomLimits, type SeatReply, SeatRequest } from "#contracts/room_call.ts";
import type { RefusalCode } from "#contracts/voice_protocol.ts";
import type { CallsApi } from "../api_client.ts";
import { type BeginCallDeps, beginCall } from "../calls/begin_call.ts";
import type { Call, CallLink } from "../calls/call.ts";
import type { CallSlots, Slot } from "../calls/call_slots.ts";
import type { Clock } from "../calls/clock.ts";
import { takeSlot } from "../calls/take_slot.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { SocketEnd } from "../transport/transport.ts";
import { RoomLink } from "./room_link.ts";
import type { Seat, SeatPool, SeatReport } from "./seat_pool.ts";

export interface RoomSeatsDeps extends BeginCallDeps {
  gatewayId: string;
  bus: Bus;
  api: CallsApi;
  slots: CallSlots;
  pool: SeatPool;
  metrics: GatewayMetrics;
  clock: Clock;
  isDraining(): boolean;
}

export interface RoomSeats {
  /** @param payload JSON `SeatRequest`; what is malformed is logged and dropped */
  request(payload: string): void;
  /** @param payload JSON `RoomNews` */
  news(payload: string): void;
  /** The call has ended: its room is left. */
  callEnded(callId: string): void;
  /** Resolves when nobody is waited for any more, at the latest at `deadline`. */
  settled(deadline: Date): Promise<void>;
  /** Leaves every room. */
  close(): Promise<void>;
}

const tockMs = 1000;
/** Below the time after which the api gives up. */
const joinMsMax = roomLimits.seatAnswerMs - 1000;
/** How long the room may take to tell by itself what a webhook has told. */
const newsGraceMs = 3000;
/** Messages of a caller whose call is being opened. */
const earlyTextsMax = 64;

/** `waiting`: nobody has come. `opening`: the caller is there, the api is asked. */
type State = "joining" | "waiting" | "opening" | "calling" | "over";

export function createRoomSeats(deps: RoomSeatsDeps): RoomSeats {
  const { bus, clock, log } = deps;
  const seats = new Map<string, RoomSeat>();
  const waitingForNone: { deadlineMs: number; resolve: () => void }[] = [];

  function reply(request: SeatRequest, result: SeatReply["result"]): void {
    const payload: SeatReply = { request_id: request.request_id, result };
    bus.publish(request.reply_to, JSON.stringify(payload)).catch((error: unknown) => {
      log.warn({ err: error, call_id: request.call_id }, "the bus took no answer to a request for a seat");
    });
  }

  function isSettled(): boolean {
    return ![...seats.values()].some((seat) => seat.isExpectingCaller);
  }

  function tellSettled(nowMs: number): void {
    for (const waiting of waitingForNone.splice(0)) {
      if (isSettled() || nowMs >= waiting.deadlineMs) waiting.resolve();
      else waitingForNone.push(waiting);
    }
  }

  const stopTock = clock.every(tockMs, () => {
    const nowMs = clock.nowMs();
    for (const seat of [...seats.values()]) seat.tock(nowMs);
    tellSettled(nowMs);
  });

  return {
    request(payload) {
      const request = parse(SeatRequest, payload);
      if (!request) return log.warn({}, "a request for a seat is malformed; it is dropped");
      if (seats.has(request.call_id)) return reply(request, "unavailable");
      const slot = takeSlot(deps, clock.nowMs());
      if (!slot) {
        deps.metrics.refused("capacity");
        return reply(request, "capacity");
      }
      const seat = new RoomSeat(request, slot, deps, {
        answered: (result) => reply(request, result),
        over: () => {
          seats.delete(request.call_id);
          tellSettled(clock.nowMs());
        },
        called: () => tellSettled(clock.nowMs()),
      });
      seats.set(request.call_id, seat);
    },

    news(payload) {
      const news = parse(RoomNews, payload);
      if (news) seats.get(news.call_id)?.news(news);
    },

    callEnded: (callId) => seats.get(callId)?.leave(),

    async settled(deadline) {
      if (isSettled()) return;
      await new Promise<void>((resolve) => waitingForNone.push({ deadlineMs: deadline.getTime(), resolve }));
      for (const seat of [...seats.values()]) if (seat.isExpectingCaller) seat.leave();
    },

    async close() {
      stopTock();
      for (const seat of [...seats.values()]) seat.leave();
      await deps.pool.close();
    },
  };
}

interface SeatListener {
  answered(result: SeatReply["result"]): void;
  /** The call has begun. */
  called(): void;
  /** The room is left, and the slot is given back or the call's. */
  over(): void;
}

class RoomSeat {
  readonly #request: SeatRequest;
  readonly #deps: RoomSeatsDeps;
  readonly #listener: SeatListener;
  readonly #seat: Seat;
  /** Ours until the call begins. */
  readonly #slot: Slot;
  readonly #joinedByMs: number;
  #state: State = "joining";
  #call: Call | undefined;
  #link: RoomLink | undefined;
  /** The visit of the caller that is under way. */
  #callerSid: string | undefined;
  /** A webhook says that this visit is over, and not why: the room itself may tell more. */
  #toldLeft: { participantSid: string; atMs: number } | undefined;
  #early: string[] = [];
  /** How the caller's link ended while the call was being opened, unless they are back. */
  #earlyEnd: SocketEnd | undefined;
  #sentBytes = 0;
  #seqWhenLost = 0;

  constructor(request: SeatRequest, slot: Slot, deps: RoomSeatsDeps, listener: SeatListener) {
    this.#request = request;
    this.#slot = slot;
    this.#deps = deps;
    this.#listener = listener;
    this.#joinedByMs = deps.clock.nowMs() + joinMsMax;
    this.#seat = deps.pool.open({ url: request.url, token: request.token }, (report) => this.#heard(report));
  }

  get isExpectingCaller(): boolean {
    return this.#state === "joining" || this.#state === "waiting" || this.#state === "opening";
  }

  tock(nowMs: number): void {
    if (this.#state === "joining" && nowMs >= this.#joinedByMs) this.#failed("Expected to join the room in time");
    else if (this.#state === "waiting" && nowMs >= Date.parse(this.#request.expires_at)) this.leave();
    const told = this.#toldLeft;
    if (told && nowMs - told.atMs >= newsGraceMs) {
      this.#toldLeft = undefined;
      if (told.participantSid === this.#callerSid) this.#callerLeft(false);
    }
  }

  /** Gives the slot back, where no call has it, and leaves the room. Idempotent. */
  leave(): void {
    if (this.#state === "over") return;
    if (this.#state === "joining") this.#listener.answered("unavailable");
    if (!this.#call) this.#slot.release();
    this.#state = "over";
    this.#seat.leave();
    this.#listener.over();
  }

  news(news: RoomNews): void {
    if (news.news === "room_finished") this.#roomEnded("room_lost");
    else this.#toldLeft = { participantSid: news.participant_sid, atMs: this.#deps.clock.nowMs() };
  }

  #heard(report: SeatReport): void {
    if (this.#state === "over") return;
    switch (report.kind) {
      case "joined":
        this.#state = "waiting";
        this.#listener.answered("seated");
        return;
      case "failed":
        this.#failed(report.reason);
        return;
      case "caller_came":
        this.#callerCame(report.participantSid);
        return;
      case "caller_left":
        this.#callerLeft(report.hungUp);
        return;
      case "text":
        if (this.#link) this.#link.heardText(report.text);
        else if (this.#state === "opening" && this.#early.length < earlyTextsMax) this.#early.push(report.text);
        return;
      case "audio":
        this.#link?.heardAudio(report.bytes);
        return;
      case "oversized":
        this.#link?.oversized();
        return;
      case "taken":
        this.#link?.taken(report.bytes);
        return;
      case "pong":
        this.#link?.pong();
        return;
      case "interrupted":
        this.#linkLost();
        return;
      case "restored":
        if (this.#callerSid !== undefined) this.#callerBack();
        return;
      case "ended":
        this.#roomEnded(report.reason);
        return;
    }
  }

  #failed(reason: string): void {
    this.#deps.log.warn({ call_id: this.#request.call_id, reason }, "the agent cannot join a room");
    this.leave();
  }

  #callerCame(participantSid: string): void {
    this.#callerSid = participantSid;
    if (this.#state === "waiting") void this.#open();
    else this.#callerBack();
  }

  /** Opens the call, once, and begins it as any other. */
  async #open(): Promise<void> {
    const { api, clock, gatewayId, log, metrics, registry } = this.#deps;
    const { call_id } = this.#request;
    const startedAtMs = clock.nowMs();
    this.#state = "opening";
    const opened = await api.openCall(call_id, gatewayId).catch((error: unknown) => {
      log.warn({ err: error, call_id }, "cannot open a call in a room");
      return { kind: "refused" as const, code: "unavailable" as const };
    });
    if (opened.kind === "refused") {
      metrics.refused(opened.code);
      if (this.isExpectingCaller) this.#refuse(opened.code);
      return;
    }
    if (!this.isExpectingCaller) {
      // The room was left meanwhile: the call that is open at the api is over.
      this.#deps.reporter.opened(call_id);
      this.#deps.reporter.ended(call_id, { reason: "error", duration_ms: 0, error_code: "room_lost" });
      return;
    }
    const call = beginCall(opened.call, this.#slot, this.#deps);
    if (!call) return this.#refuse("unavailable");
    this.#call = call;
    this.#state = "calling";
    this.#listener.called();
    const { callLink, roomLink } = this.#newLink(call);
    call.start(callLink);
    registry.tellDeadline(call);
    metrics.admitted(clock.nowMs() - startedAtMs);
    for (const text of this.#early.splice(0)) roomLink.heardText(text);
    if (this.#earlyEnd) this.#endLink(this.#earlyEnd);
  }

  /** What a refused upgrade is to a WebSocket: the caller is told, and the agent goes. */
  #refuse(code: RefusalCode): void {
    const message = "The call cannot begin";
    this.#seat.text(JSON.stringify({ type: "error", seq: 1, t: 0, code, message, fatal: true }));
    this.leave();
  }

  #newLink(call: Call): { callLink: CallLink; roomLink: RoomLink } {
    const callLink = call.newLink();
    const roomLink: RoomLink = new RoomLink(this.#seat, callLink.events, {
      sentBytes: this.#sentBytes,
      onClosed: () => {
        this.#sentBytes = roomLink.sentBytes;
        // An older link that a newer one has replaced changes nothing.
        if (this.#link === roomLink) this.leave();
      },
    });
    callLink.socket = roomLink;
    this.#link = roomLink;
    return { callLink, roomLink };
  }

  /** Back in the room, or the room is back: the call goes on, from the very next message. */
  #callerBack(): void {
    this.#earlyEnd = undefined;
    const call = this.#call;
    if (!call || call.isOver) return;
    const seq = this.#link ? call.seq : this.#seqWhenLost;
    const old = this.#link;
    if (old) this.#sentBytes = old.sentBytes;
    call.resumeOn(this.#newLink(call).callLink, seq);
  }

  #callerLeft(hungUp: boolean): void {
    this.#callerSid = undefined;
    if (!hungUp) this.#linkLost();
    // The link was lost before, and now it is known why.
    else if (this.#call && !this.#link) this.#call.end("client_hangup");
    else this.#endLink({ kind: "closed", code: 1000, reason: "" });
  }

  #linkLost(): void {
    this.#endLink({ kind: "lost" });
  }

  #endLink(end: SocketEnd): void {
    if (this.#state === "opening") this.#earlyEnd = end;
    const link = this.#link;
    if (!link || !this.#call) return;
    this.#link = undefined;
    this.#sentBytes = link.sentBytes;
    this.#seqWhenLost = this.#call.seq;
    link.ended(end);
  }

  /** There is no room any more: of the call nothing is left to go on with. */
  #roomEnded(errorCode: CallFailureCode): void {
    if (this.#state === "over") return;
    if (this.#state === "joining") this.#failed(errorCode);
    else if (this.#call) this.#call.end("error", { errorCode });
    else this.leave();
  }
}

function parse<S extends typeof SeatRequest | typeof RoomNews>(
  schema: S,
  payload: string,
): (S extends typeof SeatRequest ? SeatRequest : RoomNews) | undefined {
  try {
    const value: unknown = JSON.parse(payload);
    return Value.Check(schema, value) ? (value as never) : undefined;
  } catch {
    return undefined;
  }
}
