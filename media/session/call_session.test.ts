import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { audioFormatFor } from "#contracts/audio_format.ts";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import type { LanguageModel, LlmRequest } from "#providers/language_model.ts";
import { type HarnessOptions, SessionHarness } from "#test/kit/session_harness.ts";
import type { SessionMessage } from "../media_host.ts";
import { wordsFor } from "../words/words_for.ts";

const echo: VoiceAgentConfig = { stt: { provider: "echo" }, llm: { provider: "echo" }, tts: { provider: "echo" } };

function scripted(
  over: {
    transcripts?: string[];
    replies?: string[];
    stt?: Record<string, unknown>;
    llm?: Record<string, unknown>;
    tts?: Record<string, unknown>;
    config?: VoiceAgentConfig;
  } = {},
): VoiceAgentConfig {
  return {
    stt: {
      provider: "scripted",
      options: { transcripts: over.transcripts ?? ["Hello"], partials: false, ...over.stt },
    },
    llm: { provider: "scripted", options: { replies: over.replies ?? ["How may I help you today?"], ...over.llm } },
    tts: { provider: "scripted", options: over.tts ?? {} },
    ...over.config,
  };
}

/** A call that has said nothing yet. */
async function call(config: VoiceAgentConfig, options: HarnessOptions = {}): Promise<SessionHarness> {
  const harness = new SessionHarness({ config, ...options });
  await harness.run(200);
  return harness;
}

/** The caller speaks a turn and the answer begins. */
async function oneTurn(h: SessionHarness, speechMs = 800): Promise<void> {
  const before = h.messages("agent_speech_started").length;
  await h.speak(speechMs);
  await h.runUntil("agent_speech_started", before + 1);
}

describe("session: a call of three turns, one barged into", () => {
  it("gives exactly these events", async () => {
    const config = scripted({
      transcripts: ["I want a room please", "No wait", "Thank you"],
      replies: ["Of course. Which night would you like to stay?", "Sure.", "Goodbye."],
      config: { welcome_message: "Good evening." },
    });
    const h = await call(config);
    await h.runUntil("agent_speech_done");
    await oneTurn(h);
    await h.run(1000);
    await oneTurn(h);
    await h.runUntil("agent_speech_done", 3);
    await oneTurn(h);
    await h.runUntil("agent_speech_done", 4);
    await h.run(1000);
    await h.command({ type: "hang_up" });
    const story = h.story().filter((line) => !line.startsWith("audio"));
    assert.deepEqual(story, [
      "state initializing",
      "transcript agent partial: Good evening.",
      "state speaking",
      "agent_speech_started utt_1 welcome",
      "mark start:utt_1",
      "transcript agent final: Good evening.",
      "mark end:utt_1",
      "agent_speech_done utt_1",
      "state listening",
      "user_speech_started turn_1",
      "user_speech_stopped turn_1",
      "state thinking",
      "transcript user final: I want a room please",
      "transcript agent partial: Of course.",
      "state speaking",
      "agent_speech_started utt_2 model",
      "mark start:utt_2",
      "transcript agent partial: Of course. Which night would you like to stay?",
      "transcript agent final: Of course. Which night would you like to stay?",
      "mark at:utt_2:1000",
      "clear utt_2 user_speech",
      "user_speech_started turn_2",
      "truncated utt_2: Of course. Which night",
      "agent_speech_done utt_2 interrupted",
      "turn_metrics turn_1",
      "state listening",
      "user_speech_stopped turn_2",
      "state thinking",
      "transcript user final: No wait",
      "transcript agent partial: Sure.",
      "state speaking",
      "agent_speech_started utt_3 model",
      "mark start:utt_3",
      "transcript agent final: Sure.",
      "mark end:utt_3",
      "agent_speech_done utt_3",
      "turn_metrics turn_2",
      "state listening",
      "user_speech_started turn_3",
      "user_speech_stopped turn_3",
      "state thinking",
      "transcript user final: Thank you",
      "transcript agent partial: Goodbye.",
      "state speaking",
      "agent_speech_started utt_4 model",
      "mark start:utt_4",
      "transcript agent final: Goodbye.",
      "mark end:utt_4",
      "agent_speech_done utt_4",
      "turn_metrics turn_3",
      "state listening",
    ]);
    assert.equal(h.end?.end.reason, "client_hangup");
    const items = new Map(h.records.flatMap((record) => record.items).map((item) => [item.item_id, item]));
    assert.deepEqual(
      [...items.values()].map((item) => [item.role, item.heard_text, item.interrupted]),
      [
        ["agent", "Good evening.", false],
        ["user", "I want a room please", false],
        ["agent", "Of course. Which night", true],
        ["user", "No wait", false],
        ["agent", "Sure.", false],
        ["user", "Thank you", false],
        ["agent", "Goodbye.", false],
      ],
    );
    assert.equal(new Set(h.records.flatMap((record) => record.turns).map((turn) => turn.turn_id)).size, 3);
  });
});

