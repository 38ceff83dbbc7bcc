/** The twin against the vendor's own client: what it takes for Cartesia is Cartesia's wire. */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import type { Cartesia } from "@cartesia/cartesia-js";
import type { VendorTwin } from "#contracts/vendor_twin.ts";
import { startTwin } from "./twin.ts";

// As a module the client finds no `ws`.
const sdk = createRequire(import.meta.url)("@cartesia/cartesia-js") as typeof import("@cartesia/cartesia-js");

const context = {
  model_id: "sonic-3",
  voice: { id: "a-voice" },
  output_format: { container: "raw", encoding: "pcm_s16le", sample_rate: 16_000 },
} as const;

describe("Cartesia's own client and the twin", () => {
  let twin: VendorTwin;
  let client: Cartesia;
  before(async () => {
    twin = await startTwin();
    assert.ok(twin.access);
    client = new sdk.Cartesia({ apiKey: twin.access.secret, baseURL: twin.access.baseUrl, maxRetries: 0 });
  });
  after(() => twin.close());
  /** The client dials `wss:` whatever address it is given. */
  const inClear = () => connect(Number(new URL(twin.access?.baseUrl ?? "").port), "127.0.0.1");

  it("agree on a text that is said, in pieces that end with done", async () => {
    twin.play("tts", "answers");
    const socket = await client.tts.websocket({ createConnection: inClear });
    const said = socket.context(context);
    await said.send({ transcript: "Good evening.", continue: false });
    const types: string[] = [];
    let bytes = 0;
    for await (const event of said.receive()) {
      types.push(event.type);
      if (event.type === "chunk") bytes += event.audio?.length ?? 0;
    }
    assert.deepEqual(types, ["chunk", "chunk", "done"]);
    assert.equal(bytes, 2 * 16 * 50 * "Good evening.".length);
    socket.close();
  });

  it("agree on a failure and on a cancelled context", async () => {
    const socket = await client.tts.websocket({ createConnection: inClear });
    socket.on("error", () => {});
    twin.play("tts", "rate_limited");
    const refused = socket.context(context);
    await refused.send({ transcript: "Good evening.", continue: false });
    await assert.rejects(async () => {
      for await (const _ of refused.receive());
    }, /Concurrency limit/);
    twin.play("tts", "answers");
    const cancelled = socket.context(context);
    await cancelled.send({ transcript: "Good evening.", continue: false });
    await cancelled.cancel();
    const next = socket.context(context);
    await next.send({ transcript: "Yes.", continue: false });
    for await (const event of next.receive()) assert.equal(event.context_id, next.contextId);
    socket.close();
  });
});
