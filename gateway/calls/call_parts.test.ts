import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { audioFormatFor } from "#contracts/audio_format.ts";
import { isOriginAllowed, lastSeqOf, parseCallPath, resumeUrlFor, subprotocolFor } from "./call_url.ts";
import { Delivery } from "./delivery.ts";
import { audioFromBase64, parseInbound } from "./inbound_message.ts";
import { audioMsOf, InputPacer, opusPacketMs } from "./input_pacing.ts";
import { ReplayRing } from "./replay_ring.ts";
import { SlowConsumerWatch } from "./slow_consumer.ts";

describe("the replay ring", () => {
  it("gives back what it holds after any sequence number, and counts what it does not", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.nat(60), fc.nat(70), (size, pushed, lastSeq) => {
        const ring = new ReplayRing(size);
        for (let seq = 1; seq <= pushed; seq++) ring.push(seq, String(seq));
        const { texts, missed } = ring.since(lastSeq);
        const wanted = Array.from({ length: Math.max(0, pushed - lastSeq) }, (_, index) => String(lastSeq + 1 + index));
        assert.deepEqual(texts, wanted.slice(-size));
        assert.equal(missed + texts.length >= wanted.length, true);
        if (lastSeq <= pushed) assert.equal(missed, wanted.length - texts.length);
      }),
    );
  });

  it("refuses a gap in the sequence", () => {
    assert.throws(() => new ReplayRing(4).push(2, "x"));
  });
});

describe("input pacing", () => {
  it("loses nothing below the bound and keeps the order", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ ms: fc.integer({ min: 1, max: 400 }), wait: fc.nat(300) }), { maxLength: 40 }),
        (steps) => {
          const heard: number[] = [];
          const pacer = new InputPacer(0, (bytes) => heard.push(bytes[0] ?? 0));
          let now = 0;
          let fits = true;
          steps.forEach(({ ms, wait }, index) => {
            now += wait;
            pacer.drain(now);
            const event = pacer.push(now, new Uint8Array([index]), ms);
            if (event === "overrun") fits = false;
          });
          for (let i = 0; i < 1000 && pacer.isWaiting; i++) {
            now += 20;
            pacer.drain(now);
          }
          if (fits)
            assert.deepEqual(
              heard,
              steps.map((_, index) => index),
            );
          assert.equal(pacer.isWaiting, false);
          assert.ok(Math.abs(pacer.bufferedMs) < 1e-6);
        },
      ),
    );
  });

  it("knows the duration of every format's bytes", () => {
    assert.equal(audioMsOf(audioFormatFor(), new Uint8Array(640)), 20);
    assert.equal(audioMsOf(audioFormatFor({ encoding: "mulaw" }), new Uint8Array(160)), 20);
    // RFC 6716, table 2: config 15 is hybrid full-band 20 ms, config 3 SILK narrow-band 60 ms, config 16 CELT 2.5 ms.
    assert.equal(opusPacketMs(new Uint8Array([15 << 3])), 20);
    assert.equal(opusPacketMs(new Uint8Array([3 << 3])), 60);
    assert.equal(opusPacketMs(new Uint8Array([16 << 3])), 2.5);
    assert.equal(opusPacketMs(new Uint8Array([(15 << 3) | 1])), 40);
    assert.equal(opusPacketMs(new Uint8Array([(15 << 3) | 3, 3])), 60);
    assert.equal(opusPacketMs(new Uint8Array([(3 << 3) | 3, 63])), 120);
    assert.equal(opusPacketMs(new Uint8Array()), 0);
  });
});

describe("delivery", () => {
  /** A link whose first three pings were answered at once; 600 ms of sound have left. */
  function promptLink() {
    const delivery = new Delivery();
    delivery.pong(0, delivery.begin(0, 0));
    for (const nowMs of [500, 1000]) delivery.pong(nowMs, delivery.due(nowMs, 100 + nowMs / 2, false) ?? "");
    return delivery;
  }

  it("is asked for each 500 ms while sound leaves, and at once after a mark", () => {
    const delivery = promptLink();
    assert.equal(delivery.takenMs, 600);
    assert.equal(delivery.isWatching(600), false);
    assert.equal(delivery.due(1400, 900, false), undefined);
    assert.equal(delivery.due(1400, 900, true), "a:900");
    assert.equal(delivery.due(5000, 900, true), undefined, "nothing has left since");
    assert.equal(delivery.due(5000, 1000, false), "a:1000");
  });

  it("is known up to the newest ping that was answered, and by no answer that was not asked for", () => {
    const delivery = promptLink();
    const pings = [1500, 2000, 2500].map((nowMs) => delivery.due(nowMs, nowMs, false) ?? "");
    assert.equal(delivery.pong(2600, "a:9000"), false);
    assert.equal(delivery.pong(2600, ""), false);
    assert.equal(delivery.pong(2600, pings[1] ?? ""), true);
    assert.equal(delivery.pong(2600, pings[0] ?? ""), false);
    assert.equal(delivery.takenMs, 2000);
  });

  it("stands still 2 s after the client took the last, where it used to answer", () => {
    const delivery = promptLink();
    delivery.due(1500, 1100, false);
    assert.equal(delivery.isStalled(2900), false);
    assert.equal(delivery.isStalled(3000), true);
    assert.equal(delivery.isGivenUp(31_400), false);
    assert.equal(delivery.isGivenUp(31_500), true);
    delivery.pong(9000, "a:1100");
    assert.equal(delivery.isStalled(9000), false);
  });

  it("never stands still for a client that answers late, or never", () => {
    const late = new Delivery();
    late.begin(0, 0);
    for (let nowMs = 500; nowMs < 60_000; nowMs += 500) {
      assert.equal(late.isStalled(nowMs), false);
      assert.equal(late.isGivenUp(nowMs), false);
      late.due(nowMs, nowMs, false);
      if (nowMs >= 8000) late.pong(nowMs, `a:${nowMs - 8000}`);
    }
    const never = new Delivery();
    never.begin(0, 0);
    for (let nowMs = 500; nowMs < 120_000; nowMs += 500) {
      never.due(nowMs, nowMs, false);
      assert.equal(never.isStalled(nowMs) || never.isGivenUp(nowMs), false);
    }
    assert.equal(never.takenMs, undefined);
  });
});

