import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { after, before, describe, it } from "node:test";
import type { Worker } from "node:worker_threads";
import type { Pcm } from "../provider.ts";
import { realWaits } from "../waiting.ts";
import { FliteQueue, fliteQueueLimits } from "./flite_queue.ts";
import type { FliteReply, FliteRequest } from "./flite_worker.ts";
import { type FliteOptions, fliteVoices } from "./options.ts";
import { open } from "./tts.ts";

const never = new AbortController().signal;
const first = { turnIndex: 0, first: true };
const noFaults: FliteOptions = { fail_on: [], hang_on: [] };

function request(options = noFaults, voice = "slt") {
  return { settings: { provider: "flite", language: "en", voice, options }, options, waits: realWaits };
}

describe("tts flite", () => {
  const queue = new FliteQueue();
  before(() => queue.start());
  after(() => queue.close());

  async function speech(text: string, { voice = "slt", context = first, signal = never, options = {} } = {}) {
    const tts = open(request({ ...noFaults, ...options }, voice), queue);
    const pieces: Pcm[] = [];
    for await (const piece of tts.speak(text, context, signal)) pieces.push(piece);
    return pieces;
  }
  const secondsOf = (pieces: Pcm[]) =>
    pieces.reduce((sum, { samples, sampleRateHz }) => sum + samples.length / sampleRateHz, 0);

  for (const voice of fliteVoices) {
    it(`speaks with voice ${voice}, at 16 kHz, audibly and as long as a person would`, async () => {
      const pieces = await speech("Good evening, and welcome to the Harbour Hotel.", { voice });
      assert.ok(pieces.every(({ samples, sampleRateHz }) => sampleRateHz === 16_000 && samples.length <= 1600));
      const seconds = secondsOf(pieces);
      assert.ok(seconds > 2 && seconds < 4, `${seconds} s`);
      const loud = pieces.filter(({ samples }) => samples.some((sample) => Math.abs(sample) > 1000)).length;
      assert.ok(loud > pieces.length / 2, `${loud} of ${pieces.length} pieces are audible`);
    });
  }

  it("begins with sound: the voice's own silence of 230 ms is left out", async () => {
    const [piece] = await speech("Yes.");
    assert.ok(piece?.samples.some((sample) => Math.abs(sample) > 500));
    const later = await speech("Yes.", { context: { turnIndex: 0, first: false } });
    assert.equal(Math.round((secondsOf(later) - secondsOf(await speech("Yes."))) * 1000), 70);
  });

  it("speaks the same text alike, also after another one and from the cache", async () => {
    const once = await speech("Breakfast is from seven.");
    await speech("Something else.", { voice: "rms" });
    assert.deepEqual(await speech("Breakfast is from seven."), once);
    const fresh = new FliteQueue();
    const again = await fresh.speak({ voice: "slt", text: "Breakfast is from seven." }, never);
    await fresh.close();
    const cached = await queue.speak({ voice: "slt", text: "Breakfast is from seven." }, never);
    assert.deepEqual(again?.samples, cached?.samples);
  });

  it("gives pieces that are the receiver's to write to", async () => {
    const once = await speech("Room service.");
    const copy = structuredClone(once);
    for (const { samples } of once) samples.fill(1);
    assert.deepEqual(await speech("Room service."), copy);
  });

  it("speaks two texts at once, each its own", async () => {
    const texts = ["The first of two texts.", "A second one."];
    const together = await Promise.all(texts.map((text) => speech(text)));
    const apart = [await speech(texts[0] as string), await speech(texts[1] as string)];
    assert.deepEqual(together, apart);
    assert.notEqual(secondsOf(together[0] as Pcm[]), secondsOf(together[1] as Pcm[]));
  });

  it("says nothing more after an abort in mid-sentence", async () => {
    const abort = new AbortController();
    const tts = open(request(), queue);
    let pieces = 0;
    for await (const _ of tts.speak("A rather long sentence that is not going to be finished.", first, abort.signal)) {
      pieces += 1;
      if (pieces === 2) abort.abort();
    }
    assert.equal(pieces, 2);
    assert.deepEqual(await speech("Not even begun.", { signal: abort.signal }), []);
  });

  it("speaks a text of any length, and nothing where there is nothing to say", async () => {
    assert.ok(secondsOf(await speech("Two words ".repeat(100))) > 30);
    assert.ok(secondsOf(await speech("x".repeat(400))) > 0);
    for (const text of ["", "  ", "...", "你好", "\0"]) assert.deepEqual(await speech(text), []);
    assert.ok(secondsOf(await speech("-voice rms --help; $(id)")) > 0);
  });

  it("fails and hangs where it is told to", async () => {
    const options = { fail_on: [1], hang_on: [2] };
    await assert.rejects(speech("One.", { options }), { name: "ProviderError", stage: "tts" });
    const abort = new AbortController();
    const hung = speech("Two.", { options, context: { turnIndex: 1, first: true }, signal: abort.signal });
    abort.abort();
    assert.deepEqual(await hung, []);
  });
});

