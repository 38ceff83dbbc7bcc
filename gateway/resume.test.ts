import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { MediaHost } from "#media/media_host.ts";
import { startWorkerPool } from "#media/threads/worker_pool.ts";
import { CallClient, callConfig, FakeApi, startTestGateway } from "#test/kit/gateway_fixture.ts";
import { transports } from "#test/kit/transports.ts";

const sentence = "Breakfast is served from seven to ten in the winter garden, and on Sundays until eleven.";
const bytesPerMs = 32;

for (const { transport, skip } of transports) {
  describe(`a sentence that is cut off on ${transport}`, { skip }, () => {
    let media: MediaHost;
    before(async () => {
      media = await startWorkerPool({ threads: 1 });
    });
    after(() => media.close());

    it("goes on after two seconds without a link: no event lost or doubled, no speech lost, and said again only what may not have come", async () => {
      const api = new FakeApi();
      api.config = callConfig({
        welcome_message: sentence,
        llm: { provider: "scripted", options: { replies: ["Yes."] } },
        tts: { provider: "scripted", options: { ms_per_char: 30 } },
      });
      const test = await startTestGateway({ transport, api, media });
      try {
        const { callId, url } = await test.reserve();
        const client = await CallClient.call(url);
        const { resume } = await client.message("call_started");
        const bytesOf = (one: CallClient) => one.audio.reduce((sum, bytes) => sum + bytes.byteLength, 0);
        await client.until(() => bytesOf(client) > 700 * bytesPerMs);
        const lastSeq = client.messages.at(-1)?.seq;
        client.socket.destroy();
        // The outage itself.
        await new Promise((resolve) => setTimeout(resolve, 2000));
        assert.equal(test.gateway.slotsInUse(), 1);

        const back = await CallClient.call(`${resume.url}?last_seq=${lastSeq}`);
        const done = await back.message("agent_speech_done");
        assert.equal(done.interrupted, false);
        const all = [...client.messages, ...back.messages];
        assert.deepEqual(
          all.map(({ seq }) => seq),
          all.map((_, index) => index + 1),
        );
        assert.equal(all.filter(({ type }) => type === "agent_speech_started").length, 1);
        const beforeMs = bytesOf(client) / bytesPerMs;
        const heardMs = beforeMs + bytesOf(back) / bytesPerMs;
        // What no pong had confirmed when the line was cut is said again: at most all that had come.
        assert.ok(
          heardMs >= done.audio_ms && heardMs <= done.audio_ms + beforeMs,
          `heard ${heardMs} of ${done.audio_ms} ms, ${beforeMs} of them before`,
        );

        back.ws.close(1000);
        assert.equal((await api.closeOf(callId)).end.reason, "client_hangup");
        assert.equal(test.gateway.slotsInUse(), 0);
      } finally {
        await test.stop();
      }
    });
  });
}
