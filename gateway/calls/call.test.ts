import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { topics } from "#bus/bus.ts";
import { audioFormatFor } from "#contracts/audio_format.ts";
import {
  CallClient,
  eventually,
  type FakeSession,
  ManualClock,
  noUsage,
  startTestGateway,
  type TestGateway,
} from "#test/kit/gateway_fixture.ts";
import { transports } from "#test/kit/transports.ts";

/** 20 ms of 16 kHz PCM, every byte `fill`. */
const frame = (fill: number) => new Uint8Array(640).fill(fill);

for (const { transport, skip } of transports) {
  describe(`a call on ${transport}`, { skip }, () => {
    const clock = new ManualClock();
    let test: TestGateway;
    before(async () => {
      test = await startTestGateway({ transport, slots: 4, clock });
    });
    after(() => test.stop());

    async function call(): Promise<{ client: CallClient; session: FakeSession; callId: string; url: string }> {
      const { callId, url } = await test.reserve();
      const client = await CallClient.call(url);
      return { client, session: test.media.of(callId), callId, url };
    }
    /** After each test nothing is left: no slot, no open record. */
    async function over(callId: string) {
      const close = await test.api.closeOf(callId);
      await eventually(() => test.gateway.slotsInUse() === 0, "every slot is free");
      return close.end;
    }
    async function hangUp(client: CallClient, callId: string) {
      client.ws.close(1000);
      await over(callId);
    }

    it("numbers messages 1, 2, 3 and keeps the session's order of text and audio", async () => {
      const { client, session, callId } = await call();
      session.sink.message({ type: "agent_speech_started", turn_id: "t", utterance_id: "u", source: "model" });
      session.sink.audio(frame(1), 20);
      session.sink.audio(frame(2), 20);
      session.sink.message({ type: "mark", name: "end:u" });
      clock.advance(1500);
      session.sink.message({ type: "state", state: "listening" });
      await client.message("state");
      const order = client.heard.map((one) => (one instanceof Uint8Array ? one[0] : one.type));
      assert.deepEqual(order, ["call_started", "agent_speech_started", 1, 2, "mark", "state"]);
      assert.deepEqual(
        client.messages.map(({ seq }) => seq),
        [1, 2, 3, 4],
      );
      assert.equal(client.messages.at(-1)?.t, 1500);
      await hangUp(client, callId);
    });

    it("hands audio, base64 media and commands to the session and answers ping itself", async () => {
      const { client, session, callId } = await call();
      client.ws.send(frame(5));
      client.send({ type: "media", payload: Buffer.from([1, 2, 3, 4]).toString("base64") });
      client.send({ type: "user_message", text: "hello", unknown: 1 });
      client.send({ type: "from_the_future" });
      client.send({ type: "ping", timestamp: 42 });
      const pong = await client.message("pong");
      assert.equal(pong.timestamp, 42);
      assert.equal(session.heardBytes, 644);
      assert.deepEqual(session.commands, [{ type: "user_message", text: "hello" }]);
      await hangUp(client, callId);
    });

    it("says what is wrong with a bad message, and closes with 1008 at the 20th", async () => {
      const { client, callId } = await call();
      client.ws.send("{");
      client.send({ type: "dtmf", digit: "x" });
      client.send({ type: "media", payload: "***" });
      const errors = await client.until(() => {
        const found = client.messages.filter((one) => one.type === "error");
        return found.length === 3 && found;
      });
      assert.deepEqual(
        errors.map((error) => error.type === "error" && [error.code, error.fatal, error.ref]),
        [
          ["bad_message", false, undefined],
          ["bad_message", false, "dtmf.digit"],
          ["bad_message", false, "media.payload"],
        ],
      );
      for (let i = 3; i < 20; i++) client.ws.send("[]");
      assert.equal((await client.whenClosed()).code, 1008);
      const last = client.messages.at(-1);
      assert.equal(last?.type === "call_ended" && last.reason, "error");
      assert.deepEqual((await over(callId)).error_code, "policy");
    });

    it("closes a text-only call that gets a binary frame with 1003", async () => {
      const { client, callId } = await call();
      client.send({ type: "start", capabilities: { text_only: true } });
      client.ws.send(frame(1));
      assert.deepEqual(await client.whenClosed(), { code: 1003, reason: "unsupported_data" });
      await over(callId);
    });

    it("closes with 1009 after a message that is too big, the goodbye first", async () => {
      const { client, callId } = await call();
      client.ws.send(new Uint8Array(64 * 1024 + 2));
      assert.deepEqual(await client.whenClosed(), { code: 1009, reason: "too_big" });
      assert.equal(client.messages.at(-1)?.type, "call_ended");
      await over(callId);
    });

    it("frees the slot at once after text that is not UTF-8, and the record says why", async () => {
      const { client, session, callId, url } = await call();
      session.isStuck = true;
      client.ws.send(Buffer.from([0xc3, 0x28]), { binary: false });
      await client.whenClosed();
      await eventually(() => test.gateway.slotsInUse() === 0, "the slot is free while the session still ends");
      session.sink.ended({ reason: "error", duration_ms: 1, error_code: "bad_encoding" }, noUsage);
      assert.deepEqual(session.end_, { reason: "error", errorCode: "bad_encoding" });
      assert.equal((await over(callId)).error_code, "bad_encoding");
      const preflight = await fetch(url.replace(/^ws/, "http"));
      assert.equal(((await preflight.json()) as { state: string }).state, "ended");
    });

    it("ends at once on hang_up, and with the code of each reason", async () => {
      const reasons = [
        ["agent_hangup", 1000, "normal"],
        ["idle_timeout", 4008, "idle_timeout"],
        ["max_duration", 4010, "max_duration"],
        ["error", 1011, "internal"],
      ] as const;
      for (const [reason, code, text] of reasons) {
        const { client, session, callId } = await call();
        session.sink.ended({ reason, duration_ms: 7 }, noUsage);
        assert.deepEqual(await client.whenClosed(), { code, reason: text });
        const last = client.messages.at(-1);
        assert.equal(last?.type === "call_ended" && last.reason, reason);
        assert.equal((await over(callId)).reason, reason);
      }
      const { client, callId } = await call();
      client.send({ type: "hang_up" });
      assert.equal((await client.whenClosed()).code, 1000);
      assert.equal((await over(callId)).reason, "client_hangup");
    });

    it("lets the session speak before a hang_up with a message", async () => {
      const { client, session, callId } = await call();
      client.send({ type: "hang_up", message: "bye" });
      await eventually(() => session.commands.length === 1, "the session hears it");
      assert.equal(session.end_, undefined);
      session.sink.audio(frame(3), 20);
      session.sink.ended({ reason: "client_hangup", duration_ms: 5 }, noUsage);
      assert.equal((await client.whenClosed()).code, 1000);
      assert.equal(client.audio.length, 1);
      await over(callId);
    });

    it("injects control messages from the bus", async () => {
      const { client, session, callId } = await call();
      const topic = topics.callControl(session.spec.callId);
      assert.ok(topic);
      await test.bus.publish(
        topics.callControl(gatewayId(test)),
        JSON.stringify({ call_id: callId, message: { type: "say", text: "now" } }),
      );
      await test.bus.publish(topics.callControl(gatewayId(test)), "nonsense");
      await eventually(() => session.commands.length === 1, "the session hears it");
      assert.deepEqual(session.commands, [{ type: "say", text: "now" }]);
      await hangUp(client, callId);
    });

    it("goes on where it was after a lost link: nothing lost, nothing doubled, one slot", async () => {
      const { client, session, callId } = await call();
      const say = (n: number) => session.sink.message({ type: "mark", name: String(n) });
      say(1);
      await client.message("mark");
      const { resume } = await client.message("call_started");
      client.socket.destroy();
      await eventually(() => session.pauses === 1, "the session pauses");
      say(2);
      session.sink.audio(frame(1), 20);
      say(3);
      clock.advance(2000);
      assert.equal(test.gateway.slotsInUse(), 1);

      const lastSeq = client.messages.at(-1)?.seq;
      const back = await CallClient.call(`${resume.url}?last_seq=${lastSeq}`);
      assert.equal(session.resumes, 1);
      await back.until(() => back.messages.some((one) => one.type === "mark" && one.name === "3"));
      say(4);
      await back.until(() => back.messages.some((one) => one.type === "mark" && one.name === "4"));

      const all = [...client.messages, ...back.messages];
      assert.deepEqual(
        all.map(({ seq }) => seq),
        all.map((_, index) => index + 1),
      );
      assert.deepEqual(
        all.flatMap((one) => (one.type === "mark" ? [one.name] : [])),
        ["1", "2", "3", "4"],
      );
      assert.equal(back.audio.length, 1);
      assert.equal(test.gateway.slotsInUse(), 1);

      const again = (await back.message("call_started")).resume;
      assert.notEqual(again.token, resume.token);
      const used = await CallClient.connect(`${resume.url}?last_seq=1`);
      assert.ok(!(used instanceof CallClient));
      assert.deepEqual([used.status, used.body], [410, '{"code":"gone"}']);
      const wrong = await CallClient.connect(`${resume.url.slice(0, -8)}AAAAAAAA?last_seq=1`);
      assert.ok(!(wrong instanceof CallClient));
      assert.equal(wrong.status, 404);
      await hangUp(back, callId);
      const late = await CallClient.connect(`${again.url}?last_seq=1`);
      assert.ok(!(late instanceof CallClient));
      assert.equal(late.status, 410);
    });

    it("supersedes a socket that still looks alive with 4009", async () => {
      const { client, session, callId } = await call();
      const { resume } = await client.message("call_started");
      const back = await CallClient.call(`${resume.url}?last_seq=1`);
      assert.deepEqual(await client.whenClosed(), { code: 4009, reason: "superseded" });
      assert.equal(session.pauses, 0);
      client.ws.terminate();
      back.ws.send(frame(1));
      await eventually(() => session.heardBytes === 640, "the new socket is heard");
      assert.equal(test.gateway.slotsInUse(), 1);
      await hangUp(back, callId);
    });

    it("tells a client that was away too long that messages are missing", async () => {
      const { client, session, callId } = await call();
      const { resume } = await client.message("call_started");
      client.socket.destroy();
      await eventually(() => session.pauses === 1, "the session pauses");
      for (let n = 0; n < 300; n++) session.sink.message({ type: "mark", name: String(n) });
      const back = await CallClient.call(`${resume.url}?last_seq=1`);
      assert.equal((await back.message("warning")).code, "events_lost");
      const marks = back.messages.filter((one) => one.type === "mark");
      assert.equal(marks.length, 256);
      assert.equal(marks.at(-1)?.seq, 301);
      await hangUp(back, callId);
    });

    it("holds the slot of a lost link for 30 s, then ends the call", async () => {
      const { client, session, callId } = await call();
      client.socket.destroy();
      await eventually(() => session.pauses === 1, "the session pauses");
      clock.advance(29_000);
      assert.equal(test.gateway.slotsInUse(), 1);
      clock.advance(2000);
      assert.deepEqual(await over(callId), { reason: "error", duration_ms: 1, error_code: "link_lost" });
    });

    it("pings every 20 s, and takes a link without any frame for 60 s for lost", async () => {
      const { client, session, callId } = await call();
      let pings = 0;
      client.ws.on("ping", (payload: Buffer) => {
        if (payload.byteLength === 0) pings += 1;
      });
      for (let n = 1; n <= 4; n++) {
        clock.advance(21_000);
        await eventually(() => pings === n, "a ping");
        // The pong is on its way: two round trips later it is there.
        for (let i = 0; i < 2; i++) await (await fetch(`${test.gateway.url}/healthz`)).text();
      }
      assert.equal(session.pauses, 0);
      client.socket.pause();
      clock.advance(61_000);
      assert.equal(session.pauses, 1);
      client.ws.terminate();
      clock.advance(31_000);
      await over(callId);
    });

    it("ends a call whose session is stuck", async () => {
      const { client, session, callId } = await call();
      session.isStuck = true;
      client.ws.close();
      await eventually(() => test.gateway.slotsInUse() === 0, "the slot is free at once");
      clock.advance(7000);
      assert.equal((await over(callId)).error_code, "session_stuck");
    });

    it("keeps in the record what its client was told went wrong", async () => {
      const { client, session, callId } = await call();
      clock.advance(700);
      session.sink.message({ type: "error", code: "llm_failed", message: "It is away", fatal: false });
      client.send({ type: "dtmf", digit: "x" });
      await client.until(() => client.messages.filter(({ type }) => type === "error").length === 2);
      client.ws.close(1000);
      const { progress } = await test.api.closeOf(callId);
      const events = [
        ...test.api.heartbeats.flatMap(({ calls }) => calls.filter((one) => one.call_id === callId)),
        progress,
      ].flatMap((growth) => growth.events ?? []);
      assert.deepEqual(
        events.map(({ event_id, type, data }) => [event_id, type, data.code, data.ref]),
        [
          ["event_1", "error", "llm_failed", undefined],
          ["event_2", "error", "bad_message", "dtmf.digit"],
        ],
      );
      assert.equal(events[0]?.at_ms, 700);
      await over(callId);
    });

    it("asks a client that sends too fast to pause, drops the oldest, and gives up after 30 s", async () => {
      const { client, session, callId } = await call();
      const second = new Uint8Array(32_000).fill(1);
      for (let n = 0; n < 30; n++) client.ws.send(second);
      const flow = await client.message("flow");
      assert.equal(flow.state, "pause");
      assert.ok(flow.buffered_ms > 10_000);
      assert.equal((await client.message("warning")).code, "input_overrun");
      const burst = session.heardBytes;
      assert.ok(burst <= 3 * second.byteLength, "about a second passes at once");
      clock.advance(1000);
      assert.ok(session.heardBytes - burst <= 3 * second.byteLength, "then twice real time");

      for (let s = 0; s < 32 && !client.closed; s++) {
        for (let n = 0; n < 8; n++) client.ws.send(second);
        const pings = client.messages.filter((one) => one.type === "pong").length;
        client.send({ type: "ping" });
        await client.until(() => client.closed || client.messages.filter((one) => one.type === "pong").length > pings);
        clock.advance(1000);
      }
      assert.deepEqual(await client.whenClosed(), { code: 4015, reason: "input_flood" });
      await over(callId);
    });

    it("closes with 1008 when messages flood in, however small", async () => {
      const { client, callId } = await call();
      for (let n = 0; n < 6000; n++) client.ws.send(new Uint8Array(2));
      assert.deepEqual(await client.whenClosed(), { code: 1008, reason: "policy" });
      await over(callId);
    });

    it("resumes the flow of a client that pauses when asked", async () => {
      const { client, session, callId } = await call();
      const second = new Uint8Array(32_000).fill(1);
      for (let n = 0; n < 13; n++) client.ws.send(second);
      await client.message("flow");
      client.send({ type: "ping" });
      await client.message("pong");
      clock.advance(5000);
      await client.until(() => client.messages.some((one) => one.type === "flow" && one.state === "resume"));
      clock.advance(5000);
      assert.equal(session.heardBytes, 13 * second.byteLength);
      await hangUp(client, callId);
    });

    it("gives up a client that does not read with 4014, and never lets memory grow", async () => {
      const { client, session, callId } = await call();
      client.socket.pause();
      const large = new Uint8Array(32_000);
      const isStuck = () => {
        for (let n = 0; n < 4; n++) session.sink.audio(large, 1000);
        clock.advance(20);
        return (session.unsentMs.at(-1) ?? 0) > 6000;
      };
      await eventually(isStuck, "audio piles up with us");
      for (let s = 0; s < 6; s++) clock.advance(1000);
      assert.equal((await over(callId)).error_code, "slow_consumer");
      client.socket.resume();
      assert.deepEqual(await client.whenClosed(), { code: 4014, reason: "slow_consumer" });
    });

    it("knows what its client has taken, and within 2 s that it takes no more", async () => {
      const { client, session, callId } = await call();
      let saidMs = 0;
      const speak = (ms: number) => {
        for (const untilMs = saidMs + ms; saidMs < untilMs; saidMs += 20) {
          session.sink.audio(frame(1), 20);
          clock.advance(20);
        }
      };
      for (let n = 1; n <= 3; n++) {
        speak(500);
        await eventually(() => session.deliveredMs === saidMs, "the client tells what it took");
      }
      client.socket.pause();
      speak(2000);
      assert.equal(session.deliveredMs, 1500);
      assert.ok((session.unsentMs.at(-1) ?? 0) >= 2000, "the session is told to wait");
      client.socket.resume();
      const warning = await client.message("warning");
      assert.equal(warning.code, "client_not_reading");
      await eventually(() => session.deliveredMs === saidMs, "it takes the rest");
      clock.advance(20);
      assert.equal(session.unsentMs.at(-1), 0);
      client.ws.close(1000);
      const { events } = (await test.api.closeOf(callId)).progress;
      assert.deepEqual(
        events?.map(({ data }) => data.code),
        ["client_not_reading"],
      );
      await over(callId);
    });

    it("has the session say again what a lost link swallowed", async () => {
      const { client, session, callId } = await call();
      session.sink.audio(frame(1), 20);
      await eventually(() => session.deliveredMs === 0, "the client answers");
      const { url } = (await client.message("call_started")).resume;
      client.ws.terminate();
      await eventually(() => session.pauses === 1, "the session pauses");
      session.sink.audio(frame(2), 20);
      session.sink.dropUnsent();
      session.sink.audio(frame(3), 20);
      const back = await CallClient.call(url);
      assert.equal((await back.until(() => back.audio[0]))[0], 3);
      await hangUp(back, callId);
    });

    it("sends no byte of an interrupted utterance after its clear, however the link stutters", async () => {
      const { client, session, callId } = await call();
      let utterance = 0;
      const step = fc.oneof(
        {
          weight: 6,
          arbitrary: fc.record({ kind: fc.constant("speak" as const), frames: fc.integer({ min: 1, max: 200 }) }),
        },
        { weight: 2, arbitrary: fc.record({ kind: fc.constant("interrupt" as const), frames: fc.constant(0) }) },
        { weight: 1, arbitrary: fc.record({ kind: fc.constant("stall" as const), frames: fc.constant(0) }) },
        { weight: 2, arbitrary: fc.record({ kind: fc.constant("read" as const), frames: fc.constant(0) }) },
        { weight: 2, arbitrary: fc.record({ kind: fc.constant("tick" as const), frames: fc.constant(0) }) },
      );
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
          for (const { kind, frames } of steps) {
            if (kind === "speak") for (let n = 0; n < frames; n++) session.sink.audio(frame(utterance % 251), 20);
            else if (kind === "interrupt") {
              session.sink.message({ type: "clear", utterance_id: String(utterance), reason: "user_speech" });
              utterance += 1;
            } else if (kind === "stall") client.socket.pause();
            else if (kind === "read") client.socket.resume();
            else clock.advance(20);
          }
          client.socket.resume();
          session.sink.message({ type: "clear", utterance_id: String(utterance), reason: "user_speech" });
          const last = String(utterance);
          utterance += 1;
          // The link has to drain before the clear itself can leave.
          await eventually(() => {
            clock.advance(20);
            return client.messages.some((one) => one.type === "clear" && one.utterance_id === last);
          }, "the last clear");
        }),
        { numRuns: 40 },
      );
      let current = 0;
      for (const one of client.heard) {
        if (one instanceof Uint8Array)
          assert.ok(
            one.every((byte) => byte === current % 251),
            "only the current utterance",
          );
        else if (one.type === "clear") current = Number(one.utterance_id) + 1;
      }
      await hangUp(client, callId);
    });

    it("speaks Opus packets and counts their time from their own headers", async () => {
      const { callId, url } = await test.reserve();
      const opus = audioFormatFor({ encoding: "opus" });
      test.api.formats.set(callId, { input: opus, output: opus });
      const client = await CallClient.call(url);
      const session = test.media.of(callId);
      session.sink.audio(new Uint8Array([0x78, 1, 2]), 20);
      await client.until(() => client.audio.length === 1);
      client.ws.send(new Uint8Array([0x78, 9]));
      await eventually(() => session.heardBytes === 2, "the packet is heard");
      await hangUp(client, callId);
    });

    it("survives any text and any bytes, and loses no slot", async () => {
      const message = fc.oneof(
        fc.string().map((text) => text),
        fc.json(),
        fc
          .record({
            type: fc.constantFrom(
              "start",
              "mark",
              "dtmf",
              "say",
              "user_message",
              "media",
              "ping",
              "client_tool_result",
            ),
            text: fc.anything(),
            payload: fc.anything(),
            digit: fc.anything(),
            name: fc.anything(),
            metadata: fc.anything(),
          })
          .map((value) => {
            try {
              return JSON.stringify(value);
            } catch {
              return "{}";
            }
          }),
        fc.uint8Array({ maxLength: 2000 }),
        fc.constant("[".repeat(30_000)),
        fc.constant(`{"type":"start","metadata":${'{"a":'.repeat(8000)}1${"}".repeat(8000)}}`),
        fc.constant('{"type":"__proto__"}'),
        fc.constant('{"type":"constructor","__proto__":{"type":"say"}}'),
      );
      const calls: string[] = [];
      await fc.assert(
        fc.asyncProperty(fc.array(message, { maxLength: 60 }), async (messages) => {
          const { client, callId } = await call();
          calls.push(callId);
          for (const one of messages) client.ws.send(one);
          client.ws.close();
          await client.whenClosed();
          await over(callId);
        }),
        { numRuns: 150 },
      );
      assert.equal(test.gateway.slotsInUse(), 0);
    });

    it("survives raw bytes in place of frames, and loses no slot", async () => {
      await fc.assert(
        fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 200 }), async (bytes) => {
          const { client, session, callId } = await call();
          client.socket.write(bytes);
          await (await fetch(`${test.gateway.url}/healthz`)).text();
          client.socket.destroy();
          await eventually(() => session.pauses > 0 || session.end_ !== undefined, "the link is gone");
          clock.advance(31_000);
          await over(callId);
        }),
        { numRuns: 250 },
      );
    });
  });
}

/** The id under which this gateway opened its calls. */
function gatewayId(test: TestGateway): string {
  const id = test.api.heartbeats[0]?.gateway_id ?? test.api.closes[0]?.request.gateway_id;
  assert.ok(id);
  return id;
}
