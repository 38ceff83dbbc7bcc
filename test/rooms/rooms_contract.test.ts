/**
 * One contract, two transports: each golden call is led over a WebSocket and in a LiveKit room, to
 * the same agent of the same house, and both must give what is written, in messages and in records.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { dispose } from "@livekit/rtc-node";
import { RoomCaller } from "#test/kit/rooms/room_caller.ts";
import { noLiveKit, openRoomHouse, type RoomHouse } from "#test/kit/rooms/room_house.ts";
import { brokenRules, reliable } from "../golden/comparison.ts";
import { type GoldenCall, goldenCalls, type Line, leadCall } from "../golden/golden_call.ts";
import { SocketCaller } from "../golden/socket_call.ts";

const calls = await goldenCalls();

interface Led {
  callId: string;
  lines: Line[];
}

type Transport = (house: RoomHouse, agentId: string, call: GoldenCall) => Promise<Led>;

const transports: Record<"websocket" | "room", Transport> = {
  async websocket(house, agentId, call) {
    const { body } = await house.call("POST", `/v1/agents/voice/agents/${agentId}/calls/websocket`, {});
    const url = body.data.websocket_url.replace(/^ws:\/\/[^/]+/, house.gateway.url.replace(/^http/, "ws"));
    const caller = new SocketCaller(url);
    await leadCall(call.caller, caller);
    return { callId: body.data.call_id, lines: caller.lines };
  },
  async room(house, agentId, call) {
    const { callId, ...ticket } = await house.openRoom(agentId);
    const caller = await RoomCaller.join(ticket);
    try {
      await leadCall(call.caller, caller);
      return { callId, lines: caller.lines };
    } finally {
      await caller.leave();
    }
  },
};

describe("a call", { skip: noLiveKit }, () => {
  let house: RoomHouse;
  before(async () => {
    house = await openRoomHouse({ callSlots: 16 });
  });
  after(async () => {
    const slotsInUse = house?.gateway.slotsInUse();
    await house?.close();
    await dispose();
    assert.equal(slotsInUse, 0);
  });

  for (const [name, lead] of Object.entries(transports)) {
    // One room at a time: what joining costs, here for both sides in one process, would hold up the keys of others.
    describe(`over a ${name}`, { concurrency: name === "websocket" }, () => {
      for (const [file, call] of calls) {
        it(`${file}: ${call.about}`, async () => {
          const agentId = await house.createAgent(call.agent);
          const { callId, lines } = await lead(house, agentId, call);
          assert.deepEqual(onAnyTransport(reliable(lines)), onAnyTransport(reliable(call.transcript)));
          assert.deepEqual(brokenRules(lines), []);
          const record = await house.record(callId, ({ state }) => state === "ended");
          assert.equal(record.transport, name);
          assert.deepEqual(said(record.transcript), saidIn(call.transcript));
          assert.deepEqual(
            record.turns.map(({ turn_id }: { turn_id: string }) => turn_id),
            messages(call.transcript).flatMap((one) => (one.type === "turn_metrics" ? [one.turn_id] : [])),
          );
        });
      }
    });
  }
});

/** Without the audio formats, which are the transport's own. */
function onAnyTransport(tracks: Record<string, unknown[]>): Record<string, unknown[]> {
  const call = (tracks.call as Record<string, unknown>[]).map(({ input, output, ...rest }) => rest);
  return { ...tracks, call };
}

interface Said {
  role: string;
  turn_id: string;
  text: string;
}

const said = (items: readonly Said[]) => items.map(({ role, turn_id, text }) => [role, turn_id, text]).sort();

const messages = (lines: readonly Line[]) => lines.flatMap((line) => ("server" in line ? [line.server] : []));

function saidIn(lines: readonly Line[]) {
  const finals = messages(lines).flatMap((one) => (one.type === "transcript" && one.final ? [one] : []));
  return said(finals.map(({ role, turn_id, text = "" }) => ({ role, turn_id, text })));
}
