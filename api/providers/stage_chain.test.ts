import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ProviderErrorKind } from "#contracts/codes.ts";
import { VirtualClock } from "#test/kit/virtual_clock.ts";
import { VendorBreakers } from "./breaker.ts";
import type { LanguageModel, LlmRequest } from "./language_model.ts";
import { ProviderError } from "./provider_error.ts";
import { type ChainNews, chainOfModels } from "./stage_chain.ts";
import { aborted } from "./waiting.ts";

const request: LlmRequest = {
  instructions: "",
  history: [],
  turnIndex: 0,
  inputKind: "text",
  unrecognized: false,
  tools: [],
};
const never = new AbortController().signal;

/** What a model does with its next requests, the last of which repeats: says a text, fails, breaks off, or hangs. */
type Deed = string | { fails: ProviderErrorKind } | { breaksOff: string } | "hangs";

function modelThat(...deeds: Deed[]): LanguageModel & { asked: number } {
  const model = {
    asked: 0,
    async *reply(_request: LlmRequest, signal: AbortSignal) {
      const deed = deeds[Math.min(model.asked, deeds.length - 1)] as Deed;
      model.asked += 1;
      if (deed === "hangs") await aborted(signal);
      else if (typeof deed === "string") yield { kind: "text" as const, text: deed };
      else {
        if ("breaksOff" in deed) yield { kind: "text" as const, text: deed.breaksOff };
        throw new ProviderError("llm", "no", { kind: "fails" in deed ? deed.fails : "network" });
      }
    },
    close() {},
  };
  return model;
}

function chainOf(...models: LanguageModel[]) {
  const clock = new VirtualClock();
  const news: ChainNews[] = [];
  const deps = {
    waits: clock,
    breakers: new VendorBreakers(),
    nowMs: () => clock.nowMs(),
    tell: (one: ChainNews) => news.push(one),
  };
  const links = models.map((stage, index) => ({
    provider: "abc"[index] ?? "",
    key: `${index}`,
    stage,
    firstSignMs: 2500,
  }));
  const chain = chainOfModels(links, deps);
  /** One reply, with time going by as long as it waits. */
  const ask = async (signal = never): Promise<string> => {
    let text: string | undefined;
    let failure: unknown;
    const reading = (async () => {
      let said = "";
      for await (const chunk of chain.reply(request, signal)) if (chunk.kind === "text") said += chunk.text;
      text = said;
    })().catch((error) => {
      failure = error;
    });
    while (text === undefined && failure === undefined) await clock.advance(100);
    await reading;
    if (failure) throw failure;
    return text ?? "";
  };
  return { ask, clock, told: () => news.splice(0).map(({ code, provider }) => `${code} ${provider}`) };
}

describe("a chain of models", () => {
  it("asks a model once more that was not reached, and the next one when that does not help", async () => {
    const again = chainOf(modelThat({ fails: "unavailable" }, "Yes."), modelThat("No."));
    assert.equal(await again.ask(), "Yes.");
    assert.deepEqual(again.told(), ["provider_retry a"]);
    const over = chainOf(modelThat({ fails: "network" }), modelThat({ fails: "auth" }), modelThat("Third."));
    assert.equal(await over.ask(), "Third.");
    assert.deepEqual(over.told(), ["provider_retry a", "provider_fallback a", "provider_fallback b"]);
  });

  it("asks the next one at once when a model limits us or is silent for 2.5 s", async () => {
    const limited = chainOf(modelThat({ fails: "rate_limited" }), modelThat("Second."));
    assert.equal(await limited.ask(), "Second.");
    assert.deepEqual(limited.told(), ["provider_fallback a"]);
    const silent = chainOf(modelThat("hangs"), modelThat("Second."));
    assert.equal(await silent.ask(), "Second.");
    assert.ok(silent.clock.nowMs() >= 2500 && silent.clock.nowMs() < 3000, `${silent.clock.nowMs()} ms`);
  });

  it("asks nobody else once an answer has begun, and says what the last one failed with", async () => {
    const begun = chainOf(modelThat({ breaksOff: "Good " }), modelThat("No."));
    await assert.rejects(begun.ask(), { kind: "network" });
    const none = chainOf(modelThat({ fails: "auth" }), modelThat({ fails: "quota" }));
    await assert.rejects(none.ask(), { kind: "quota" });
  });

  it("stays with the one that answered for a minute, and says when the first one answers again", async () => {
    const first = modelThat({ fails: "auth" }, "First.");
    const { ask, clock, told } = chainOf(first, modelThat("Second."));
    assert.equal(await ask(), "Second.");
    assert.equal(await ask(), "Second.");
    assert.equal(first.asked, 1);
    assert.deepEqual(told(), ["provider_fallback a"]);
    await clock.advance(60_000);
    assert.equal(await ask(), "First.");
    assert.deepEqual(told(), ["provider_recovered a"]);
  });

  it("asks the first one again when the one that took over fails in turn", async () => {
    const { ask, told } = chainOf(modelThat({ fails: "auth" }, "First."), modelThat("Second.", { fails: "auth" }));
    assert.equal(await ask(), "Second.");
    assert.equal(await ask(), "First.");
    assert.deepEqual(told(), ["provider_fallback a", "provider_fallback b", "provider_recovered a"]);
  });

  it("ends without a word when it is aborted", async () => {
    const abort = new AbortController();
    const { ask, told } = chainOf(modelThat("hangs"), modelThat("No."));
    const answer = ask(abort.signal);
    abort.abort();
    assert.equal(await answer, "");
    assert.deepEqual(told(), []);
  });
});

describe("a vendor's breaker", () => {
  it("opens at five failures within 10 s, and lets one request try after 10 s", () => {
    const breakers = new VendorBreakers();
    for (const atMs of [0, 1000, 2000, 3000]) breakers.failed("k", atMs);
    assert.equal(breakers.isOpen("k", 3000), false);
    breakers.failed("k", 11_000);
    assert.equal(breakers.isOpen("k", 11_000), false, "the first ones are forgotten");
    for (const atMs of [11_001, 11_002, 11_003]) breakers.failed("k", atMs);
    assert.equal(breakers.isOpen("k", 11_003), true);
    assert.equal(breakers.isOpen("other", 11_003), false);
    assert.equal(breakers.isOpen("k", 21_100), false, "one tries");
    assert.equal(breakers.isOpen("k", 21_101), true, "the others wait for what comes of it");
    breakers.succeeded("k");
    assert.equal(breakers.isOpen("k", 21_102), false);
  });
});