describe("session: barge-in", () => {
  it("sends no byte of an interrupted utterance after its clear, whatever happens when", async () => {
    const step = fc.oneof(
      fc.integer({ min: 1, max: 60 }).map((frames) => ({ do: "speak" as const, ms: frames * 20 })),
      fc.integer({ min: 1, max: 80 }).map((frames) => ({ do: "wait" as const, ms: frames * 20 })),
      fc.constant({ do: "interrupt" as const, ms: 0 }),
      fc.constant({ do: "say" as const, ms: 0 }),
      fc.constant({ do: "type" as const, ms: 0 }),
      fc.constantFrom(100, 600, 2000).map((ms) => ({ do: "link_lost" as const, ms })),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 3, maxLength: 12 }),
        fc.constantFrom(60, 400, 5000),
        async (steps, clientBufferMs) => {
          const transcripts = ["One", "", "Two", "", "", "Three"];
          const h = await call(
            scripted({ transcripts, replies: ["This is a rather long answer, with a comma in it. And more."] }),
            {
              clientBufferMs,
            },
          );
          await oneTurn(h, 400);
          for (const { do: what, ms } of steps) {
            if (what === "speak") await h.speak(ms);
            else if (what === "wait") await h.run(ms);
            else if (what === "interrupt") await h.command({ type: "interrupt" });
            else if (what === "say")
              await h.command({ type: "say", text: "Excuse me, please.", behavior: "interrupt" });
            else if (what === "type") await h.command({ type: "user_message", text: "And now?", urgency: "immediate" });
            else {
              h.session.pause();
              await h.clock.advance(ms);
              h.session.resume();
            }
          }
          await h.run(6000);
          checkUtterances(h);
          h.session.end("client_hangup");
        },
      ),
      { numRuns: 40 },
    );
  });

  /** Audio flows only inside of an announced utterance, never after its clear; each utterance ends once. */
  function checkUtterances(h: SessionHarness): void {
    let open: string | undefined;
    const ended = new Set<string>();
    for (const sent of h.sent) {
      if (sent.kind === "audio") {
        assert.ok(open, "audio outside of an utterance");
        assert.ok(!ended.has(open), `audio of ${open} after its end`);
        continue;
      }
      const { message } = sent;
      if (message.type === "agent_speech_started") {
        assert.equal(open, undefined, "two utterances at once");
        assert.ok(!ended.has(message.utterance_id), "an utterance comes back");
        open = message.utterance_id;
      } else if (message.type === "clear" && message.utterance_id === open) ended.add(message.utterance_id);
      else if (message.type === "agent_speech_done") {
        assert.equal(message.utterance_id, open);
        assert.equal(ended.has(message.utterance_id), message.interrupted);
        ended.add(message.utterance_id);
        open = undefined;
      }
    }
  }

  it("goes on from the sample where it cut when no words follow within 2 s", async () => {
    const config = scripted({
      transcripts: ["Hello", ""],
      replies: ["This is a longer answer that takes a while to say."],
    });
    const whole = await call(config);
    await oneTurn(whole);
    await whole.runUntil("agent_speech_done");

    const h = await call(config);
    await oneTurn(h);
    await h.run(600);
    await h.speak(300);
    await h.runUntil("truncated");
    await h.runUntil("agent_speech_done", 2);
    const [cut] = h.messages("truncated");
    const [clear] = h.messages("clear");
    assert.ok(cut && clear);
    const clearAt = h.sent.findIndex((sent) => sent.kind === "message" && sent.message === clear);
    const before = Buffer.concat(
      h.sent.slice(0, clearAt).flatMap((sent) => (sent.kind === "audio" ? [sent.frame] : [])),
    );
    const after = Buffer.concat(h.sent.slice(clearAt).flatMap((sent) => (sent.kind === "audio" ? [sent.frame] : [])));
    const playedBytes = Math.floor(cut.played_ms * 16) * 2;
    assert.deepEqual(Buffer.concat([before.subarray(0, playedBytes), after]), whole.audioBytes());
    const [, goneOn] = h.messages("agent_speech_started");
    assert.equal(goneOn?.utterance_id, "utt_2");
    const stoppedAt = h.sent.find((sent) => sent.kind === "message" && sent.message === clear)?.atMs ?? 0;
    const goneOnAt = h.sent.find((sent) => sent.kind === "message" && sent.message === goneOn)?.atMs ?? 0;
    assert.equal(goneOnAt - stoppedAt, 2000);
    const texts = h.records.flatMap((record) => record.items).filter((item) => item.role === "agent");
    assert.equal(texts.map((item) => item.heard_text).join(" "), "This is a longer answer that takes a while to say.");
  });

  it("goes on wherever it was cut, while the model streams too, and every word is heard once", async () => {
    const reply = "Certainly. We have a room with a view, and one without it, which is larger. Both are free.";
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 250 }),
        fc.constantFrom(0, 8, 40),
        fc.constantFrom(0, 300),
        fc.boolean(),
        async (waitFrames, tokens_per_s, delay_ms, echoesMarks) => {
          const config = scripted({
            transcripts: ["Hello", ""],
            replies: [reply],
            llm: { tokens_per_s },
            tts: { delay_ms },
          });
          const h = await call(config, { echoesMarks });
          await h.speak(600);
          await h.runUntil("user_speech_stopped");
          await h.run(waitFrames * 20);
          await h.speak(300);
          await h.run(20_000);
          const items = new Map(h.records.flatMap(({ items }) => items).map((item) => [item.item_id, item]));
          const heard = [...items.values()].flatMap((item) => (item.role === "agent" ? [item.heard_text] : []));
          assert.equal(heard.filter(Boolean).join(" "), reply);
          checkUtterances(h);
          h.session.end("client_hangup");
        },
      ),
      { numRuns: 40 },
    );
  });

  it("gives the cut item's final transcript before it tells what was heard of it, while the model streams too", async () => {
    const h = await call(
      scripted({
        transcripts: ["Hello", "No wait"],
        replies: ["Yes, of course. One two three four five six seven eight nine ten.", "Sure."],
        llm: { tokens_per_s: 4 },
      }),
    );
    await oneTurn(h);
    await h.run(1000);
    await h.speak(400);
    await h.runUntil("truncated");
    const story = h.story();
    const clear = story.indexOf("clear utt_1 user_speech");
    assert.deepEqual(
      story.slice(clear, clear + 5).map((line) => line.replace(/:.*/, "")),
      [
        "clear utt_1 user_speech",
        "user_speech_started turn_2",
        "transcript agent final",
        "truncated utt_1",
        "agent_speech_done utt_1 interrupted",
      ],
    );
  });

  it("does not go on after a client's interrupt, and answers it with clear", async () => {
    const h = await call(scripted());
    await oneTurn(h);
    await h.run(300);
    await h.command({ type: "interrupt" });
    await h.run(4000);
    assert.deepEqual(h.messages("clear"), [{ type: "clear", utterance_id: "utt_1", reason: "client_interrupt" }]);
    assert.equal(h.messages("agent_speech_started").length, 1);
    await h.command({ type: "interrupt" });
    assert.equal(h.messages("clear").length, 2, "an interrupt of nothing is answered too");
  });

  it("clears within the frame that completes 150 ms of speech", async () => {
    const h = await call(scripted({ replies: ["A long answer that goes on and on and on and on."] }));
    await oneTurn(h);
    await h.run(1000);
    const startedMs = h.clock.nowMs();
    await h.speak(400);
    const clear = h.sent.find((sent) => sent.kind === "message" && sent.message.type === "clear");
    assert.ok(clear && clear.atMs - startedMs <= 180, `clear after ${clear && clear.atMs - startedMs} ms`);
  });

  it("waits for 500 ms where the device cancels no echo", async () => {
    const h = await call(scripted({ replies: ["A long answer that goes on and on and on and on."] }));
    await h.command({ type: "start", capabilities: { echo_cancellation: false } });
    await oneTurn(h);
    await h.run(1000);
    await h.speak(440);
    assert.equal(h.messages("clear").length, 0);
    await h.speak(200);
    assert.equal(h.messages("clear").length, 1);
  });

  it("keeps the lead short for a client that cannot clear", async () => {
    const h = await call(scripted({ replies: ["A long answer that goes on and on and on and on."] }), {
      clientBufferMs: 5000,
    });
    await h.command({ type: "start", capabilities: { clear: false } });
    await oneTurn(h);
    const bytes = h.audioBytes().length;
    assert.ok(bytes > 0 && bytes <= 80 * 32, `${bytes / 32} ms ahead`);
  });

  it("is not allowed where the agent's configuration says so: the turn is answered afterwards", async () => {
    const h = await call(
      scripted({
        replies: ["One answer of some length.", "Two."],
        config: { advanced: { allow_interruptions: false } },
      }),
    );
    await oneTurn(h);
    await h.speak(400);
    await h.runUntil("agent_speech_done", 2);
    assert.equal(h.messages("clear").length, 0);
    assert.equal(
      h.messages("agent_speech_done").some((message) => message.interrupted),
      false,
    );
  });
});

