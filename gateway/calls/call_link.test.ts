import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { audioFormatFor } from "#contracts/audio_format.ts";
import type { CallEnd } from "#contracts/call_record.ts";
import { callConfig, FakeMedia } from "#test/kit/gateway_fixture.ts";
import type { SocketEnd, TransportSocket } from "../transport/transport.ts";
import { Call, type CallLink } from "./call.ts";
import { CallSlots } from "./call_slots.ts";

const lost: SocketEnd = { kind: "lost" };

/** Remembers what is sent on it and how it was closed. */
class FakeSocket implements TransportSocket {
  readonly texts: string[] = [];
  closed: number | undefined;
  sendText(text: string): void {
    this.texts.push(text);
  }
  sendBinary(): void {}
  unsentBytes(): number {
    return 0;
  }
  ping(): void {}
  batch(write: () => void): void {
    write();
  }
  close(code: number): void {
    this.closed = code;
  }
  terminate(): void {}
  /** The token of the newest `call_started`. */
  get token(): string {
    const started = this.texts.map((text) => JSON.parse(text)).findLast(({ type }) => type === "call_started");
    return started.resume.token;
  }
}

function newCall() {
  const slots = new CallSlots(1);
  const slot = slots.take();
  assert.ok(slot);
  let tokens = 0;
  let end: CallEnd | undefined;
  const call = new Call(
    {
      call_id: "c",
      organization_id: "o",
      config: callConfig(),
      input_format: audioFormatFor(),
      output_format: audioFormatFor(),
      client_buffer_ms: 400,
      initial_messages: [],
    },
    slot,
    {
      nowMs: () => 0,
      newToken: () => {
        tokens += 1;
        return `token ${tokens}`;
      },
      media: new FakeMedia(),
      gatewayPublicUrl: "http://x",
      onProgress: () => {},
      onEnded: (_call, ended) => {
        end = ended;
      },
    },
  );
  return { call, slots, end: () => end };
}

/** A link as a transport makes it whose socket may end before it is handed over. */
function linkOn(call: Call, ends?: SocketEnd): { link: CallLink; socket: FakeSocket } {
  const link = call.newLink();
  const socket = new FakeSocket();
  if (ends) link.events.onEnd(ends);
  link.socket = socket;
  return { link, socket };
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("a call whose socket ends before the call knows it", () => {
  for (const ends of [lost, { kind: "closed", code: 1006, reason: "" }] satisfies SocketEnd[]) {
    it(`is over and its slot free, ${ends.kind}`, async () => {
      const { call, slots, end } = newCall();
      call.start(linkOn(call, ends).link);
      assert.equal(slots.inUse, 0);
      await turn();
      assert.equal(end()?.reason, "client_hangup");
    });
  }

  it("is over when there is no socket at all", async () => {
    const { call, slots, end } = newCall();
    call.start(call.newLink());
    assert.equal(slots.inUse, 0);
    await turn();
    assert.equal(end()?.reason, "client_hangup");
  });

  it("keeps the link that it has, and the token of the client that tried to come back", () => {
    const { call, slots } = newCall();
    const first = linkOn(call);
    call.start(first.link);
    const { token } = first.socket;
    assert.equal(call.takeResumeToken(token), "taken");
    call.giveBackResumeToken(token);
    call.resumeOn(linkOn(call, lost).link, 0);
    assert.equal(first.socket.closed, undefined);
    assert.equal(slots.inUse, 1);

    assert.equal(call.takeResumeToken(token), "taken");
    const second = linkOn(call);
    call.resumeOn(second.link, 0);
    assert.notEqual(first.socket.closed, undefined);
    assert.notEqual(second.socket.token, token);
    // The old one may not be given back once there is a new one.
    call.giveBackResumeToken(token);
    assert.equal(call.takeResumeToken(token), "gone");
  });

  it("does not rise again when it ended while its client was coming back", async () => {
    const { call, end } = newCall();
    const first = linkOn(call);
    call.start(first.link);
    assert.equal(call.takeResumeToken(first.socket.token), "taken");
    call.end("max_duration");
    await turn();
    const second = linkOn(call);
    call.resumeOn(second.link, 0);
    assert.notEqual(second.socket.closed, undefined);
    assert.equal(end()?.reason, "max_duration");
    assert.ok(call.isOver);
  });
});
