import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { audioFormatFor } from "#contracts/audio_format.ts";
import type { TransportSocket } from "../transport/transport.ts";
import { CallOutbound } from "./call_outbound.ts";
import { queueBytesMax } from "./outbound_queue.ts";

const frameBytes = 640;
/** 100 ms of 16 kHz PCM. */
const aheadBytesMax = 3200;

/** A socket whose backlog the test owns. */
class StutteringSocket implements TransportSocket {
  readonly sent: ({ utterance: number } | { type: string; seq: number; name?: string })[] = [];
  backlogBytes = 0;
  sendText(text: string): void {
    this.sent.push(JSON.parse(text) as { type: string; seq: number });
    this.backlogBytes += text.length;
  }
  sendBinary(bytes: Uint8Array): void {
    assert.ok(this.backlogBytes <= aheadBytesMax, "never more than 100 ms of audio ahead");
    this.sent.push({ utterance: bytes[0] ?? 0 });
    this.backlogBytes += bytes.byteLength;
  }
  unsentBytes(): number {
    return this.backlogBytes;
  }
  ping(): void {}
  batch(write: () => void): void {
    write();
  }
  close(): void {}
  terminate(): void {}
}

const step = fc.oneof(
  fc.record({ kind: fc.constant("speak" as const), n: fc.integer({ min: 1, max: 80 }) }),
  fc.record({ kind: fc.constant("clear" as const), n: fc.constant(0) }),
  fc.record({ kind: fc.constant("drain" as const), n: fc.integer({ min: 1, max: 20_000 }) }),
  fc.record({ kind: fc.constant("mark" as const), n: fc.constant(0) }),
  fc.record({ kind: fc.constant("lose" as const), n: fc.constant(0) }),
);

describe("what leaves a call", () => {
  it("has no byte of an utterance once that was interrupted, whatever the link does", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const outbound = new CallOutbound(audioFormatFor());
        let socket = new StutteringSocket();
        outbound.start(0);
        outbound.attach(socket);
        let utterance = 0;
        let lastSeq = 0;
        for (const { kind, n } of steps) {
          const sentBefore = socket.sent.length;
          if (kind === "speak") {
            for (let i = 0; i < n; i++) outbound.audio(0, new Uint8Array(frameBytes).fill(utterance), 20);
          } else if (kind === "clear") {
            outbound.message(0, { type: "clear", utterance_id: String(utterance), reason: "user_speech" });
            utterance += 1;
          } else if (kind === "drain") {
            socket.backlogBytes = Math.max(0, socket.backlogBytes - n);
            outbound.flush(0);
          } else if (kind === "mark") {
            outbound.message(0, { type: "mark", name: String(utterance) });
          } else {
            lastSeq = outbound.seq;
            outbound.attach(undefined);
            socket = new StutteringSocket();
            outbound.attach(socket);
            outbound.replay(lastSeq);
            outbound.flush(0);
            continue;
          }
          for (const one of socket.sent.slice(sentBefore)) {
            if ("utterance" in one) assert.equal(one.utterance, utterance, "only the current utterance leaves");
            else if (one.type === "mark")
              assert.equal(one.name, String(utterance), "nor a mark that follows dropped audio");
          }
          const seqs = socket.sent.flatMap((one) => ("seq" in one ? [one.seq] : []));
          assert.deepEqual(
            seqs,
            seqs.map((_, index) => (seqs[0] ?? 1) + index),
          );
        }
      }),
      { numRuns: 500 },
    );
  });

  it("waits while the link is lost and goes on where it was", () => {
    const outbound = new CallOutbound(audioFormatFor());
    outbound.start(0);
    for (let i = 0; i < 5; i++) outbound.audio(0, new Uint8Array(frameBytes).fill(i), 20);
    outbound.message(0, { type: "mark", name: "end" });
    assert.equal(Math.round(outbound.unsentMs()), 100);
    const socket = new StutteringSocket();
    outbound.attach(socket);
    outbound.flush(0);
    assert.deepEqual(
      socket.sent.map((one) => ("utterance" in one ? one.utterance : one.type)),
      [0, 1, 2, 3, 4, "mark"],
    );
    assert.equal(outbound.seq, 1);
  });

  it("sheds partial transcripts and metrics first, never a final or a delta", () => {
    const outbound = new CallOutbound(audioFormatFor());
    outbound.start(0);
    for (let i = 0; i < 60; i++) outbound.audio(0, new Uint8Array(frameBytes), 20);
    const transcript = { type: "transcript", role: "user", turn_id: "t", item_id: "i" } as const;
    outbound.message(0, { ...transcript, text: "he", final: false });
    outbound.message(0, { ...transcript, delta: "llo", final: false });
    outbound.message(0, { ...transcript, text: "hello", final: true });
    assert.equal(outbound.shedMessages, 1);
  });

  it("knows when its bound is passed", () => {
    const outbound = new CallOutbound(audioFormatFor());
    outbound.start(0);
    for (let bytes = 0; bytes <= queueBytesMax; bytes += 64_000) outbound.audio(0, new Uint8Array(64_000), 2000);
    assert.equal(outbound.isOverfull, true);
  });
});