describe("session: a caller who listens", () => {
  const statement = "Breakfast is served from seven to ten in the garden room, and dinner from six.";

  for (const [name, partials] of [
    ["with partial results", true],
    ["without", false],
  ] as const) {
    it(`is not taken for one who interrupts, ${name}`, async () => {
      const transcripts = ["When is breakfast", "Mm-hm, okay"];
      const config = scripted({ transcripts, replies: [statement], stt: { partials } });
      const whole = await call(config);
      await oneTurn(whole);
      await whole.runUntil("agent_speech_done");

      const h = await call(config);
      await oneTurn(h);
      await h.run(600);
      const turns = h.messages("turn_metrics").length;
      await h.speak(400);
      await h.runUntil("user_backchannel");
      const heardMs = h.clock.nowMs();
      await h.runUntil("agent_speech_started", 2);
      assert.ok(h.clock.nowMs() - heardMs <= 100);
      await h.runUntil("agent_speech_done", 2);
      await h.run(1000);
      assert.equal(h.messages("agent_speech_started").length, 2);
      assert.equal(h.messages("turn_metrics").length, turns + 1);
      const items = [...new Map(h.records.flatMap(({ items }) => items).map((item) => [item.item_id, item])).values()];
      assert.deepEqual(
        items.map(({ role, heard_text, backchannel }) => [role, heard_text, backchannel]),
        [
          ["user", "When is breakfast", undefined],
          ["agent", items[1]?.heard_text, undefined],
          ["user", "Mm-hm, okay", true],
          ["agent", items[3]?.heard_text, undefined],
        ],
      );
      assert.equal(`${items[1]?.heard_text} ${items[3]?.heard_text}`, statement);
    });
  }

  it("answers where the agent has asked", async () => {
    const replies = ["Shall I book the garden room for you?", "Done."];
    const h = await call(scripted({ transcripts: ["A room", "Yes"], replies }));
    await oneTurn(h);
    await h.run(1300);
    await h.speak(400);
    await h.runUntil("agent_speech_done", 2);
    assert.equal(h.messages("user_backchannel").length, 0);
    assert.equal(h.messages("transcript").at(-1)?.text, "Done.");
  });

  for (const [words, isAnswered] of [
    ["The garden room", false],
    ["Is the garden open", true],
  ] as const) {
    it(`${isAnswered ? "interrupts" : "does not interrupt"} with "${words}" where min_interrupt_words is 4`, async () => {
      const config = { advanced: { min_interrupt_words: 4 } };
      const transcripts = ["When is breakfast", words];
      const h = await call(
        scripted({ transcripts, replies: [statement, "All right."], config, stt: { partials: true } }),
      );
      await oneTurn(h);
      await h.run(600);
      await h.speak(600);
      await h.runUntil("agent_speech_done", 2);
      assert.equal(h.messages("user_backchannel").length, isAnswered ? 0 : 1);
      assert.equal(h.messages("transcript").at(-1)?.text === "All right.", isAnswered);
    });
  }

  it("interrupts with a word that is none of a listener's", async () => {
    const h = await call(scripted({ transcripts: ["When is breakfast", "Stop"], replies: [statement, "All right."] }));
    await oneTurn(h);
    await h.run(600);
    await h.speak(400);
    await h.runUntil("agent_speech_done", 2);
    assert.equal(h.messages("transcript").at(-1)?.text, "All right.");
  });
});

describe("session: echo", () => {
  for (const [name, request] of [
    ["16 kHz PCM", { encoding: "pcm_s16le" }],
    ["48 kHz PCM", { encoding: "pcm_s16le", sample_rate: 48_000 }],
    ["mulaw", { encoding: "mulaw" }],
    ["alaw", { encoding: "alaw" }],
  ] as const) {
    it(`gives ${name} back sample for sample`, async () => {
      const format = audioFormatFor(request);
      const h = await call(echo, { inputFormat: format });
      const inputs: Uint8Array[] = [];
      const { audio } = h.session;
      h.session.audio = (bytes, atMs) => {
        inputs.push(bytes);
        audio.call(h.session, bytes, atMs);
      };
      await h.run(500);
      await h.speak(700);
      await h.runUntil("agent_speech_done");
      const input = Buffer.concat(inputs);
      // The two zeros of mulaw are one sample.
      if (format.encoding === "mulaw") for (const [i, byte] of input.entries()) if (byte === 0x7f) input[i] = 0xff;
      const output = h.audioBytes();
      assert.ok(output.length > 0);
      const at = input.indexOf(output);
      assert.ok(at >= 0, "the answer is a stretch of the input");
      const perMs = input.length / (inputs.length * 20);
      const speechAt = 500 * perMs;
      assert.ok(Math.abs(at + 300 * perMs - speechAt) <= 80 * perMs, `begins ${at / perMs} ms in, speech at 500`);
      assert.ok(at + output.length >= speechAt + 600 * perMs, "reaches the end of speech");
      assert.ok(at + output.length <= speechAt + 900 * perMs, "without the silence after it");
    });
  }

  for (const [name, input, output] of [
    ["mulaw in, 48 kHz PCM out", { encoding: "mulaw" }, { sample_rate: 48_000 }],
    ["48 kHz PCM in, alaw out", { sample_rate: 48_000 }, { encoding: "alaw" }],
    ["opus both ways", { encoding: "opus" }, { encoding: "opus" }],
    ["16 kHz PCM in, opus out", {}, { encoding: "opus", sample_rate: 24_000 }],
    ["opus in, 44.1 kHz PCM out", { encoding: "opus", sample_rate: 16_000 }, { sample_rate: 44_100 }],
  ] as const) {
    it(`speaks the same length back: ${name}`, async () => {
      const h = await call(echo, { inputFormat: audioFormatFor(input), outputFormat: audioFormatFor(output) });
      await h.run(500);
      await h.speak(1000);
      await h.runUntil("agent_speech_done");
      const [done] = h.messages("agent_speech_done");
      assert.ok(done && done.audio_ms > 1150 && done.audio_ms < 1550, `${done?.audio_ms} ms`);
      h.session.end("client_hangup");
    });
  }
});

