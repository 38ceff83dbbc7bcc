import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type AudioFormatRequest, audioFormatFor } from "#contracts/audio_format.ts";
import { MediaFullError } from "../media_host.ts";
import { openCodecPair } from "./codec_pair.ts";
import { createDecoder } from "./decoder.ts";
import { createEncoder } from "./encoder.ts";
import { canOpenOpus, openOpusCodec, opusInstancesMax } from "./opus_codec.ts";

const opus = (sampleRateHz: number) => audioFormatFor({ encoding: "opus", sample_rate: sampleRateHz });

describe("decoder and encoder", () => {
  it("give PCM back sample for sample, however its bytes are cut", () => {
    fc.assert(
      fc.property(
        fc.int16Array({ maxLength: 300 }),
        fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 20 }),
        (samples, cuts) => {
          const bytes = createEncoder(audioFormatFor()).encode(samples);
          const decoder = createDecoder(audioFormatFor());
          const heard: number[] = [];
          let at = 0;
          for (const cut of [...cuts, bytes.length]) {
            heard.push(...decoder.decode(bytes.subarray(at, at + cut)));
            at = Math.min(bytes.length, at + cut);
          }
          assert.deepEqual(Int16Array.from(heard), samples);
        },
      ),
    );
  });

  it("put the low byte first", () => {
    assert.deepEqual(
      createEncoder(audioFormatFor()).encode(Int16Array.of(0x0102, -2)),
      Uint8Array.of(2, 1, 0xfe, 0xff),
    );
    assert.deepEqual([...createDecoder(audioFormatFor()).decode(Uint8Array.of(2, 1, 0xfe, 0xff))], [0x0102, -2]);
  });

  it("hand out bytes that stay as they are", () => {
    for (const encoding of ["pcm_s16le", "mulaw", "alaw", "opus"]) {
      const encoder = createEncoder(audioFormatFor({ encoding }));
      const frame = new Int16Array(encoder.frameSamples).fill(1000);
      const first = encoder.encode(frame);
      const before = first.slice();
      frame.fill(-5);
      encoder.encode(frame);
      assert.deepEqual(first, before, encoding);
      encoder.close();
    }
  });

  it("frame by 20 ms, and by 40 ms above 16 kHz of PCM", () => {
    const samplesOf = (request: AudioFormatRequest) => {
      const encoder = createEncoder(audioFormatFor(request));
      encoder.close();
      return encoder.frameSamples;
    };
    assert.equal(samplesOf({}), 320);
    assert.equal(samplesOf({ sample_rate: 44_100 }), 1764);
    assert.equal(samplesOf({ encoding: "mulaw" }), 160);
    assert.equal(samplesOf({ encoding: "opus" }), 960);
  });

  it("count bad Opus packets and none of other encodings", () => {
    const decoder = createDecoder(opus(16_000));
    decoder.decode(new Uint8Array(0));
    assert.equal(decoder.badPackets, 1);
    decoder.close();
    assert.equal(createDecoder(audioFormatFor({ encoding: "alaw" })).badPackets, 0);
  });
});

describe("codec pair", () => {
  it("shares one Opus instance between equal rates, and takes two for others", () => {
    const equal = openCodecPair(opus(16_000), opus(16_000));
    assert.equal(canOpenOpus(opusInstancesMax - 1), true);
    const different = openCodecPair(opus(16_000), opus(48_000));
    assert.equal(canOpenOpus(opusInstancesMax - 2), false);
    assert.equal(canOpenOpus(opusInstancesMax - 3), true);
    equal.close();
    equal.close();
    different.close();
    assert.equal(canOpenOpus(opusInstancesMax), true);
  });

  it("hears what it says, in both directions at once", () => {
    const pair = openCodecPair(opus(24_000), opus(24_000));
    const frame = Int16Array.from({ length: 480 }, (_, i) => 8000 * Math.sin((2 * Math.PI * 500 * i) / 24_000));
    let loudest = 0;
    for (let i = 0; i < 10; i++) {
      for (const sample of pair.decoder.decode(pair.encoder.encode(frame))) loudest = Math.max(loudest, sample);
    }
    pair.close();
    assert.ok(loudest > 6000, `${loudest}`);
  });

  it("leaves nothing open when only one of two instances is free", () => {
    const others = Array.from({ length: opusInstancesMax - 1 }, () => openOpusCodec(8000));
    assert.throws(() => openCodecPair(opus(16_000), opus(48_000)), MediaFullError);
    assert.equal(canOpenOpus(), true);
    for (const codec of others) codec.close();
  });
});