/** A synthesis thread that answers when the test says so. */
class FakeThread extends EventEmitter {
  asked: FliteRequest[] = [];
  terminated = false;
  ref(): void {}
  unref(): void {}
  async terminate(): Promise<number> {
    this.terminated = true;
    return 0;
  }
  postMessage(request: FliteRequest): void {
    this.asked.push(request);
  }
  ready(): void {
    this.emit("message", { kind: "ready" } satisfies FliteReply);
  }
  answer(samples = 10): void {
    this.emit("message", { kind: "speech", samples: new Int16Array(samples), sampleRateHz: 16_000, soundAt: 0 });
  }
}

describe("line to the synthesis thread", () => {
  function line(limits = {}) {
    const threads: FakeThread[] = [];
    const queue = new FliteQueue({ ...fliteQueueLimits, ...limits }, () => {
      const thread = new FakeThread();
      threads.push(thread);
      return thread as unknown as Worker;
    });
    const ask = (text: string, signal = never) => queue.speak({ voice: "slt", text }, signal);
    return { queue, threads, ask, thread: () => threads.at(-1) as FakeThread };
  }
  const textsOf = (thread: FakeThread) => thread.asked.map(({ text }) => text);

  it("asks for one text at a time, first come, first served, and once for the same text", async () => {
    const { ask, thread, queue } = line();
    const answers = ["a", "b", "a", "b", "a"].map((text) => ask(text));
    assert.deepEqual(textsOf(thread()), ["a"]);
    thread().answer();
    thread().answer();
    assert.deepEqual(textsOf(thread()), ["a", "b"]);
    assert.equal((await Promise.all(answers)).length, 5);
    await ask("a");
    assert.deepEqual(textsOf(thread()), ["a", "b"]);
    await queue.close();
  });

  it("drops from the line what nobody waits for any more, and only that", async () => {
    const { ask, thread, queue } = line();
    const abort = new AbortController();
    const running = ask("a");
    const [left, stays, shared] = [ask("b", abort.signal), ask("c"), ask("c", abort.signal)];
    abort.abort();
    assert.deepEqual([await left, await shared], [undefined, undefined]);
    thread().answer();
    thread().answer();
    assert.ok((await running) && (await stays));
    assert.deepEqual(textsOf(thread()), ["a", "c"]);
    await queue.close();
  });

  it("keeps what was aborted while it ran", async () => {
    const { ask, thread, queue } = line();
    const abort = new AbortController();
    const left = ask("a", abort.signal);
    abort.abort();
    assert.equal(await left, undefined);
    thread().answer();
    assert.ok(await ask("a"));
    assert.equal(thread().asked.length, 1);
    await queue.close();
  });

  it("is bounded: one more text fails at once", async () => {
    const { ask, queue, thread } = line({ jobsMax: 2 });
    const waiting = [ask("a"), ask("b")];
    await assert.rejects(ask("c"), { name: "ProviderError", message: /busy/ });
    assert.equal(await Promise.race([ask("a"), Promise.resolve("shared")]), "shared");
    thread().answer();
    thread().answer();
    await Promise.all(waiting);
    await queue.close();
  });

  it("keeps speech up to its bound in bytes, the least recently used out first", async () => {
    const { ask, thread, queue } = line({ cacheBytesMax: 60 });
    async function spoken(text: string): Promise<boolean> {
      const before = thread()?.asked.length ?? 0;
      const answer = ask(text);
      const isAsked = (thread()?.asked.length ?? 0) > before;
      if (isAsked) thread().answer(10);
      await answer;
      return isAsked;
    }
    for (const text of ["a", "b", "c"]) assert.equal(await spoken(text), true);
    assert.equal(await spoken("a"), false);
    assert.equal(await spoken("d"), true);
    assert.equal(await spoken("a"), false);
    assert.equal(await spoken("b"), true);
    await queue.close();
  });

  it("fails the text that its thread died on and goes on with another one", async () => {
    const { ask, thread, threads, queue } = line();
    const [lost, next] = [ask("a"), ask("b")];
    thread().ready();
    thread().emit("exit", 1);
    await assert.rejects(lost, { name: "ProviderError", stage: "tts" });
    assert.equal(threads.length, 2);
    thread().answer();
    assert.ok(await next);
    threads[0]?.emit("exit", 1);
    assert.equal(threads.length, 2);
    await queue.close();
  });

  it("fails all that wait when a thread cannot even start", async () => {
    const { ask, thread, threads, queue } = line();
    const answers = Promise.allSettled([ask("a"), ask("b")]);
    thread().emit("error", new Error("no such file"));
    thread().emit("exit", 1);
    assert.ok((await answers).every(({ status }) => status === "rejected"));
    assert.equal(threads.length, 1);
    await assert.rejects(
      (() => {
        const started = queue.start();
        thread().emit("error", new Error("no such file"));
        return started;
      })(),
      /no such file/,
    );
    await queue.close();
  });

  it("replaces a thread that takes too long", async () => {
    const { ask, thread, threads, queue } = line({ jobTimeoutMs: 1 });
    const slow = ask("a");
    thread().ready();
    await assert.rejects(slow, /more than 1 ms/);
    assert.equal(threads[0]?.terminated, true);
    await queue.close();
  });

  it("fails what is in line when it is closed", async () => {
    const { ask, queue } = line();
    const answers = Promise.allSettled([ask("a"), ask("b")]);
    await queue.close();
    assert.ok((await answers).every(({ status }) => status === "rejected"));
  });
});