describe("session: time", () => {
  it("measures a turn: providers' delays and nothing of its own", async () => {
    const h = await call(scripted({ stt: { delay_ms: 120 }, llm: { delay_ms: 250 }, tts: { delay_ms: 80 } }));
    await oneTurn(h);
    await h.runUntil("turn_metrics");
    const [metrics] = h.messages("turn_metrics");
    assert.ok(metrics);
    assert.ok(metrics.eos_wait_ms >= 500 && metrics.eos_wait_ms <= 520, `${metrics.eos_wait_ms}`);
    const { stt_final_ms, llm_ttft_ms, tts_ttfb_ms, gateway_ms, end_of_turn_to_audio_ms, to_playout_ms } = metrics;
    assert.deepEqual(
      { stt_final_ms, llm_ttft_ms, tts_ttfb_ms, gateway_ms, end_of_turn_to_audio_ms },
      {
        stt_final_ms: 120,
        llm_ttft_ms: 250,
        tts_ttfb_ms: 80,
        gateway_ms: 0,
        end_of_turn_to_audio_ms: 450,
      },
    );
    assert.ok(to_playout_ms !== undefined && to_playout_ms >= 450 && to_playout_ms <= 490, `${to_playout_ms}`);
  });

  const endings: [partial: string, advanced: NonNullable<VoiceAgentConfig["advanced"]>, waitMs: number][] = [
    ["I need a room", {}, 500],
    ["I need a room.", {}, 300],
    ["I need a room and", {}, 1000],
    ["I need a room and", { turn_sensitivity: "low" }, 1600],
    ["I need a room.", { turn_sensitivity: "high" }, 180],
    ["I need a room and", { eos_silence_ms: 400 }, 400],
  ];
  for (const [partial, advanced, waitMs] of endings) {
    it(`waits ${waitMs} ms after "${partial}" with ${JSON.stringify(advanced)}`, async () => {
      // The last word is in no partial result.
      const h = await call(
        scripted({ transcripts: [`${partial} please`], stt: { partials: true }, config: { advanced } }),
      );
      await oneTurn(h, 2400);
      await h.runUntil("turn_metrics");
      const { eos_wait_ms } = h.messages("turn_metrics")[0] ?? assert.fail("no metrics");
      // In windows of 32 ms.
      assert.ok(eos_wait_ms >= waitMs && eos_wait_ms <= waitMs + 40, `${eos_wait_ms}`);
    });
  }

  describe("where the answer is asked for ahead", () => {
    const advanced = { eos_silence_ms: 800, preemptive_tts: true };
    /** The last word is in no partial result: of the full transcript here only its punctuation is missing. */
    const ahead = async (transcript: string, preemptive_tts = true) => {
      const h = await call(
        scripted({
          transcripts: [transcript],
          replies: ["At eight."],
          stt: { partials: true },
          llm: { delay_ms: 300 },
          tts: { delay_ms: 200 },
          config: { advanced: { ...advanced, preemptive_tts } },
        }),
      );
      await oneTurn(h, 2400);
      await h.runUntil("turn_metrics");
      await h.runUntil("agent_speech_done");
      await h.command({ type: "hang_up" });
      const [metrics] = h.messages("turn_metrics");
      assert.deepEqual(h.messages("transcript").at(-1)?.text, "At eight.");
      return { metrics, usage: h.end?.usage };
    };

    it("answers at once when no more follows, and counts what it used once", async () => {
      const taken = await ahead("When is breakfast ?");
      assert.equal(taken.metrics?.preemptive_hit, true);
      assert.ok((taken.metrics?.end_of_turn_to_audio_ms ?? 999) <= 200, `${taken.metrics?.end_of_turn_to_audio_ms}`);
      const plain = await ahead("When is breakfast ?", false);
      assert.equal(plain.metrics?.preemptive_hit, false);
      assert.ok((plain.metrics?.end_of_turn_to_audio_ms ?? 0) >= 500);
      assert.deepEqual(taken.usage?.tts_characters, plain.usage?.tts_characters);
      assert.equal(taken.usage?.llm.completion, plain.usage?.llm.completion);
    });

    it("throws the answer away when more follows, asks again, and counts both", async () => {
      const missed = await ahead("When is breakfast tomorrow");
      assert.equal(missed.metrics?.preemptive_hit, false);
      const plain = await ahead("When is breakfast tomorrow", false);
      assert.equal(missed.usage?.llm.completion, 2 * (plain.usage?.llm.completion ?? 0));
      assert.ok((missed.metrics?.end_of_turn_to_audio_ms ?? 0) >= 500);
    });
  });

  it("speaks the first clause while the model still streams", async () => {
    const h = await call(
      scripted({ replies: ["Yes. One two three four five six seven eight nine ten."], llm: { tokens_per_s: 10 } }),
    );
    await oneTurn(h);
    const startedMs = h.clock.nowMs();
    await h.runUntil("agent_speech_done");
    const final = h.sent.find(
      (sent) =>
        sent.kind === "message" &&
        sent.message.type === "transcript" &&
        sent.message.role === "agent" &&
        sent.message.final,
    );
    assert.ok(final && final.atMs > startedMs + 500);
  });

  it("prompts once at half of the idle time and ends the call at the whole", async () => {
    const h = await call(scripted({ config: { advanced: { idle_timeout_s: 10 } } }));
    await h.run(30_000);
    assert.deepEqual(
      h.messages("agent_speech_started").map((message) => message.source),
      ["filler"],
    );
    const spoken = h.messages("transcript").filter((message) => message.final);
    assert.deepEqual(
      spoken.map((message) => message.text),
      [wordsFor("en").stillThere],
    );
    assert.equal(h.end?.end.reason, "idle_timeout");
    assert.ok(h.end && h.end.atMs < 12_500, `${h.end?.atMs}`);
  });

  it("ends the longest call", async () => {
    const h = await call(scripted({ config: { advanced: { max_call_duration_s: 10, idle_timeout_s: 0 } } }));
    await h.run(12_000);
    assert.equal(h.end?.end.reason, "max_duration");
    assert.equal(h.end?.end.duration_ms, 10_000);
  });

  it("warns once of a caller from whom nothing comes", async () => {
    const h = await call(scripted());
    h.sendsAudio = false;
    await h.run(25_000);
    assert.deepEqual(
      h.messages("warning").map((message) => message.code),
      ["no_input_audio"],
    );
  });

  for (const stallMs of [400, 760, 1000, 1400]) {
    it(`takes one sentence whose audio stalls for ${stallMs} ms for one turn`, async () => {
      const h = await call(scripted());
      await h.speak(600);
      h.sendsAudio = false;
      await h.run(stallMs);
      h.sendsAudio = true;
      await h.speak(600);
      await h.runUntil("agent_speech_done");
      assert.equal(h.messages("user_speech_started").length, 1);
      assert.equal(h.messages("user_speech_stopped").length, 1);
      assert.equal(h.messages("truncated").length, 0);
    });
  }

  it("ends a turn although the caller's audio stops in mid-word", async () => {
    const h = await call(scripted());
    await h.speak(500);
    h.sendsAudio = false;
    await h.runUntil("agent_speech_started", 1, 2000);
  });

  it("warns once of Opus that cannot be decoded", async () => {
    const h = await call(echo, { inputFormat: audioFormatFor({ encoding: "opus" }) });
    h.sendsAudio = false;
    for (let n = 0; n < 20; n += 1) h.session.audio(Uint8Array.of(0xff, 0xff, 0xff), h.clock.nowMs());
    assert.deepEqual(
      h.messages("warning").map(({ code }) => code),
      ["undecodable_audio"],
    );
  });

  it("says goodbye and ends when it is to leave, whatever it was saying", async () => {
    const h = await call(scripted({ config: { welcome_message: "Welcome to the house, how can I help you today?" } }));
    await h.runUntil("agent_speech_started");
    await h.command({ type: "leave", reason: "usage_limit" });
    await h.command({ type: "user_message", text: "But I want to book!", urgency: "immediate" });
    await h.run(20_000);
    assert.deepEqual(h.end?.end.reason, "usage_limit");
    const said = h.messages("transcript").filter(({ role, final }) => role === "agent" && final);
    assert.match(said.at(-1)?.text ?? "", /Goodbye/);
    assert.equal(h.messages("agent_speech_done").at(-1)?.interrupted, false);
  });

  it("reports usage each minute", async () => {
    const h = await call(scripted({ config: { advanced: { idle_timeout_s: 0 } } }));
    await h.run(121_000);
    assert.deepEqual(
      h.messages("usage").map((message) => Math.round(message.input_audio_ms / 1000)),
      [60, 120],
    );
  });
});

