import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, it } from "node:test";
import { topics } from "#bus/bus.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import type { SeatReply } from "#contracts/room_call.ts";
import type { SentMessage } from "#contracts/voice_protocol.ts";
import { eventually, FakeApi, FakeMedia, ManualClock, silentLog } from "#test/kit/gateway_fixture.ts";
import { type Gateway, startGateway } from "../gateway.ts";
import type { Seat, SeatPool, SeatReport } from "./seat_pool.ts";
import type { RoomToJoin } from "./seat_protocol.ts";

/** A seat whose room does what the test says. */
class FakeSeat implements Seat {
  readonly room: RoomToJoin;
  readonly report: (report: SeatReport) => void;
  readonly said: SentMessage[] = [];
  audioBytes = 0;
  hasLeft = false;

  constructor(room: RoomToJoin, report: (report: SeatReport) => void) {
    this.room = room;
    this.report = report;
  }
  text(text: string): void {
    this.said.push(JSON.parse(text) as SentMessage);
  }
  audio(bytes: Uint8Array): void {
    this.audioBytes += bytes.byteLength;
  }
  ping(): void {
    this.report({ kind: "pong", seat: 1 });
  }
  leave(): void {
    this.hasLeft = true;
  }

  joined = () => this.report({ kind: "joined", seat: 1 });
  came = (participantSid = "PA_1") => this.report({ kind: "caller_came", seat: 1, participantSid });
  left = (hungUp: boolean) => this.report({ kind: "caller_left", seat: 1, hungUp });
  hears = (message: object) => this.report({ kind: "text", seat: 1, text: JSON.stringify(message) });
  types = () => this.said.map(({ type }) => type);
}

class FakePool implements SeatPool {
  readonly seats: FakeSeat[] = [];
  isClosed = false;
  warmUp(): void {}
  open(room: RoomToJoin, report: (report: SeatReport) => void): FakeSeat {
    const seat = new FakeSeat(room, report);
    this.seats.push(seat);
    return seat;
  }
  async close(): Promise<void> {
    this.isClosed = true;
  }
}

