import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { VendorTwin } from "#contracts/vendor_twin.ts";
import { createGuardedHttp } from "#outbound/guarded_http.ts";
import type { SpeechToText, Utterance } from "../provider.ts";
import { openStage } from "../stages.ts";
import { deepgram } from "./provider.ts";
import { startTwin } from "./twin.ts";

const never = new AbortController().signal;
const sampleRateHz = 16_000;
const utterance: Utterance = { index: 0, samples: new Int16Array(sampleRateHz).fill(4000), sampleRateHz };

describe("a recognizer of Deepgram", () => {
  let twin: VendorTwin;
  const http = createGuardedHttp({ allowPrivateAddresses: true });
  before(async () => {
    twin = await startTwin();
  });
  after(async () => {
    await http.close();
    await twin.close();
  });

  function open(guard = http): Promise<SpeechToText> {
    assert.ok(twin.access);
    const settings = { provider: "deepgram", language: "en", options: {} };
    return openStage("stt", deepgram, settings, { access: { ...twin.access, http: guard } });
  }
  const partialOf = (stt: SpeechToText) =>
    new Promise<string>((resolve) => {
      stt.onPartial = ({ text }) => resolve(text);
    });

  it("says an utterance again over a new socket when the old one broke", async () => {
    twin.play("stt", "drops");
    const stt = await open();
    const partial = partialOf(stt);
    stt.write(utterance);
    await partial;
    twin.play("stt", "answers");
    assert.equal((await stt.finish(utterance, never)).text, "I heard 1000 ms.");
    stt.close();
  });

  it("dials no private address", async () => {
    const guarded = createGuardedHttp({ allowPrivateAddresses: false });
    const stt = await open(guarded);
    stt.write(utterance);
    await assert.rejects(stt.finish(utterance, never), { name: "ProviderError", kind: "address_refused" });
    const byName = createGuardedHttp({
      allowPrivateAddresses: false,
      resolve: async () => [{ address: "10.0.0.1", family: 4 }],
    });
    const settings = { provider: "deepgram", language: "en", options: {} };
    const access = { secret: "k", baseUrl: "https://ears.example", http: byName };
    const named = await openStage("stt", deepgram, settings, { access });
    named.write(utterance);
    await assert.rejects(named.finish(utterance, never), { kind: "address_refused" });
    await guarded.close();
    await byName.close();
  });
});
