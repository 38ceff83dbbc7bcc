/** The twin against the vendor's own client: what it takes for Deepgram is Deepgram's wire. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { DeepgramClient } from "@deepgram/sdk";
import type { VendorTwin } from "#contracts/vendor_twin.ts";
import { startTwin } from "./twin.ts";

const encoding = "linear16";
const sample_rate = 16_000;
/** 80 ms. */
const [loud, quiet] = [new Int16Array(1280).fill(4000), new Int16Array(1280)];

describe("Deepgram's own client and the twin", () => {
  let twin: VendorTwin;
  let secret = "";
  let baseUrl = "";
  before(async () => {
    twin = await startTwin();
    assert.ok(twin.access);
    ({ secret, baseUrl } = twin.access);
  });
  after(() => twin.close());

  function clientOf(apiKey = secret): DeepgramClient {
    const production = baseUrl.replace("http", "ws");
    const environment = { base: baseUrl, production, agent: production, agentRest: baseUrl };
    return new DeepgramClient({ apiKey, environment });
  }
  const of = <M extends { type: string }, T extends M["type"]>(messages: readonly M[], type: T) =>
    messages.filter((message): message is Extract<M, { type: T }> => message.type === type);

  it("agree on Nova: audio, Finalize, what is final, CloseStream", async () => {
    twin.play("stt", "answers");
    const Authorization = `Token ${secret}`;
    const options = { model: "nova-3", encoding, sample_rate, interim_results: true, reconnectAttempts: 0 } as const;
    const socket = await clientOf().listen.v1.connect({ ...options, Authorization } as never);
    type Message = { type: string; is_final?: boolean; from_finalize?: boolean };
    const messages: Message[] = [];
    const closed = new Promise<{ code: number }>((resolve) => socket.on("close", resolve));
    const finalized = new Promise<void>((resolve) => {
      socket.on("message", (message) => {
        messages.push(message as Message);
        if ((message as Message).from_finalize) resolve();
      });
    });
    socket.connect();
    await socket.waitForOpen();
    for (const piece of [loud, loud, quiet]) socket.sendMedia(piece.buffer);
    socket.sendKeepAlive({ type: "KeepAlive" });
    socket.sendFinalize({ type: "Finalize" });
    await finalized;
    assert.deepEqual(
      of(messages, "Results").map(({ is_final }) => is_final),
      [false, false, true],
    );
    socket.sendCloseStream({ type: "CloseStream" });
    assert.equal((await closed).code, 1000);
  });

  it("agree on Flux: the events of a turn", async () => {
    const Authorization = `Token ${secret}`;
    const options = { model: "flux-general-en", encoding, sample_rate, reconnectAttempts: 0 } as const;
    const socket = await clientOf().listen.v2.connect({ ...options, Authorization } as never);
    const events: string[] = [];
    const ended = new Promise<void>((resolve) => {
      socket.on("message", (message) => {
        events.push("event" in message ? message.event : message.type);
        if (events.at(-1) === "EndOfTurn") resolve();
      });
    });
    socket.connect();
    await socket.waitForOpen();
    for (const piece of [loud, loud, quiet, quiet, quiet]) socket.sendMedia(piece.buffer);
    await ended;
    assert.deepEqual(events, ["Connected", "StartOfTurn", "Update", "EndOfTurn"]);
    socket.close();
  });

  it("agree on a key that is not taken", async () => {
    const projects = await clientOf().manage.v1.projects.list();
    assert.deepEqual(projects.projects, []);
    await assert.rejects(clientOf("another").manage.v1.projects.list(), { statusCode: 401 });
  });
});