describe("the agent's seat in a room", () => {
  const api = () => house.api;
  let house: { gateway: Gateway; api: FakeApi; media: FakeMedia; pool: FakePool; clock: ManualClock };
  let bus: ReturnType<typeof createMemoryBus>;
  let replies: SeatReply[];

  beforeEach(async () => {
    bus = createMemoryBus();
    replies = [];
    await bus.subscribe("reply", (payload) => replies.push(JSON.parse(payload) as SeatReply));
    const parts = { api: new FakeApi(), media: new FakeMedia(), pool: new FakePool(), clock: new ManualClock() };
    const gateway = await startGateway({
      config: {
        gatewayId: "g1",
        bindAddress: "127.0.0.1",
        port: 0,
        apiUrl: "http://127.0.0.1:9",
        publicUrl: undefined,
        gatewayPublicUrl: undefined,
        appDomain: "apps.localhost",
        callSlots: 2,
        mediaThreads: 1,
        transport: "ws",
        drainTimeoutS: 30,
        dataDir: "/nonexistent",
        redisUrl: undefined,
        internalSecret: "secret",
      },
      bus,
      media: parts.media,
      logger: silentLog,
      api: parts.api,
      clock: parts.clock,
      seatPool: parts.pool,
    });
    house = { gateway, ...parts };
  });
  afterEach(async () => {
    await house.gateway.close();
    await bus.close();
  });

  /** Asks for a seat; answers once the room is being joined, or the request was refused. */
  async function request(callId: string = randomUUID()): Promise<{ callId: string; seat: FakeSeat }> {
    const expiresAt = new Date(house.clock.nowMs() + 120_000).toISOString();
    api().calls.set(callId, {
      call_id: callId,
      secret_sha256: "",
      expires_at: expiresAt,
      allowed_origins: [],
      state: "reserved",
    });
    const seats = house.pool.seats.length;
    const answered = replies.length;
    const payload = {
      request_id: callId,
      reply_to: "reply",
      call_id: callId,
      url: "ws://x",
      room_name: "va_x",
      token: "t",
    };
    await bus.publish(topics.seatRequest("g1"), JSON.stringify({ ...payload, expires_at: expiresAt }));
    await eventually(() => house.pool.seats.length > seats || replies.length > answered, "the request is heard");
    return { callId, seat: house.pool.seats.at(-1) as FakeSeat };
  }

  async function seated() {
    const asked = await request();
    asked.seat.joined();
    return asked;
  }

  async function calling() {
    const asked = await seated();
    asked.seat.came();
    await eventually(() => asked.seat.types().includes("call_started"), "the call begins");
    return { ...asked, session: house.media.of(asked.callId) };
  }

  const answers = () => replies.map(({ result }) => result);
  const slots = () => house.gateway.slotsInUse();

  it("takes a slot before it joins, and says so when it sits", async () => {
    const { seat } = await request();
    assert.equal(slots(), 1);
    assert.deepEqual(answers(), []);
    seat.joined();
    await eventually(() => replies.length === 1, "an answer");
    assert.deepEqual(answers(), ["seated"]);
    assert.deepEqual(seat.room, { url: "ws://x", token: "t" });
  });

  it("is refused when no slot is free, and nothing is joined; a WebSocket sees the same slots", async () => {
    await seated();
    await seated();
    await request();
    assert.deepEqual(answers(), ["seated", "seated", "capacity"]);
    assert.equal(house.pool.seats.length, 2);
  });

  it("gets the slot of a call whose link has been lost for over five seconds", async () => {
    const first = await calling();
    await calling();
    first.seat.left(false);
    house.clock.advance(5001);
    const { seat } = await request();
    assert.equal(slots(), 2);
    const { end } = await api().closeOf(first.callId);
    assert.equal(end.error_code, "link_lost");
    assert.ok(first.seat.hasLeft);
    assert.equal(seat.hasLeft, false);
  });

  it("that cannot be had gives the slot back", async () => {
    const { seat } = await request();
    seat.report({ kind: "failed", seat: 1, reason: "no server" });
    await eventually(() => replies.length === 1, "an answer");
    assert.deepEqual(answers(), ["unavailable"]);
    assert.equal(slots(), 0);
    assert.ok(seat.hasLeft);
  });

  it("that is not had in time gives the slot back before the api gives up", async () => {
    await request();
    house.clock.advance(14_000);
    await eventually(() => replies.length === 1, "an answer");
    assert.deepEqual(answers(), ["unavailable"]);
    assert.equal(slots(), 0);
  });

  it("is given up after two minutes in which nobody came", async () => {
    const { seat } = await seated();
    house.clock.advance(119_000);
    assert.equal(slots(), 1);
    house.clock.advance(2000);
    assert.equal(slots(), 0);
    assert.ok(seat.hasLeft);
    seat.came();
    assert.equal(api().opens, 0);
  });

  it("becomes a call when the caller comes, with what they said while it was being opened", async () => {
    const { seat, callId } = await seated();
    seat.came();
    seat.hears({ type: "user_message", text: "quick" });
    await eventually(() => seat.types().includes("call_started"), "the call begins");
    const session = house.media.of(callId);
    assert.deepEqual(session.commands, [{ type: "user_message", text: "quick" }]);
    seat.report({ kind: "audio", seat: 1, bytes: new Uint8Array(640) });
    assert.equal(session.heardBytes, 640);
    assert.equal(slots(), 1);
  });

  it("paces speech by what the room's source has taken", async () => {
    const { seat, session } = await calling();
    for (let i = 0; i < 20; i += 1) session.sink.audio(new Uint8Array(640), 20);
    // A tenth of a second ahead of the source, and the frame that crossed it.
    assert.equal(seat.audioBytes, 3200 + 640);
    seat.report({ kind: "taken", seat: 1, bytes: 3200 });
    assert.equal(seat.audioBytes, 3200 + 3200 + 640);
  });

  it("ends at once, and frees its slot, when the caller hangs up", async () => {
    const { seat, callId } = await calling();
    seat.left(true);
    assert.equal(slots(), 0);
    const { end } = await api().closeOf(callId);
    assert.equal(end.reason, "client_hangup");
    assert.ok(seat.hasLeft);
  });

  describe("whose caller's link breaks while the call is being opened", () => {
    /** Waits in the middle of opening, until `open`. */
    async function opening() {
      const asked = await seated();
      let open = () => {};
      const held = new Promise<void>((resolve) => {
        open = resolve;
      });
      let asks = 0;
      api().onOpen = () => {
        asks += 1;
        return held;
      };
      asked.seat.came();
      await eventually(() => asks === 1, "the api is asked");
      return { ...asked, open };
    }

    for (const how of ["interrupted", "left"] as const) {
      it(`holds the call until they are back, ${how}`, async () => {
        const { seat, callId, open } = await opening();
        if (how === "left") seat.left(false);
        else seat.report({ kind: "interrupted", seat: 1 });
        open();
        await eventually(() => house.media.sessions.has(callId), "the call begins");
        const session = house.media.of(callId);
        await eventually(() => session.pauses === 1, "it is held");
        assert.equal(slots(), 1);
        if (how === "left") seat.came("PA_2");
        else seat.report({ kind: "restored", seat: 1 });
        assert.equal(session.resumes, 1);
      });
    }

    it("goes on as if nothing had been when they are back before", async () => {
      const { seat, callId, open } = await opening();
      seat.left(true);
      seat.came("PA_2");
      open();
      await eventually(() => seat.types().includes("call_started"), "the call begins");
      assert.equal(house.media.of(callId).pauses, 0);
      assert.equal(slots(), 1);
    });

    it("is over when they hung up", async () => {
      const { seat, callId, open } = await opening();
      seat.left(true);
      open();
      assert.equal((await api().closeOf(callId)).end.reason, "client_hangup");
      assert.equal(slots(), 0);
    });
  });

  it("waits half a minute for a caller whose link broke, and goes on where it was", async () => {
    const { seat, callId, session } = await calling();
    const seq = seat.said.at(-1)?.seq ?? 0;
    seat.left(false);
    assert.equal(session.pauses, 1);
    session.sink.message({ type: "warning", code: "no_input_audio", message: "", fatal: false });
    house.clock.advance(20_000);
    seat.came("PA_2");
    assert.equal(session.resumes, 1);
    const after = seat.said.filter((message) => message.seq > seq);
    assert.deepEqual(
      after.map(({ type }) => type),
      ["warning", "call_started"],
    );
    house.clock.advance(20_000);
    assert.equal(slots(), 1);
    seat.left(false);
    house.clock.advance(31_000);
    const { end } = await api().closeOf(callId);
    assert.deepEqual([end.reason, end.error_code], ["error", "link_lost"]);
    assert.equal(slots(), 0);
    assert.ok(seat.hasLeft);
  });

  it("takes the room's own interruption for a lost link, not for a hang-up", async () => {
    const { seat, session } = await calling();
    seat.report({ kind: "interrupted", seat: 1 });
    assert.equal(session.pauses, 1);
    seat.report({ kind: "restored", seat: 1 });
    assert.equal(session.resumes, 1);
    assert.equal(slots(), 1);
  });

  for (const reason of ["room_lost", "room_deleted", "seat_process_lost"] as const) {
    it(`ends its call with ${reason} and frees its slot`, async () => {
      const { seat, callId } = await calling();
      seat.report(reason === "seat_process_lost" ? { kind: "ended", reason } : { kind: "ended", seat: 1, reason });
      const { end } = await api().closeOf(callId);
      assert.deepEqual([end.reason, end.error_code], ["error", reason]);
      assert.equal(slots(), 0);
    });

    it(`frees its slot with ${reason} before anybody came`, async () => {
      const { seat } = await seated();
      seat.report(reason === "seat_process_lost" ? { kind: "ended", reason } : { kind: "ended", seat: 1, reason });
      assert.equal(slots(), 0);
      assert.equal(api().opens, 0);
    });
  }

  it("is told by webhooks too: of a finished room, and of this visit of the caller and no other", async () => {
    const { callId, session, seat } = await calling();
    const news = (fields: object) => bus.publish(topics.roomNews("g1"), JSON.stringify({ call_id: callId, ...fields }));
    await news({ news: "caller_left", participant_sid: "PA_0" });
    await news({ news: "nonsense" });
    await bus.publish(topics.roomNews("g1"), "no json");
    house.clock.advance(5000);
    assert.equal(session.pauses, 0);
    await news({ news: "caller_left", participant_sid: "PA_1" });
    await eventually(() => {
      house.clock.advance(1000);
      return session.pauses === 1;
    }, "the link is taken for lost");
    seat.came("PA_2");
    await news({ news: "room_finished" });
    const { end } = await api().closeOf(callId);
    assert.equal(end.error_code, "room_lost");
    assert.equal(slots(), 0);
  });

  it("hangs up when the room tells why after a webhook has told that", async () => {
    const { callId, seat } = await calling();
    const left = { call_id: callId, news: "caller_left", participant_sid: "PA_1" };
    await bus.publish(topics.roomNews("g1"), JSON.stringify(left));
    seat.left(true);
    assert.equal((await api().closeOf(callId)).end.reason, "client_hangup");
  });

  it("hangs up when a caller whose link was lost turns out to have left", async () => {
    const { callId, seat } = await calling();
    seat.report({ kind: "interrupted", seat: 1 });
    seat.left(true);
    assert.equal((await api().closeOf(callId)).end.reason, "client_hangup");
    assert.equal(slots(), 0);
  });

  it("tells the caller when the call cannot be opened, and goes", async () => {
    const { seat, callId } = await seated();
    api().archived.add(callId);
    seat.came();
    await eventually(() => seat.hasLeft, "the room is left");
    const [message] = seat.said;
    assert.ok(message?.type === "error" && message.fatal && message.code === "gone");
    assert.equal(slots(), 0);
  });

  it("closes the record of a call whose caller was gone before it began", async () => {
    const { seat, callId } = await seated();
    let open: (() => void) | undefined;
    api().onOpen = () =>
      new Promise((resolve) => {
        open = resolve;
      });
    seat.came();
    await eventually(() => open !== undefined, "the api is asked");
    seat.left(true);
    open?.();
    const { end } = await api().closeOf(callId);
    assert.equal(end.reason, "client_hangup");
    assert.equal(slots(), 0);
  });

  it("closes the record of a call whose room died while it was being opened", async () => {
    const { seat, callId } = await seated();
    let open: (() => void) | undefined;
    api().onOpen = () =>
      new Promise((resolve) => {
        open = resolve;
      });
    seat.came();
    await eventually(() => open !== undefined, "the api is asked");
    seat.report({ kind: "ended", seat: 1, reason: "room_lost" });
    assert.equal(slots(), 0);
    open?.();
    const { end } = await api().closeOf(callId);
    assert.deepEqual([end.reason, end.error_code], ["error", "room_lost"]);
  });

  it("leaves the room when the agent hangs up, with the last message said", async () => {
    const { seat, callId, session } = await calling();
    session.end("agent_hangup");
    await eventually(() => seat.hasLeft, "the room is left");
    assert.equal(seat.types().at(-1), "call_ended");
    assert.equal((await api().closeOf(callId)).end.reason, "agent_hangup");
  });

  it("is no longer given while the gateway drains, which waits for those who were promised one", async () => {
    const { seat } = await seated();
    let isDrained = false;
    const draining = house.gateway.drain().then(() => {
      isDrained = true;
    });
    await request();
    assert.deepEqual(answers(), ["seated", "capacity"]);
    seat.came();
    await eventually(() => seat.types().includes("draining"), "the caller is told");
    assert.equal(isDrained, false);
    seat.left(true);
    await draining;
  });

  it("drops a malformed request, and a second one for the same call", async () => {
    await bus.publish(topics.seatRequest("g1"), JSON.stringify({ call_id: "x" }));
    const { callId } = await seated();
    await request(callId);
    assert.deepEqual(answers(), ["seated", "unavailable"]);
    assert.equal(house.pool.seats.length, 1);
    assert.equal(slots(), 1);
  });

  it("is left when the gateway closes", async () => {
    const { seat } = await seated();
    await house.gateway.close();
    assert.ok(seat.hasLeft);
    assert.ok(house.pool.isClosed);
  });
});
