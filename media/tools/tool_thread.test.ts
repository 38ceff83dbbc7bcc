import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { audioFormatFor } from "#contracts/audio_format.ts";
import { completeConfig, type VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { defaultProviders } from "#providers/catalogue.ts";
import type { SessionMessage } from "../media_host.ts";
import { startWorkerPool } from "../threads/worker_pool.ts";

describe("the tools' thread", () => {
  it("runs two tools of one step side by side, for a call on a media thread", async () => {
    let open = 0;
    let most = 0;
    const waiting: (() => void)[] = [];
    const server = createServer((request, response) => {
      open += 1;
      most = Math.max(most, open);
      waiting.push(() => {
        open -= 1;
        response.end(`answer of ${request.url}`);
      });
      // The first waits for the second: one after the other they would wait for ever.
      if (waiting.length === 2) for (const answer of waiting) answer();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const config: VoiceAgentConfig = {
      llm: {
        provider: "scripted",
        options: {
          tool_calls: [
            { turn: 1, name: "one" },
            { turn: 1, name: "two" },
          ],
          replies: ["Both are there."],
        },
      },
      tts: { provider: "scripted", options: { ms_per_char: 1 } },
      tools: [
        { name: "one", url: `${url}/one` },
        { name: "two", url: `${url}/two` },
      ],
    };
    const pool = await startWorkerPool({ threads: 1, world: { allowPrivateAddresses: true } });
    try {
      const messages: SessionMessage[] = [];
      await new Promise<void>((resolve) => {
        const session = pool.open(
          {
            callId: "00000000-0000-4000-8000-000000000001",
            config: completeConfig(config, defaultProviders),
            inputFormat: audioFormatFor(),
            outputFormat: audioFormatFor(),
            clientBufferMs: 400,
            initialMessages: [],
          },
          {
            audio() {},
            dropUnsent() {},
            message(message) {
              messages.push(message);
              if (message.type === "agent_speech_done") session.end("client_hangup");
            },
            record() {},
            ended: () => resolve(),
          },
        );
        session.command({ type: "user_message", text: "Are they there?" });
      });
      const events = messages.flatMap((message) => (message.type === "tool_event" ? [message] : []));
      assert.deepEqual(events.map(({ name, phase }) => `${name} ${phase}`).sort(), [
        "one completed",
        "one started",
        "two completed",
        "two started",
      ]);
      assert.equal(most, 2);
    } finally {
      await pool.close();
      server.close();
    }
  });
});
