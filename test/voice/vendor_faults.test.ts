/**
 * What a caller hears while a vendor fails, on a moved clock: sound within 2 s of the end of his turn, an
 * answer or an apology within 8 s, and the client is told which vendor failed and how.
 *
 * The vendors are twins over real sockets of this process. After each 20 ms of the call's time the event loop
 * goes round, so that what they send arrives; a slow machine slows both alike.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { TwinBehaviour, VendorTwin } from "#contracts/vendor_twin.ts";
import type { ModelStage, VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { wordsFor } from "#media/words/words_for.ts";
import { startTwin as startCartesia } from "#providers/cartesia/twin.ts";
import { startTwin as startDeepgram } from "#providers/deepgram/twin.ts";
import { startTwin as startOpenAi } from "#providers/openai/twin.ts";
import { type CallStages, loadStages } from "#providers/stages.ts";
import { SessionHarness } from "#test/kit/session_harness.ts";

const soundWithinMs = 2000;
const wordsWithinMs = 8000;
const turnsOfLoop = 12;

interface Fault {
  stage: ModelStage;
  vendor: "openai" | "deepgram" | "cartesia";
  behaviour: TwinBehaviour;
  /** What the client is told: of the vendor's own words, or of its silence. */
  tells: RegExp;
}

const faults: Fault[] = [
  { stage: "llm", vendor: "openai", behaviour: "silent", tells: /No answer within|no sign within/ },
  { stage: "llm", vendor: "openai", behaviour: "drops", tells: /broke|lost|network|terminated/i },
  { stage: "llm", vendor: "openai", behaviour: "rate_limited", tells: /429/ },
  { stage: "llm", vendor: "openai", behaviour: "garbage", tells: /garbage|protocol|understood|JSON/i },
  { stage: "llm", vendor: "openai", behaviour: "fails", tells: /500/ },
  { stage: "stt", vendor: "deepgram", behaviour: "silent", tells: /deepgram/i },
  { stage: "stt", vendor: "deepgram", behaviour: "drops", tells: /deepgram/i },
  { stage: "stt", vendor: "deepgram", behaviour: "rate_limited", tells: /429/ },
  { stage: "stt", vendor: "deepgram", behaviour: "garbage", tells: /deepgram/i },
  { stage: "tts", vendor: "cartesia", behaviour: "silent", tells: /cartesia/i },
  { stage: "tts", vendor: "cartesia", behaviour: "drops", tells: /cartesia/i },
  { stage: "tts", vendor: "cartesia", behaviour: "rate_limited", tells: /429|rate_limited/ },
  { stage: "tts", vendor: "cartesia", behaviour: "garbage", tells: /cartesia/i },
];

describe("a call whose vendor fails in the middle of it", () => {
  let stages: CallStages;
  let twins: Record<Fault["vendor"], VendorTwin>;
  before(async () => {
    const [openai, deepgram, cartesia] = await Promise.all([startOpenAi(), startDeepgram(), startCartesia()]);
    twins = { openai, deepgram, cartesia };
    stages = await loadStages({ allowPrivateAddresses: true });
  });
  after(async () => {
    await stages.shutDown();
    await Promise.all(Object.values(twins).map((twin) => twin.close()));
  });

  for (const { stage, vendor, behaviour, tells } of faults) {
    it(`is not silent when ${vendor} as its ${stage} plays ${behaviour}`, async () => {
      const twin = twins[vendor];
      assert.ok(twin.access && twin.play(stage, behaviour));
      const { secret, baseUrl } = twin.access;
      const settings = {
        provider: vendor,
        model: vendor === "deepgram" ? "nova-3" : "twin-1",
        connection_id: "c",
        ...(stage === "tts" && { voice: "a-voice", fallbacks: [{ provider: "scripted" }] }),
      };
      const config: VoiceAgentConfig = {
        stt: { provider: "scripted", options: { transcripts: ["When is breakfast?"] } },
        llm: { provider: "scripted", options: { replies: ["From seven to ten."] } },
        tts: { provider: "scripted" },
        [stage]: settings,
      };
      await stages.load({ [stage]: { ...settings, language: "en", options: {} } });
      const h = new SessionHarness({
        config,
        stages,
        credentials: { c: { provider: vendor, secret, base_url: baseUrl } },
      });
      const live = async (ms: number, until = () => false) => {
        for (let passedMs = 0; passedMs < ms && !until() && !h.end; passedMs += 20) {
          await h.run(20);
          for (let turn = 0; turn < turnsOfLoop; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        }
      };
      await live(200);
      for (let spokenMs = 0; spokenMs < 700; spokenMs += 20) {
        await h.speak(20);
        await live(0);
        await new Promise((resolve) => setImmediate(resolve));
      }
      const stopped = () => h.sent.find((one) => one.kind === "message" && one.message.type === "user_speech_stopped");
      await live(3000, () => stopped() !== undefined);
      const endedAtMs = stopped()?.atMs ?? assert.fail("the turn did not end");
      const filler = wordsFor("en").filler;
      /** When the agent said, in writing, what is no filler. */
      const wordsAt = () =>
        h.sent.find(
          (one) =>
            one.kind === "message" &&
            one.atMs >= endedAtMs &&
            one.message.type === "transcript" &&
            one.message.role === "agent" &&
            (one.message.text ?? "").replace(filler, "").trim() !== "",
        )?.atMs;
      const soundAt = () => h.sent.find((one) => one.kind === "audio" && one.atMs >= endedAtMs)?.atMs;
      await live(wordsWithinMs + 2000, () => wordsAt() !== undefined && soundAt() !== undefined);
      await live(200);
      const soundAtMs = soundAt() ?? Number.POSITIVE_INFINITY;
      const wordsAtMs = wordsAt() ?? Number.POSITIVE_INFINITY;
      const told = h
        .allMessages()
        .flatMap((one) => (one.type === "warning" || one.type === "error" ? [`${one.code}: ${one.message}`] : []));
      const facts = `sound after ${soundAtMs - endedAtMs} ms, words after ${wordsAtMs - endedAtMs} ms, told ${JSON.stringify(told)}`;
      assert.ok(soundAtMs - endedAtMs <= soundWithinMs, facts);
      assert.ok(wordsAtMs - endedAtMs <= wordsWithinMs, facts);
      assert.ok(
        told.some((text) => tells.test(text)),
        facts,
      );
      assert.ok(!JSON.stringify(told).includes(secret));
      h.session.end("client_hangup");
    });
  }
});
