/** A LiveKit server that is killed in mid-call. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { dispose } from "@livekit/rtc-node";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { echoConfig } from "#standalone/first_agents.ts";
import { startLiveKitServer } from "#standalone/livekit_server.ts";
import { RoomCaller } from "#test/kit/rooms/room_caller.ts";
import { noLiveKit, openRoomHouse, type RoomHouse } from "#test/kit/rooms/room_house.ts";

const talker: VoiceAgentConfig = {
  welcome_message: "Welcome to the house. I am going to read the whole list of what we offer to you now.",
  tts: { provider: "flite" },
};

describe("a LiveKit server that is killed", { skip: noLiveKit }, () => {
  let house: RoomHouse;
  before(async () => {
    house = await openRoomHouse({ callSlots: 2 });
  });
  after(async () => {
    await house?.close();
    await dispose();
  });

  it("ends its calls with a reason and frees their slots; the next server finds the gateway as it was", async () => {
    const { callId, ...ticket } = await house.openRoom(talker);
    const caller = await RoomCaller.join(ticket);
    await caller.waitFor("agent_speech_started", 1);
    const waiting = await house.openRoom(echoConfig);
    assert.equal(house.gateway.slotsInUse(), 2);
    process.kill(house.liveKit.pid, "SIGKILL");
    await house.liveKit.exited;
    const record = await house.record(callId, ({ state }) => state === "ended");
    assert.equal(record.end_reason, "error");
    assert.match(record.error_code, /^(room_lost|link_lost)$/);
    await caller.until("the slots to be free", () => house.gateway.slotsInUse() === 0);
    const refused = await house.call("POST", "/v1/agents/voice/sessions", { config: echoConfig });
    assert.equal(refused.status, 503);
    assert.equal(refused.body.error.code, "unavailable");
    assert.equal(house.gateway.slotsInUse(), 0);
    assert.equal((await house.record(waiting.callId, () => true)).started_at, null);
    await caller.leave();

    const restarted = await startLiveKitServer({ as: house.liveKit });
    const next = await house.openRoom(echoConfig);
    const nextCaller = await RoomCaller.join(next, { microphone: false });
    await nextCaller.message("call_started");
    await nextCaller.leave();
    await house.record(next.callId, ({ state }) => state === "ended");
    await restarted?.stop();
  });
});
