/**
 * One conversation with two tools at once, one that fails, one that hangs and an interruption: over a
 * WebSocket and in a room, with either vendor's model, it leaves the same turns in the record.
 */
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { dispose } from "@livekit/rtc-node";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { RoomCaller } from "#test/kit/rooms/room_caller.ts";
import { noLiveKit, openRoomHouse, type RoomHouse } from "#test/kit/rooms/room_house.ts";
import { type ConversationScript, type ScriptedModel, startScriptedModel } from "#test/kit/scripted_models.ts";
import { leadCall, type Step } from "../golden/golden_call.ts";
import { SocketCaller } from "../golden/socket_call.ts";

const everything =
  "There is a sauna, a pool, a garden with old trees, a library, a bar, a terrace over the lake, a room for children, bicycles to borrow and a boat that leaves every morning at nine for the island.";
const script: ConversationScript = {
  "Is a room free, and what is it?": {
    calls: { find_room: { day: "today" }, quote: { nights: 2 } },
    says: "Two, for 240.",
  },
  "Book it": { calls: { book: { nights: 2 } }, says: "There is no room left." },
  "Ask the spa": { calls: { ask_spa: {} }, says: "The spa does not answer." },
  "What else is there?": { says: everything },
  "Stop, thank you": { says: "You are welcome." },
};

const types = (text: string): Step => ({ sends: { type: "user_message", text } });
const heard = (times: number): Step => ({ waits_for: "agent_speech_done", times });
const caller: readonly Step[] = [
  ...[types("Is a room free, and what is it?"), heard(1), types("Book it"), heard(2), types("Ask the spa"), heard(3)],
  ...[types("What else is there?"), { waits_for: "agent_speech_started", times: 4 } as const, { waits_ms: 400 }],
  ...[
    { speaks_ms: 900 },
    heard(5),
    { sends: { type: "hang_up" } } as const,
    { waits_for: "call_ended", times: 1 } as const,
  ],
];

/** What has to be in the record, whatever the call came over and whoever was the model. */
const expected = {
  turns: [
    "turn_1 user Is a room free, and what is it?",
    "turn_1 agent Two, for 240.",
    "turn_2 user Book it",
    "turn_2 agent There is no room left.",
    "turn_3 user Ask the spa",
    "turn_3 agent The spa does not answer.",
    "turn_4 user What else is there?",
    `turn_4 agent (interrupted) ${everything}`,
    "turn_5 user Stop, thank you",
    "turn_5 agent You are welcome.",
  ],
  tools: [
    'find_room completed {"day":"today"}: two rooms',
    'quote completed {"nights":2}: 240',
    'book failed {"nights":2}: HOST answered 409: no room left',
    'ask_spa timeout {}: {"error":"timeout"}',
  ],
};

describe("one conversation", () => {
  let house: RoomHouse;
  let url = "";
  const models: ScriptedModel[] = [];
  /** Rooms that are looked for, until their price is asked too: one after the other they would wait for ever. */
  const waiting = new Map<unknown, ServerResponse>();
  const hotel = createServer((request, response) => {
    const call = request.headers["x-call-id"];
    if (request.url?.startsWith("/find_room")) waiting.set(call, response);
    else if (request.url?.startsWith("/quote")) {
      waiting.get(call)?.end("two rooms");
      response.end("240");
    } else if (request.url?.startsWith("/book")) response.writeHead(409).end("no room left");
  });

  before(async () => {
    await new Promise<void>((resolve) => hotel.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(hotel.address() as AddressInfo).port}`;
    for (const provider of ["openai", "anthropic"] as const) models.push(await startScriptedModel(provider, script));
    house = await openRoomHouse({ callSlots: 4 }, { allowPrivateAddresses: true, withRooms: !noLiveKit });
  });
  after(async () => {
    await house?.close();
    await dispose();
    for (const model of models) await model.close();
    hotel.closeAllConnections();
    hotel.close();
  });

  async function agentWith({ provider, access }: ScriptedModel): Promise<string> {
    const connection = await house.connect(provider, access);
    const tool = (name: string, over: object) => ({ name, url: `${url}/${name}`, ...over });
    const number = [{ name: "nights", type: "integer" as const }];
    const config: VoiceAgentConfig = {
      stt: { provider: "scripted", options: { transcripts: ["Stop, thank you"], partials: false } },
      llm: { provider, model: "m", connection_id: connection },
      tts: { provider: "scripted", options: { ms_per_char: 15 } },
      tools: [
        tool("find_room", { params: [{ name: "day" }] }),
        tool("quote", { params: number }),
        tool("book", { method: "POST", params: number }),
        tool("ask_spa", { timeout_s: 0.3 }),
      ],
    };
    return house.createAgent(config);
  }

  /** @returns the call's id */
  const transports: Record<"websocket" | "room", (agentId: string) => Promise<string>> = {
    async websocket(agentId) {
      const { body } = await house.call("POST", `/v1/agents/voice/agents/${agentId}/calls/websocket`, {});
      const target = body.data.websocket_url.replace(/^ws:\/\/[^/]+/, house.gateway.url.replace(/^http/, "ws"));
      await leadCall(caller, new SocketCaller(target));
      return body.data.call_id;
    },
    async room(agentId) {
      const { callId, ...ticket } = await house.openRoom(agentId);
      const inRoom = await RoomCaller.join(ticket);
      await leadCall(caller, inRoom).finally(() => inRoom.leave());
      return callId;
    },
  };

  for (const [transport, lead] of Object.entries(transports)) {
    // One room at a time: joining is dear, and here both sides are in one process.
    const isRoom = transport === "room";
    describe(`over a ${transport}`, { concurrency: !isRoom, skip: isRoom && noLiveKit }, () => {
      for (const [at, vendor] of ["OpenAI", "Anthropic"].entries()) {
        it(`leaves its turns with a model of ${vendor}`, async () => {
          const callId = await lead(await agentWith(models[at] as ScriptedModel));
          assert.deepEqual(inShort(await house.record(callId, ({ state }) => state === "ended")), expected);
        });
      }
    });
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test reads bodies as a client in JavaScript does
  function inShort({ transcript, tools }: any) {
    return {
      turns: transcript.map(
        // A slow machine lets the agent say that it takes a moment.
        (item: { turn_id: string; role: string; text: string; interrupted: boolean }) =>
          `${item.turn_id} ${item.role} ${item.interrupted ? "(interrupted) " : ""}${item.text.replaceAll("One moment, please. ", "").trim()}`,
      ),
      tools: tools.map(
        (tool: { name: string; state: string; arguments: object; result: string | null; error: string | null }) =>
          `${tool.name} ${tool.state} ${JSON.stringify(tool.arguments)}: ${(tool.result ?? tool.error ?? "").replace(url.slice(7), "HOST")}`,
      ),
    };
  }
});