describe("a slow consumer", () => {
  const backlog = { unsentMs: 2000, unsentBytes: 64_000, acceptedBytes: 100_000, frameAtMs: 0 };

  it("is one on whose link frames come in and nothing goes out for 5 s", () => {
    const watch = new SlowConsumerWatch();
    assert.equal(watch.isTooSlow(0, { ...backlog, frameAtMs: 0 }), false);
    assert.equal(watch.isTooSlow(4900, { ...backlog, frameAtMs: 4900 }), false);
    assert.equal(watch.isTooSlow(5000, { ...backlog, frameAtMs: 5000 }), true);
  });

  it("is not one on whose link nothing moves at all: that is lost", () => {
    const watch = new SlowConsumerWatch();
    for (let now = 0; now < 60_000; now += 1000) assert.equal(watch.isTooSlow(now, backlog), false);
  });

  it("is not one that keeps up, however slowly, below the bounds", () => {
    const watch = new SlowConsumerWatch();
    for (let now = 0; now < 60_000; now += 1000) {
      assert.equal(watch.isTooSlow(now, { ...backlog, acceptedBytes: 100_000 + now, frameAtMs: now }), false);
    }
  });

  it("is one with more than 5 s or 512 KiB unsent for 5 s", () => {
    for (const over of [{ unsentMs: 5001 }, { unsentBytes: 512 * 1024 + 1 }]) {
      const watch = new SlowConsumerWatch();
      for (let now = 0; now <= 5000; now += 1000) {
        const tooSlow = watch.isTooSlow(now, { ...backlog, ...over, acceptedBytes: 1_000_000 + now, frameAtMs: now });
        assert.equal(tooSlow, now >= 5000);
      }
    }
  });
});

describe("addresses", () => {
  const id = "11111111-1111-4111-8111-111111111111";
  const secret = "s".repeat(43);

  it("are parsed exactly", () => {
    assert.deepEqual(parseCallPath(`/v1/voice/calls/${id}/${secret}`), { kind: "call", callId: id, secret });
    assert.deepEqual(parseCallPath(`/v1/voice/calls/${id}/resume/${secret}`), {
      kind: "resume",
      callId: id,
      token: secret,
    });
    for (const path of [
      "/",
      `/v1/voice/calls/${id}`,
      `/v1/voice/calls/${id}/`,
      `/v1/voice/calls/x/${secret}`,
      `/v1/voice/calls/${id}/${secret}/more`,
      `/v1/voice/calls/${id}/resume/${secret}/more`,
      `/v1/voice/calls/${id}/other/${secret}`,
      `/v1/voice/calls/${id}/${"%".repeat(30)}`,
    ]) {
      assert.equal(parseCallPath(path), undefined, path);
    }
  });

  it("never make the parser throw", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (path, query) => {
        parseCallPath(`/v1/voice/calls/${path}`);
        lastSeqOf(query);
        subprotocolFor(path);
      }),
    );
  });

  it("lead a resumed call to the process that holds it", () => {
    assert.equal(resumeUrlFor("https://a.example/", id, "t"), `wss://a.example/v1/voice/calls/${id}/resume/t`);
    assert.equal(resumeUrlFor("http://127.0.0.1:8080", id, "t"), `ws://127.0.0.1:8080/v1/voice/calls/${id}/resume/t`);
  });

  it("admit a missing Origin, and a listed one", () => {
    assert.equal(isOriginAllowed(undefined, ["https://a"]), true);
    assert.equal(isOriginAllowed("https://a", ["https://a"]), true);
    assert.equal(isOriginAllowed("https://b", ["https://a"]), false);
    assert.equal(isOriginAllowed("https://b", []), true);
  });
});

describe("inbound messages", () => {
  it("keep only the fields that we know", () => {
    assert.deepEqual(parseInbound('{"type":"mark","name":"a","more":1}'), {
      kind: "message",
      message: { type: "mark", name: "a" },
    });
  });

  it("name the field that is wrong and never its content", () => {
    const bad = parseInbound('{"type":"say","text":{"secret":"4711"}}');
    assert.equal(bad.kind === "bad" && bad.ref, "say.text");
    assert.ok(!JSON.stringify(bad).includes("4711"));
  });

  it("carry audio as base64 only", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        assert.deepEqual(audioFromBase64(Buffer.from(bytes).toString("base64")), bytes);
      }),
    );
    for (const text of ["*", "a", "ab=c", "YQ===", "a b"]) assert.equal(audioFromBase64(text), undefined, text);
  });
});
