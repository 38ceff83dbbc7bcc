import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { MediaFullError } from "../media_host.ts";
import { canOpenOpus, type OpusCodec, openOpusCodec, opusInstancesMax } from "./opus_codec.ts";

const rates = [8000, 16_000, 24_000, 48_000] as const;

/** The `index`-th frame of 20 ms of a tone. */
function frameOf(rateHz: number, index: number, hz = 440): Int16Array {
  const length = rateHz / 50;
  return Int16Array.from({ length }, (_, i) => 8000 * Math.sin((2 * Math.PI * hz * (index * length + i)) / rateHz));
}

function packetsOf(codec: OpusCodec, count: number, hz = 440): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => codec.encode(frameOf(codec.sampleRateHz, index, hz)));
}

function loudnessOf(samples: Int16Array): number {
  return Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
}

function withCodec(rateHz: number, use: (codec: OpusCodec) => void): void {
  const codec = openOpusCodec(rateHz);
  try {
    use(codec);
  } finally {
    codec.close();
  }
}

describe("opus", () => {
  for (const rateHz of rates) {
    it(`carries a tone at ${rateHz} Hz`, () => {
      withCodec(rateHz, (codec) => {
        const frames = packetsOf(codec, 25).map((packet) => codec.decode(packet).slice());
        for (const frame of frames) assert.equal(frame.length, rateHz / 50);
        const loudness = loudnessOf(frames.at(-1)!);
        assert.ok(loudness > 4500 && loudness < 6800, `a loudness of ${loudness} is left of 5657`);
        assert.equal(codec.badPackets, 0);
      });
    });
  }

  it("takes packets of every length from 2.5 to 120 ms", () => {
    withCodec(48_000, (codec) => {
      // First bytes of RFC 6716, table 2: CELT fullband of 2.5, 5, 10 and 20 ms, SILK wideband of 40 and 60 ms;
      // a frame of no bytes is concealed, which does not matter here.
      const lengths = [28, 29, 30, 31, 10, 11].map((config) => codec.decode(Uint8Array.of(config << 3)).length / 48);
      assert.deepEqual(lengths, [2.5, 5, 10, 20, 40, 60]);
      const [packet] = packetsOf(codec, 1);
      // Code 3, six frames of equal length: 120 ms.
      const frames = Array.from({ length: 6 }, () => [...packet!.subarray(1)]).flat();
      assert.equal(codec.decode(Uint8Array.of(packet![0]! | 3, 6, ...frames)).length, 5760);
      assert.equal(codec.badPackets, 0);
    });
  });

  it("conceals a bad packet with sound as long as the one before, counts it and goes on", () => {
    withCodec(16_000, (codec) => {
      const packets = packetsOf(codec, 30);
      for (const packet of packets.slice(0, 20)) codec.decode(packet);
      // Code 3 with a frame count of 0 is forbidden (RFC 6716, 3.2.5).
      const concealed = codec.decode(Uint8Array.of(packets[0]![0]! | 3, 0));
      assert.equal(concealed.length, 320);
      assert.ok(loudnessOf(concealed) > 1000, "the tone goes on");
      assert.equal(codec.decode(new Uint8Array(0)).length, 320);
      assert.equal(codec.decode(new Uint8Array(20_000)).length, 320);
      assert.equal(codec.badPackets, 3);
      for (const packet of packets.slice(20)) assert.equal(codec.decode(packet).length, 320);
      assert.equal(codec.badPackets, 3);
    });
  });

  it("fades out when nothing but bad packets comes", () => {
    withCodec(16_000, (codec) => {
      for (const packet of packetsOf(codec, 20)) codec.decode(packet);
      for (let i = 0; i < 50; i++) codec.decode(new Uint8Array(0));
      assert.ok(loudnessOf(codec.decode(new Uint8Array(0))) < 50);
    });
  });

  it("answers silence to a bad packet that comes first", () => {
    withCodec(24_000, (codec) => {
      assert.deepEqual(codec.decode(new Uint8Array(0)).slice(), new Int16Array(480));
      assert.equal(codec.badPackets, 1);
    });
  });

  it("survives any bytes", () => {
    withCodec(48_000, (codec) => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
          const { length } = codec.decode(bytes);
          assert.ok(length >= 120 && length <= 5760, `${length} samples`);
        }),
        { numRuns: 2000 },
      );
    });
  });

  it("keeps 64 calls apart, sample for sample", () => {
    const alone = rates.map((rateHz) => {
      const codec = openOpusCodec(rateHz);
      const packets = packetsOf(codec, 10);
      const samples = packets.map((packet) => codec.decode(packet).slice());
      codec.close();
      return { packets, samples };
    });
    const codecs = Array.from({ length: opusInstancesMax }, (_, i) => openOpusCodec(rates[i % 4]!));
    try {
      for (let index = 0; index < 10; index++) {
        const packets = codecs.map((codec) => codec.encode(frameOf(codec.sampleRateHz, index)));
        for (const [i, codec] of codecs.entries()) {
          const expected = alone[i % 4]!;
          assert.deepEqual(packets[i], expected.packets[index]);
          assert.deepEqual(codec.decode(packets[i]!).slice(), expected.samples[index]);
        }
      }
    } finally {
      for (const codec of codecs) codec.close();
    }
  });

  it("refuses the 65th instance as a full house, and takes it when one is given back", () => {
    const codecs = Array.from({ length: opusInstancesMax }, () => openOpusCodec(8000));
    assert.equal(canOpenOpus(), false);
    assert.throws(() => openOpusCodec(8000), MediaFullError);
    codecs[0]!.close();
    codecs[0]!.close();
    assert.equal(canOpenOpus(), true);
    assert.equal(canOpenOpus(2), false);
    openOpusCodec(48_000).close();
    for (const codec of codecs) codec.close();
    assert.equal(canOpenOpus(opusInstancesMax), true);
  });

  it("begins each call anew, also the thousandth on one instance", () => {
    const first = openOpusCodec(16_000);
    const expected = packetsOf(first, 5, 700);
    first.close();
    for (let call = 0; call < 1000; call++) {
      const codec = openOpusCodec(16_000, { fec: true, dtx: true, bitrate: 12_000 });
      codec.decode(codec.encode(frameOf(16_000, 0, 1000)));
      codec.close();
    }
    const last = openOpusCodec(16_000);
    assert.deepEqual(packetsOf(last, 5, 700), expected);
    last.close();
  });

  it("sends next to nothing in silence when asked to (DTX)", () => {
    const codec = openOpusCodec(16_000, { dtx: true });
    const sizes = Array.from({ length: 60 }, () => codec.encode(new Int16Array(320)).length);
    codec.close();
    assert.ok(sizes.slice(30).filter((size) => size <= 2).length >= 20, sizes.join());
  });

  it("encodes full frames only, and nothing once closed", () => {
    const codec = openOpusCodec(16_000);
    assert.throws(() => codec.encode(new Int16Array(100)), /expected a full frame of 320/);
    codec.close();
    assert.throws(() => codec.encode(new Int16Array(320)), /closed/);
    assert.throws(() => codec.decode(Uint8Array.of(0)), /closed/);
    assert.throws(() => openOpusCodec(44_100), /expected 8000/);
  });
});
