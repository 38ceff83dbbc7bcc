/**
 * How calls in a real LiveKit room end, and what a caller cannot do there: rooms that are deleted, an
 * agent that hangs up, a gateway that is full.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { dispose, LocalVideoTrack, TrackPublishOptions, TrackSource, VideoSource } from "@livekit/rtc-node";
import { RoomServiceClient } from "livekit-server-sdk";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { echoConfig, frontDeskConfig } from "#standalone/first_agents.ts";
import { RoomCaller } from "#test/kit/rooms/room_caller.ts";
import { noLiveKit, openRoomHouse, type RoomHouse } from "#test/kit/rooms/room_house.ts";

const talker: VoiceAgentConfig = {
  welcome_message: "Welcome to the house. I am going to read the whole list of what we offer to you now.",
  tts: { provider: "flite" },
};

describe("a LiveKit room, at the end of its call", { skip: noLiveKit }, () => {
  let house: RoomHouse;
  before(async () => {
    house = await openRoomHouse({ callSlots: 2 });
  });
  after(async () => {
    await house?.close();
    await dispose();
  });

  it("takes control messages of the api, and ends with its room", async () => {
    const { callId, room_name, ...ticket } = await house.openRoom({ ...frontDeskConfig, welcome_message: "" });
    const caller = await RoomCaller.join(ticket, { microphone: false });
    await caller.message("call_started");
    const said = await house.call("POST", `/v1/agents/voice/calls/${callId}/control`, {
      type: "say",
      text: "Hello there",
    });
    assert.equal(said.status, 204);
    await caller.message("agent_speech_done");
    const { url, apiKey, apiSecret } = house.liveKit;
    await new RoomServiceClient(url.replace(/^ws/, "http"), apiKey, apiSecret).deleteRoom(room_name);
    const record = await house.record(callId, ({ state }) => state === "ended");
    assert.deepEqual([record.end_reason, record.error_code], ["error", "room_deleted"]);
    assert.equal(house.gateway.slotsInUse(), 0);
    await caller.leave();
  });

  it("sends the caller out of the room when the agent has hung up", async () => {
    const { callId, ...ticket } = await house.openRoom({ ...talker, advanced: { max_call_duration_s: 10 } });
    const caller = await RoomCaller.join(ticket, { microphone: false });
    await caller.message("call_started");
    const hangUp = { type: "hang_up", message: "Good bye." };
    assert.equal((await house.call("POST", `/v1/agents/voice/calls/${callId}/control`, hangUp)).status, 204);
    await caller.message("call_ended");
    await caller.until("to be sent out", () => caller.isDisconnected);
    await caller.leave();
  });

  it("is refused with 503 capacity when every slot is taken, and taken when one is free again", async () => {
    const agent = await house.createAgent(echoConfig);
    const rooms = [await house.openRoom(agent), await house.openRoom(agent)];
    const refused = await house.call("POST", `/v1/agents/voice/agents/${agent}/rooms`, {});
    assert.equal(refused.status, 503);
    assert.equal(refused.body.code, "capacity");
    for (const { callId, ...ticket } of rooms) {
      const caller = await RoomCaller.join(ticket, { microphone: false });
      await caller.message("call_started");
      await caller.send({ type: "hang_up" });
      await house.record(callId, ({ state }) => state === "ended");
      await caller.leave();
    }
    assert.equal(house.gateway.slotsInUse(), 0);
  });

  it("gives a token that opens no other room, publishes no video, and administers nothing", async () => {
    const { callId, room_name, token, url } = await house.openRoom({ ...echoConfig });
    const address = url.replace(/^ws/, "http");
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    for (const method of [
      "ListRooms",
      "CreateRoom",
      "DeleteRoom",
      "ListParticipants",
      "MutePublishedTrack",
      "SendData",
    ]) {
      const body = JSON.stringify({ room: room_name, name: room_name, identity: "agent" });
      const answer = await fetch(`${address}/twirp/livekit.RoomService/${method}`, { method: "POST", headers, body });
      assert.ok([401, 403].includes(answer.status), `${method}: ${answer.status}`);
    }
    const joined = await RoomCaller.join({ url: `${url}?room=another`, token }, { microphone: false });
    await joined.message("call_started");
    const { room } = joined;
    assert.equal(room.name, room_name);
    const options = new TrackPublishOptions();
    options.source = TrackSource.SOURCE_CAMERA;
    const video = LocalVideoTrack.createVideoTrack("camera", new VideoSource(16, 16));
    // Refused tracks and names are never answered: what the server holds of them tells.
    void room.localParticipant?.publishTrack(video, options).catch(() => undefined);
    void room.localParticipant?.updateMetadata("mine").catch(() => undefined);
    await room.localParticipant?.sendText("{}", { topic: "voice.v1" });
    const { apiKey, apiSecret } = house.liveKit;
    const service = new RoomServiceClient(address, apiKey, apiSecret);
    const caller = await service.getParticipant(room_name, "caller");
    assert.deepEqual([caller.tracks.length, caller.metadata, caller.permission?.canPublish], [0, "", true]);
    assert.deepEqual(caller.permission?.canPublishSources, [TrackSource.SOURCE_MICROPHONE]);
    await joined.leave();
    const open = await service.listRooms();
    assert.ok(!open.some(({ name }) => name === "another"));
    await house.record(callId, ({ state }) => state === "ended");
  });
});