describe("session: what a client may send", () => {
  it("takes typed text as a turn, and says nothing while it only adds context", async () => {
    const h = await call({
      llm: { provider: "scripted", options: { replies: ["One.", "Two."] } },
      tts: { provider: "scripted" },
    });
    await h.command({ type: "context_update", text: "The guest has booked room 7." });
    await h.run(1000);
    assert.equal(h.messages("agent_speech_started").length, 0);
    await h.command({ type: "user_message", text: "Hello?" });
    await h.runUntil("agent_speech_done");
    const said = h
      .messages("transcript")
      .filter((message) => message.final)
      .map((message) => `${message.role}: ${message.text}`);
    assert.deepEqual(said, ["user: Hello?", "agent: One."]);
  });

  it("answers digits after # or a pause of 1.5 s", async () => {
    const h = await call(scripted({ replies: ["One.", "Two."] }));
    for (const digit of ["4", "2", "#"]) await h.command({ type: "dtmf", digit });
    await h.runUntil("agent_speech_done");
    await h.command({ type: "dtmf", digit: "7" });
    await h.run(1400);
    assert.equal(h.messages("agent_speech_started").length, 1);
    await h.runUntil("agent_speech_done", 2);
    const typed = h.messages("transcript").filter((message) => message.role === "user");
    assert.deepEqual(
      typed.map((message) => message.text),
      ["42", "7"],
    );
  });

  it("says what it is told: refused in a turn, queued, or interrupting", async () => {
    const h = await call(scripted({ config: { welcome_message: "Welcome to this hotel, dear guest." } }));
    await h.command({ type: "say", text: "No." });
    await h.command({ type: "say", text: "Later.", behavior: "queue" });
    await h.command({ type: "say", text: "Now!", behavior: "interrupt" });
    await h.runUntil("agent_speech_done", 3);
    assert.deepEqual(
      h.messages("warning").map((message) => message.code),
      ["say_refused"],
    );
    assert.deepEqual(
      h.messages("clear").map((message) => message.reason),
      ["say"],
    );
    const said = h
      .messages("transcript")
      .filter((message) => message.final)
      .map((message) => message.text);
    assert.deepEqual(said.slice(-2), ["Now!", "Later."]);
  });

  it("hears nothing while muted", async () => {
    const h = await call(scripted());
    await h.command({ type: "mute" });
    await h.speak(1000);
    await h.run(2000);
    assert.equal(h.messages("user_speech_started").length, 0);
    await h.command({ type: "unmute" });
    await oneTurn(h);
  });

  it("says a farewell in full and hangs up", async () => {
    const h = await call(scripted({ config: { welcome_message: "Welcome to this hotel, dear guest." } }));
    await h.run(300);
    await h.command({ type: "hang_up", message: "We have to close. Goodbye." });
    await h.speak(1000);
    await h.run(2000);
    assert.equal(h.end?.end.reason, "client_hangup");
    assert.deepEqual(
      h.messages("agent_speech_done").map((message) => message.interrupted),
      [true, false],
    );
  });

  it("sends no audio to a text-only client", async () => {
    const h = new SessionHarness({ config: scripted({ config: { welcome_message: "Welcome." } }) });
    h.sendsAudio = false;
    await h.command({ type: "start", capabilities: { text_only: true } });
    await h.run(500);
    await h.command({ type: "user_message", text: "Hello?" });
    await h.run(500);
    const said = h
      .messages("transcript")
      .filter((message) => message.final)
      .map((message) => message.text);
    assert.deepEqual(said, ["Welcome.", "Hello?", "How may I help you today?"]);
    assert.equal(h.audioBytes().length, 0);
    assert.deepEqual(h.messages("state").at(-1)?.state, "listening");
  });

  it("says once what is set in vain, and that context is", async () => {
    const complete = { ignored_settings: ["instructions", "llm.model"], ignores_context: true };
    const h = await call(scripted(), { complete });
    await h.command({ type: "context_update", text: "The caller is in room 12." });
    await oneTurn(h);
    assert.deepEqual(
      h.messages("warning").map(({ code, ref }) => [code, ref]),
      [
        ["setting_ignored", "instructions"],
        ["setting_ignored", "context_update"],
      ],
    );
  });

  it("says what of the configuration is not there yet", async () => {
    const h = await call(scripted({ config: { recording_enabled: true } }));
    assert.deepEqual(
      h.messages("warning").map((message) => [message.code, message.ref]),
      [["not_available", "recording_enabled"]],
    );
  });

  it("tells the model that speech came without a recognizer", async () => {
    const h = await call({ llm: { provider: "rules" }, tts: { provider: "scripted" } });
    await oneTurn(h);
    const said = h.messages("transcript").filter((message) => message.role === "agent");
    assert.match(said.map((message) => message.text).join(" "), /stt/i);
  });

  it("takes up initial messages as history", async () => {
    const h = await call(
      { llm: { provider: "echo" }, tts: { provider: "scripted" } },
      { initialMessages: [{ role: "user", text: "Before." }] },
    );
    await h.command({ type: "user_message", text: "After." });
    await h.runUntil("agent_speech_done");
    assert.equal(h.messages("transcript").at(-1)?.text, "After.");
  });
});

