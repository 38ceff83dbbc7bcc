import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Worker } from "node:worker_threads";
import { type AudioFormat, audioFormatFor } from "#contracts/audio_format.ts";
import type { CallEnd } from "#contracts/call_record.ts";
import { completeConfig, type VoiceAgentConfig } from "#contracts/voice_agent.ts";
import type { Usage } from "#contracts/voice_protocol.ts";
import { defaultProviders } from "#providers/catalogue.ts";
import { MediaFullError, type MediaHost, nowMs, type SessionMessage, type SessionSpec } from "../media_host.ts";
import { opusInstancesFor, startWorkerPool } from "./worker_pool.ts";

const config: VoiceAgentConfig = {
  welcome_message: "Hello.",
  llm: { provider: "scripted", options: { replies: ["Yes."] } },
  tts: { provider: "scripted", options: { ms_per_char: 10 } },
};

function specOf(format: AudioFormat = audioFormatFor()): SessionSpec {
  return {
    callId: "00000000-0000-4000-8000-000000000001",
    config: completeConfig(config, defaultProviders),
    inputFormat: format,
    outputFormat: format,
    clientBufferMs: 400,
    initialMessages: [],
  };
}

/** A session of the pool with what it sent, and waits for a message or the end. */
function openCall(pool: MediaHost, spec = specOf()) {
  const messages: SessionMessage[] = [];
  let audioBytes = 0;
  let check = () => {};
  let end: { end: CallEnd; usage: Usage } | undefined;
  const session = pool.open(spec, {
    audio(frame) {
      audioBytes += frame.length;
    },
    dropUnsent() {},
    message(message) {
      messages.push(message);
      check();
    },
    record() {},
    ended(callEnd, usage) {
      assert.equal(end, undefined, "a call ends once");
      end = { end: callEnd, usage };
      check();
    },
  });
  const until = (isSo: () => boolean) =>
    new Promise<void>((resolve) => {
      check = () => {
        if (isSo()) resolve();
      };
      check();
    });
  return {
    session,
    messages,
    audioBytes: () => audioBytes,
    sent: (type: SessionMessage["type"], count = 1) =>
      until(() => messages.filter((message) => message.type === type).length >= count),
    async ended() {
      await until(() => end !== undefined);
      return end as unknown as { end: CallEnd; usage: Usage };
    },
  };
}

describe("worker pool", () => {
  it("runs two hundred calls on two threads, each with its own turns, and ends them all", async () => {
    const pool = await startWorkerPool({ threads: 2 });
    try {
      const calls = Array.from({ length: 200 }, () => openCall(pool));
      await Promise.all(calls.map((call) => call.sent("agent_speech_done")));
      const frame = new Uint8Array(640);
      for (const call of calls) {
        call.session.audio(frame, nowMs());
        call.session.command({ type: "user_message", text: "Well?" });
      }
      await Promise.all(calls.map((call) => call.sent("agent_speech_done", 2)));
      for (const call of calls) call.session.end("client_hangup");
      for (const call of calls) {
        const { end, usage } = await call.ended();
        assert.equal(end.reason, "client_hangup");
        assert.equal(usage.input_audio_ms, 20);
        assert.equal(call.audioBytes(), usage.output_audio_ms * 32);
        const spoken = call.messages.filter(
          (message) => message.type === "transcript" && message.role === "agent" && message.final,
        );
        assert.deepEqual(
          spoken.map((message) => message.type === "transcript" && message.text),
          ["Hello.", "Yes."],
        );
      }
    } finally {
      await pool.close();
    }
  });

  it("ends open calls with `drained` when it closes", async () => {
    const pool = await startWorkerPool({ threads: 1 });
    const call = openCall(pool);
    await call.sent("state");
    await pool.close();
    assert.equal((await call.ended()).end.reason, "drained");
  });

  it("ends the calls of a lost thread with media_thread_lost and goes on with a new thread", async () => {
    const workers: Worker[] = [];
    const onWorker = (worker: Worker) => workers.push(worker);
    process.on("worker", onWorker);
    let lost: (fields: object) => void = () => {};
    const isLost = new Promise<object>((resolve) => {
      lost = resolve;
    });
    const pool = await startWorkerPool({ threads: 2, logger: { warn: (fields) => lost(fields) } });
    try {
      const [one, two] = [openCall(pool), openCall(pool)];
      await Promise.all([one.sent("state"), two.sent("state")]);
      await workers[0]?.terminate();
      const { end } = await one.ended();
      assert.deepEqual([end.reason, end.error_code], ["error", "media_thread_lost"]);
      assert.deepEqual(await isLost, { err: undefined, calls: 1, replaced: true });
      two.session.command({ type: "user_message", text: "Well?" });
      await two.sent("agent_speech_done", 2);
      const three = openCall(pool);
      await three.sent("agent_speech_done");
    } finally {
      process.off("worker", onWorker);
      await pool.close();
    }
  });

  it("ends only the call that broke an invariant", async () => {
    const faults: object[] = [];
    const pool = await startWorkerPool({ threads: 1, logger: { warn: (fields) => faults.push(fields) } });
    try {
      const [one, two] = [openCall(pool), openCall(pool)];
      one.session.command(null as never);
      const { end } = await one.ended();
      assert.deepEqual([end.reason, end.error_code], ["error", "internal_error"]);
      assert.equal(faults.length, 1);
      await two.sent("agent_speech_done");
    } finally {
      await pool.close();
    }
  });

  it("ends a call whose providers cannot be made, and says why", async () => {
    const pool = await startWorkerPool({ threads: 1 });
    try {
      const spec = specOf();
      const call = openCall(pool, {
        ...spec,
        config: { ...spec.config, llm: { provider: "none", language: "en", options: {} } },
      });
      assert.equal((await call.ended()).end.error_code, "media_open_failed");
    } finally {
      await pool.close();
    }
  });

  it("refuses an Opus call that no thread has an instance for", async () => {
    const opus = specOf(audioFormatFor({ encoding: "opus" }));
    const each = opusInstancesFor(opus);
    const pool = await startWorkerPool({ threads: 1 });
    try {
      const calls = Array.from({ length: Math.floor(64 / each) }, () => openCall(pool, opus));
      assert.throws(
        () => pool.open(opus, { audio() {}, dropUnsent() {}, message() {}, record() {}, ended() {} }),
        MediaFullError,
      );
      openCall(pool).session.end("client_hangup");
      calls[0]?.session.end("client_hangup");
      await calls[0]?.ended();
      await openCall(pool, opus).sent("state");
    } finally {
      await pool.close();
    }
  });
});
