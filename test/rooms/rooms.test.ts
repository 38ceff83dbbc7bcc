/**
 * Calls in a real LiveKit room, by a real participant: speech there and back, typed questions, keys,
 * barge-in, and a caller who comes back.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { dispose } from "@livekit/rtc-node";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { readWav } from "#examples/wav_file.ts";
import { echoConfig, frontDeskConfig } from "#standalone/first_agents.ts";
import { RoomCaller } from "#test/kit/rooms/room_caller.ts";
import { noLiveKit, openRoomHouse, type RoomHouse } from "#test/kit/rooms/room_house.ts";

/** Speaks for long, and stops for good at the first word. */
const talker: VoiceAgentConfig = {
  welcome_message:
    "Welcome to the house. I am going to read the whole list of what we offer to you now, from the first to the last page, without a pause, until somebody stops me, which nobody ever does.",
  stt: { provider: "scripted", options: { transcripts: ["Stop it, please"] } },
  llm: { provider: "scripted", options: { replies: ["All right"], delay_ms: 1500 } },
  tts: { provider: "flite" },
};

describe("a call in a LiveKit room", { skip: noLiveKit }, () => {
  let house: RoomHouse;
  before(async () => {
    house = await openRoomHouse({ callSlots: 2 });
  });
  after(async () => {
    await house?.close();
    await dispose();
  });

  /** Leaves, and expects the slot and the record that follow. */
  async function leaves(caller: RoomCaller, callId: string) {
    await caller.leave();
    const record = await house.record(callId, ({ state }) => state === "ended");
    assert.equal(record.end_reason, "client_hangup");
    assert.equal(house.gateway.slotsInUse(), 0);
    return record;
  }

  it("hears real speech and says it back, frees the slot when the caller leaves, and is recorded", async () => {
    const { callId, ...ticket } = await house.openRoom(echoConfig);
    assert.equal(house.gateway.slotsInUse(), 1);
    const caller = await RoomCaller.join(ticket);
    await caller.message("call_started");
    const { pcm } = await readWav(new URL("../../examples/hello.wav", import.meta.url));
    const speech = new Int16Array(pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + pcm.byteLength));
    const spokenAtMs = caller.nowMs();
    await caller.play(speech);
    await caller.waitFor("agent_speech_done", 1);
    const likeness = likenessOf(
      loudness(speech),
      caller.heard.filter(({ atMs }) => atMs > spokenAtMs).map(({ rms }) => rms),
    );
    // 0.9 and more on a quiet machine; a starved one loses and delays frames. Unrelated sound reaches 0.25.
    assert.ok(likeness > 0.45, `what came back is what was said: likeness ${likeness.toFixed(2)}`);
    const record = await leaves(caller, callId);
    // The server's own webhooks came, signed, and were taken.
    await caller.until("webhooks", async () => (await house.sql`select 1 from livekit_webhook`).length >= 3);
    assert.equal(record.transport, "room");
    assert.deepEqual(
      record.transcript.map(({ role }: { role: string }) => role),
      ["user", "agent"],
    );
    assert.equal(record.turns.length, 1);
    assert.ok(record.turns[0].to_playout_ms > 0);
    assert.ok(record.usage.input_audio_ms > 0);
  });

  it("answers typed questions aloud, in data messages, text streams and LiveKit's chat, and keys", async () => {
    const { callId, ...ticket } = await house.openRoom({ ...frontDeskConfig, welcome_message: "" });
    const caller = await RoomCaller.join(ticket, { microphone: false });
    await caller.message("call_started");
    const answer = async (about: RegExp, ask: () => Promise<unknown> | undefined) => {
      const fromMs = caller.nowMs();
      const before = caller.messages.filter(({ type }) => type === "agent_speech_done").length;
      await ask();
      await caller.until(`an answer of ${about}`, () =>
        caller.messages.some((one) => one.type === "transcript" && one.role === "agent" && about.test(one.text ?? "")),
      );
      await caller.message("agent_speech_started", before + 1);
      await caller.until("a voice", () => caller.audibleMs(fromMs) > 300);
      await caller.send({ type: "interrupt" });
      await caller.message("agent_speech_done", before + 1);
      return caller.audibleMs(fromMs);
    };
    const me = caller.room.localParticipant;
    await answer(/garden room/, () => caller.send({ type: "user_message", text: "When is breakfast?" }));
    await answer(/Wi-Fi/, () => me?.sendText("Is there wifi?", { topic: "lk.chat" }));
    const long = `Is there parking? ${"really ".repeat(2000)}`;
    await answer(/charging stations/, () =>
      me?.sendText(JSON.stringify({ type: "user_message", text: long }), { topic: "voice.v1" }),
    );
    const fromMs = caller.nowMs();
    await me?.publishDtmf(1, "1");
    await me?.publishDtmf(11, "#");
    await caller.until("an answer to the keys", () =>
      caller.messages.some(
        (one) => one.type === "transcript" && one.role === "agent" && /three in the afternoon/.test(one.text ?? ""),
      ),
    );
    await caller.until("a voice", () => caller.audibleMs(fromMs) > 400);
    const shown = await caller.until("the transcript as LiveKit's own interfaces read it", () =>
      caller.streams.find(({ text, from }) => from === "agent" && /garden room/.test(text)),
    );
    assert.equal(shown.topic, "lk.transcription");
    assert.ok(shown.attributes["lk.segment_id"]);
    assert.ok(caller.streams.some(({ text, from }) => from === "caller" && text === "When is breakfast?"));
    assert.ok(caller.agentStates.includes("speaking"));
    // Bad messages are refused as on a WebSocket.
    await me?.publishData(new TextEncoder().encode("{"), { reliable: true, topic: "voice.v1" });
    const error = await caller.message("error");
    assert.equal(error.code, "bad_message");
    await leaves(caller, callId);
  });

  it("is silent at once when the caller barges in, and says how far it was heard", async () => {
    const { callId, ...ticket } = await house.openRoom(talker);
    const caller = await RoomCaller.join(ticket);
    await caller.waitFor("agent_speech_started", 1);
    await caller.until("a voice", () => caller.audibleMs() > 1500);
    await caller.speak(1000);
    const clear = await caller.message("clear");
    assert.equal(clear.reason, "user_speech");
    const at = caller.lines.find((line) => "server" in line && line.server === clear)?.at_ms ?? 0;
    const truncated = await caller.message("truncated");
    await caller.message("user_speech_stopped");
    // The jitter buffer of the caller may hold a little; nothing is heard after it.
    assert.ok(caller.audibleMs(at + 300, at + 1200) <= 60, "nothing of the old speech is heard");
    assert.ok(truncated.played_ms > 1000 && truncated.played_ms < at, JSON.stringify(truncated));
    assert.ok(truncated.full_text.startsWith(truncated.spoken_text.replace(/\W+$/, "")));
    assert.ok(truncated.spoken_text.length < truncated.full_text.length);
    await caller.waitFor("agent_speech_started", 2);
    await leaves(caller, callId);
  });

  it("goes on when the caller joins again with the same token, without losing a message", async () => {
    const { callId, ...ticket } = await house.openRoom({ ...frontDeskConfig, welcome_message: "" });
    const first = await RoomCaller.join(ticket, { microphone: false });
    await first.message("call_started");
    await first.send({ type: "user_message", text: "When is breakfast?" });
    await first.message("agent_speech_started");
    const again = await RoomCaller.join(ticket, { microphone: false });
    await first.until("the first visit to end", () => first.isDisconnected);
    await again.message("call_started");
    await again.send({ type: "user_message", text: "Is there wifi?" });
    await again.until("an answer", () =>
      again.messages.some((one) => one.type === "transcript" && /Wi-Fi is free/.test(one.text ?? "")),
    );
    const seqs = [...new Set([...first.messages, ...again.messages].map(({ seq }) => seq))].sort((a, b) => a - b);
    assert.deepEqual(
      seqs,
      seqs.map((_, index) => index + 1),
    );
    assert.equal(house.gateway.slotsInUse(), 1);
    await first.leave();
    const record = await leaves(again, callId);
    assert.ok(record.transcript.length >= 4);
  });
});

/** RMS of each 20 ms. */
function loudness(samples: Int16Array): number[] {
  const frames: number[] = [];
  for (let at = 0; at + 320 <= samples.length; at += 320) {
    const frame = samples.subarray(at, at + 320);
    frames.push(Math.sqrt(frame.reduce((sum, sample) => sum + sample * sample, 0) / frame.length));
  }
  return frames;
}

/** The best correlation of `said` with any part of `heard` of its length, -1 to 1. */
function likenessOf(said: readonly number[], heard: readonly number[]): number {
  let best = -1;
  // Silence follows what was heard.
  const padded = [...heard, ...said.map(() => 0)];
  for (let shift = 0; shift + said.length <= padded.length; shift += 1) {
    best = Math.max(best, correlation(said, padded.slice(shift, shift + said.length)));
  }
  return best;
}

function correlation(a: readonly number[], b: readonly number[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanA, meanB] = [mean(a), mean(b)];
  let [ab, aa, bb] = [0, 0, 0];
  for (const [index, value] of a.entries()) {
    const [x, y] = [value - meanA, (b[index] ?? 0) - meanB];
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return ab / Math.sqrt(aa * bb || 1);
}