describe("session: when a provider fails", () => {
  for (const stage of ["stt", "llm", "tts"] as const) {
    for (const fault of ["fail_on", "hang_on"] as const) {
      it(`${stage} ${fault}: the client is told and the next turn works`, async () => {
        const h = await call(
          scripted({ transcripts: ["One", "Two"], replies: ["First.", "Second."], [stage]: { [fault]: [1] } }),
        );
        await h.speak(600);
        await h.runUntil("error", 1, 20_000);
        const [error] = h.messages("error");
        assert.deepEqual([error?.code, error?.fatal], [`${stage}_failed`, false]);
        // A recognizer or a model that hangs is covered by a filler first.
        const spoken = stage !== "tts" && fault === "hang_on" ? 2 : 1;
        await h.runUntil("agent_speech_done", spoken);
        assert.equal(h.messages("agent_speech_started").at(-1)?.source, "apology");
        assert.equal(h.messages("transcript").at(-1)?.text, wordsFor("en").apology);
        assert.equal(h.messages("state").at(-1)?.state, "listening");
        await oneTurn(h);
        await h.runUntil("agent_speech_done", spoken + 1);
        assert.equal(h.messages("error").length, 1);
        assert.equal(h.end, undefined);
      });
    }
  }
});

describe("session: a client that recognizes speech itself", () => {
  const words = (segment_id: string, text: string, final: boolean) =>
    ({ type: "client_transcript", segment_id, text, final }) as const;
  const asks: VoiceAgentConfig = {
    llm: { provider: "scripted", options: { replies: ["At eight.", "Yes.", "No."] } },
    tts: { provider: "scripted" },
  };
  const listening = async () => {
    const h = await call(asks);
    await h.command({ type: "start", capabilities: { transcripts: true } });
    return h;
  };
  const saidBy = (h: SessionHarness, role: string) =>
    h.messages("transcript").flatMap((one) => (one.role === role && one.final ? [one.text] : []));

  it("is heard: partial and final words of a turn, in one item", async () => {
    const h = await listening();
    await h.speak(600);
    await h.command(words("a", "when is", false));
    await h.speak(600);
    await h.command(words("a", "When is breakfast", true));
    await h.runUntil("agent_speech_done");
    assert.deepEqual(saidBy(h, "user"), ["When is breakfast"]);
    assert.deepEqual(saidBy(h, "agent"), ["At eight."]);
    assert.equal(h.messages("transcript")[0]?.text, "when is");
  });

  it("is waited for after the end of speech for 1.2 s, then its newest partial words count", async () => {
    const h = await listening();
    await h.speak(800);
    await h.runUntil("user_speech_stopped");
    await h.command(words("a", "When is", false));
    await h.run(1000);
    assert.deepEqual(saidBy(h, "user"), []);
    await h.runUntil("agent_speech_done");
    assert.deepEqual(saidBy(h, "user"), ["When is"]);
    await h.command(words("a", "When is breakfast", true));
    await h.run(1000);
    assert.deepEqual(saidBy(h, "user"), ["When is"], "that turn is over");
  });

  it("is heard in what it says although no speech was noticed", async () => {
    const h = await listening();
    await h.command(words("a", "Is there", false));
    await h.command(words("a", "Is there a pool", true));
    await h.runUntil("agent_speech_done");
    assert.deepEqual(saidBy(h, "user"), ["Is there a pool"]);
  });

  it("interrupts with words, and does not with a listener's", async () => {
    for (const [text, isInterruption] of [
      ["mm-hm", false],
      ["no wait", true],
    ] as const) {
      const h = await listening();
      await h.command({ type: "say", text: "Breakfast is served from seven to ten in the garden room." });
      await h.run(600);
      await h.speak(400);
      await h.command(words("a", text, true));
      await h.runUntil("agent_speech_done", 2);
      assert.equal(h.messages("user_backchannel").length, isInterruption ? 0 : 1);
    }
  });

  it("is told once that nobody listens to it, where the agent has ears or was not asked", async () => {
    const deaf = await call(asks);
    const own = await call(scripted());
    await own.command({ type: "start", capabilities: { transcripts: true } });
    for (const h of [deaf, own]) {
      await h.command(words("a", "Hello", true));
      await h.command(words("b", "Hello", true));
      assert.deepEqual(
        h.messages("warning").map(({ code }) => code),
        ["ignored_transcript"],
      );
    }
  });
});

describe("session: a model that is away", () => {
  it("is apologized for in the language of the voice, and the third time in a row the agent takes its leave", async () => {
    const { apology, farewell } = wordsFor("de");
    const config = scripted({ llm: { fail_on: [1, 2, 3] } });
    const h = await call({ ...config, tts: { ...config.tts, language: "de-AT" } });
    for (const turn of [1, 2, 3]) {
      await h.command({ type: "user_message", text: `Question ${turn}` });
      if (turn < 3) await h.runUntil("agent_speech_done", turn);
    }
    await h.run(15_000);
    assert.deepEqual(
      h.messages("transcript").flatMap(({ role, final, text }) => (role === "agent" && final ? [text] : [])),
      [apology, apology, farewell],
    );
    assert.deepEqual(h.end?.end.reason, "error");
    assert.deepEqual(h.end?.end.error_code, "provider_failed");
  });
});

describe("session: a model that is away where a caller can be handed on", () => {
  const transfer = { enabled: true, phone_number: "+4930123456" };
  async function handedOver(): Promise<SessionHarness> {
    const h = await call(scripted({ llm: { fail_on: [1, 2, 3] }, config: { transfer } }));
    for (const turn of [1, 2, 3]) {
      await h.command({ type: "user_message", text: `Question ${turn}` });
      if (turn < 3) await h.runUntil("agent_speech_done", turn);
    }
    await h.runUntil("transfer");
    const { handOver } = wordsFor("en");
    assert.equal(h.messages("transcript").at(-1)?.text, handOver);
    assert.equal(h.messages("agent_speech_done").at(-1)?.interrupted, false);
    assert.deepEqual(h.messages("transfer")[0]?.destination, { label: "default", phone_number: "+4930123456" });
    return h;
  }

  it("hands on with the third failure in a row", async () => {
    const h = await handedOver();
    await h.command({ type: "user_message", text: "Still there?" });
    assert.equal(h.messages("transcript").at(-1)?.role, "agent", "nothing else matters any more");
    await h.command({ type: "transfer_result", ok: true });
    assert.equal(h.end?.end.reason, "transferred");
  });

  for (const [name, refuse] of [
    ["is refused", (h: SessionHarness) => h.command({ type: "transfer_result", ok: false })],
    ["is not answered for 30 s", (h: SessionHarness) => h.run(30_100)],
  ] as const) {
    it(`takes leave where that ${name}`, async () => {
      const h = await handedOver();
      await refuse(h);
      await h.run(10_000);
      assert.equal(h.messages("transcript").at(-1)?.text, wordsFor("en").farewell);
      assert.deepEqual([h.end?.end.reason, h.end?.end.error_code], ["error", "provider_failed"]);
    });
  }
});

describe("session: a model that is slow", () => {
  const atMs = (h: SessionHarness, is: (message: SessionMessage) => boolean) =>
    h.sent.find((sent) => sent.kind === "message" && is(sent.message))?.atMs;

  it("is covered by a filler, which is not in the model's memory", async () => {
    const asked: LlmRequest[] = [];
    const clock: { sleep?: (ms: number, signal: AbortSignal) => Promise<void> } = {};
    const llm: LanguageModel = {
      async *reply(request, signal) {
        asked.push(request);
        await clock.sleep?.(4000, signal);
        yield { kind: "text", text: "At eight." };
      },
      close() {},
    };
    const h = await call(scripted(), { llm });
    clock.sleep = (ms, signal) => h.clock.sleep(ms, signal);
    await oneTurn(h);
    await h.runUntil("agent_speech_done");
    const stoppedMs = atMs(h, ({ type }) => type === "user_speech_stopped") ?? 0;
    const firstMs = atMs(h, ({ type }) => type === "agent_speech_started") ?? 0;
    assert.ok(firstMs - stoppedMs <= 2000, `${firstMs - stoppedMs} ms`);
    assert.equal(h.messages("transcript").at(-1)?.text, `${wordsFor("en").filler} At eight.`);
    await h.command({ type: "user_message", text: "Thank you" });
    await h.run(100);
    assert.deepEqual(
      asked[1]?.history.map(({ text }) => text),
      ["Hello", "At eight.", "Thank you"],
    );
  });

  for (const stage of ["stt", "llm", "tts"] as const) {
    it(`is apologized for within 8 s where it is too slow: ${stage}`, async () => {
      const h = await call(scripted({ [stage]: { hang_on: [1] } }));
      await h.speak(600);
      await h.runUntil("error", 1, 10_000);
      const stoppedMs = atMs(h, ({ type }) => type === "user_speech_stopped") ?? 0;
      const isApology = (message: SessionMessage) =>
        message.type === "transcript" && message.text?.startsWith(wordsFor("en").apology.slice(0, 9)) === true;
      await h.run(4000);
      const apologyMs = atMs(h, isApology) ?? Number.POSITIVE_INFINITY;
      assert.ok(apologyMs - stoppedMs <= 8000, `${apologyMs - stoppedMs} ms`);
    });
  }

  it("is not covered in a call of text", async () => {
    const h = await call(scripted({ llm: { delay_ms: 4000 } }));
    await h.command({ type: "start", capabilities: { text_only: true } });
    await h.command({ type: "user_message", text: "Hello" });
    await h.run(5000);
    assert.equal(h.messages("transcript").at(-1)?.text, "How may I help you today?");
  });
});

describe("session: tools", () => {
  it("ends the call by end_call after the farewell", async () => {
    const tool_calls = [{ turn: 1, name: "end_call", arguments: { message: "Goodbye then." } }];
    const h = await call(scripted({ llm: { tool_calls }, config: { end_call_enabled: true } }));
    await h.speak(600);
    await h.run(5000);
    assert.equal(h.end?.end.reason, "agent_hangup");
    assert.equal(h.end?.usage.tool_calls, 1);
    assert.deepEqual(
      h.messages("tool_event").map((message) => message.phase),
      ["started", "completed"],
    );
    assert.equal(h.messages("transcript").at(-1)?.text, "Goodbye then.");
  });

  it("stays for a message that comes during the farewell, and tells the model that the call went on", async () => {
    const asked: LlmRequest[] = [];
    const llm: LanguageModel = {
      async *reply(request) {
        asked.push(request);
        const message = "Thank you for calling, goodbye.";
        if (asked.length === 1) yield { kind: "tool_call", id: "c1", name: "end_call", arguments: { message } };
        else yield { kind: "text", text: "At eight." };
      },
      close() {},
    };
    const h = await call(scripted({ config: { end_call_enabled: true, advanced: { allow_interruptions: false } } }), {
      llm,
    });
    await h.command({ type: "user_message", text: "That is all." });
    await h.runUntil("agent_speech_started");
    await h.run(500);
    await h.command({ type: "user_message", text: "Wait: when is breakfast?" });
    await h.runUntil("agent_speech_done", 2);
    await h.run(1000);
    assert.equal(h.end, undefined);
    const [, , farewell] = h.messages("transcript");
    assert.equal(farewell?.text, "Thank you for calling, goodbye.");
    const told = asked[1]?.history.find(({ role }) => role === "tool");
    assert.deepEqual(JSON.parse(told?.text ?? ""), { ended: false, why: "the caller went on" });
    assert.equal(asked[1]?.history.at(-1)?.text, "Wait: when is breakfast?");
  });

  it("remembers what the model called and what came of it, in the turns that follow", async () => {
    const asked: LlmRequest[] = [];
    const llm: LanguageModel = {
      async *reply(request) {
        asked.push(request);
        if (asked.length === 1) yield { kind: "tool_call", id: "c1", name: "look_up", arguments: { night: 1 } };
        else yield { kind: "text", text: "I cannot look that up." };
      },
      close() {},
    };
    const h = await call(scripted(), { llm });
    await h.command({ type: "user_message", text: "Is there a room?" });
    await h.runUntil("agent_speech_done");
    await h.command({ type: "user_message", text: "Why not?" });
    await h.runUntil("agent_speech_done", 2);
    const result = {
      role: "tool",
      text: "Tool look_up is not available",
      isError: true,
      call: { id: "c1", name: "look_up", arguments: { night: 1 } },
    };
    assert.deepEqual(asked[1]?.history.slice(-1), [result]);
    assert.deepEqual(
      asked[2]?.history.map((item) => (item.role === "tool" ? item : `${item.role}: ${item.text}`)),
      ["user: Is there a room?", result, "agent: I cannot look that up.", "user: Why not?"],
    );
  });

  it("answers the model that a tool is not available, and speaks its reply", async () => {
    const tool_calls = [{ turn: 1, name: "book_room", arguments: {} }];
    const h = await call(scripted({ llm: { tool_calls }, replies: ["I cannot do that."] }));
    await oneTurn(h);
    assert.deepEqual(
      h.messages("warning").map((message) => message.code),
      ["not_available"],
    );
    assert.deepEqual(
      h.messages("tool_event").map((message) => message.phase),
      ["started", "failed"],
    );
    assert.equal(h.messages("transcript").at(-1)?.text, "I cannot do that.");
  });
});

describe("session: a connection that is gone", () => {
  const connection_id = "00000000-0000-4000-8000-000000000002";

  it("is told, an apology is heard in the agent's own voice, and the call is over", async () => {
    const h = await call({ ...scripted(), llm: { provider: "openai", model: "m", connection_id } });
    const error = h.messages("error")[0];
    assert.deepEqual([error?.code, error?.fatal, error?.ref], ["connection_missing", true, "llm.connection_id"]);
    await h.runUntil("agent_speech_done");
    assert.match(h.messages("transcript").at(-1)?.text ?? "", /sorry/);
    assert.ok(h.audioBytes().length > 0);
    assert.deepEqual([h.end?.end.reason, h.end?.end.error_code], ["error", "connection_missing"]);
  });
});

describe("session: a lost link", () => {
  it("pauses where it is and goes on with the next sample, nothing lost or doubled", async () => {
    const config = scripted({ replies: ["This is a longer answer that takes a while to say."] });
    const whole = await call(config);
    await oneTurn(whole);
    await whole.runUntil("agent_speech_done");

    const h = await call(config);
    await oneTurn(h);
    await h.run(500);
    h.session.pause();
    const before = h.audioBytes().length;
    await h.clock.advance(2000);
    assert.equal(h.audioBytes().length, before, "nothing is sent meanwhile");
    h.session.resume();
    await h.runUntil("agent_speech_done");
    assert.deepEqual(h.audioBytes(), whole.audioBytes());
    assert.equal(h.messages("clear").length, 0);
    assert.equal(h.messages("agent_speech_started").length, 1);
  });

  it("remembers and records no more than was delivered, and says the rest again", async () => {
    const reply = "First of all the rooms are on the second floor. Breakfast is served from seven o'clock.";
    const config = scripted({ replies: [reply, "Yes."], transcripts: ["Hello", "Go on"] });
    const lose = async () => {
      const h = await call(config, { echoesMarks: false });
      h.session.reportDelivered(0);
      await oneTurn(h);
      await h.run(600);
      h.session.reportDelivered(700);
      await h.run(2000);
      h.session.pause();
      assert.equal(h.droppedUnsent, 1);
      await h.clock.advance(8000);
      return h;
    };
    const lastAgentItem = (h: SessionHarness) =>
      h.records.flatMap(({ items }) => items).findLast(({ role }) => role === "agent");

    const gone = await lose();
    gone.session.end("error", "link_lost");
    assert.equal(lastAgentItem(gone)?.heard_text, "First of all");
    assert.equal(lastAgentItem(gone)?.heard_basis, "delivery");

    const back = await lose();
    const sentBytes = back.audioBytes().length;
    back.session.resume();
    await back.run(6000);
    back.session.reportDelivered(back.audioBytes().length / 32);
    await back.runUntil("agent_speech_done");
    assert.equal(lastAgentItem(back)?.heard_text, reply);
    // 50 ms a character, all but what was delivered.
    assert.equal((back.audioBytes().length - sentBytes) / 32, reply.length * 50 - 700);
    back.session.end("client_hangup");
    assert.equal(back.end?.usage.output_audio_ms, reply.length * 50);
  });
});

describe("session: marks", () => {
  it("knows without them when an utterance was heard", async () => {
    const h = await call(scripted(), { echoesMarks: false });
    await oneTurn(h);
    await h.runUntil("agent_speech_done", 1, 5000);
    assert.equal(h.messages("turn_metrics")[0]?.to_playout_ms, undefined);
  });

  it("sends none to a client without them", async () => {
    const h = await call(scripted());
    await h.command({ type: "start", capabilities: { marks: false } });
    await oneTurn(h);
    await h.runUntil("agent_speech_done", 1, 5000);
    assert.equal(h.messages("mark").length, 0);
  });
});

describe("session: providers to fall back on", () => {
  const says = (reply: string, more = {}) => ({ provider: "scripted", options: { replies: [reply], ...more } });

  for (const [fault, afterMs] of [
    ["fail_on", 0],
    ["hang_on", 2500],
  ] as const) {
    it(`are asked when the first one's turn is one of ${fault}`, async () => {
      const llm = { ...says("From the first.", { [fault]: [1] }), fallbacks: [says("From the second.")] };
      const h = await call({ ...scripted(), llm });
      const asked = h.clock.nowMs();
      await oneTurn(h);
      await h.runUntil("agent_speech_done");
      assert.match(h.messages("transcript").at(-1)?.text ?? "", /From the second/);
      assert.deepEqual(
        h.messages("warning").map(({ code, stage, provider, kind }) => [code, stage, provider, kind]),
        [["provider_fallback", "llm", "scripted", fault === "hang_on" ? "timeout" : "failed"]],
      );
      assert.deepEqual(h.messages("error"), []);
      assert.ok(h.clock.nowMs() - asked >= afterMs);
    });
  }

  it("speak a clause and hear an utterance that the first one could not", async () => {
    const hears = (transcript: string, more = {}) => ({
      provider: "scripted",
      options: { transcripts: [transcript], partials: false, ...more },
    });
    const config: VoiceAgentConfig = {
      stt: { ...hears("First.", { fail_on: [1] }), fallbacks: [hears("Second.")] },
      llm: says("Good evening."),
      tts: { provider: "scripted", options: { fail_on: [1] }, fallbacks: [{ provider: "scripted" }] },
    };
    const h = await call(config);
    await oneTurn(h);
    await h.runUntil("agent_speech_done");
    assert.equal(h.messages("transcript").find(({ role, final }) => role === "user" && final)?.text, "Second.");
    assert.ok(h.audioBytes().some((byte) => byte !== 0));
    assert.deepEqual(
      h.messages("warning").map(({ code, stage }) => `${code} ${stage}`),
      ["provider_fallback stt", "provider_fallback tts"],
    );
    assert.deepEqual(h.messages("error"), []);
  });

  it("are told of when their connection is gone", async () => {
    const fallbacks = [{ provider: "openai", model: "m", connection_id: "00000000-0000-4000-8000-000000000002" }];
    const h = await call({ ...scripted(), llm: { ...says("Yes."), fallbacks } });
    assert.deepEqual(
      h.messages("warning").map(({ code, ref }) => [code, ref]),
      [["not_available", "llm.fallbacks.0.connection_id"]],
    );
  });
});
