import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RemoteRequest, RemoteTools } from "#media/tools/remote_tools.ts";
import { ToolError } from "#media/tools/tool.ts";
import { SessionHarness } from "#test/kit/session_harness.ts";
import { frontDeskConfig } from "./first_agents.ts";

type HouseCall = Extract<RemoteRequest, { is: "house" }>;

/** The house's own service, as the front desk asks it. */
function houseWith(answers: Record<string, unknown>): RemoteTools & { asked: HouseCall[] } {
  const asked: HouseCall[] = [];
  return {
    asked,
    async ask(request) {
      if (request.is !== "house") throw new ToolError("not here");
      asked.push(request);
      const answer = answers[request.name];
      if (answer === undefined) throw new ToolError("Nothing was quoted in this call yet");
      return answer;
    },
  };
}

/** What the front desk says to each sentence. */
async function talk(remoteTools: RemoteTools, sentences: readonly string[]): Promise<string[]> {
  const tts = { provider: "scripted", options: { ms_per_char: 1 } };
  const h = new SessionHarness({ config: { ...frontDeskConfig, tts, welcome_message: "" }, remoteTools });
  await h.run(200);
  for (const [at, text] of sentences.entries()) {
    await h.command({ type: "user_message", text });
    await h.runUntil("agent_speech_done", at + 1);
  }
  return h.messages("transcript").flatMap(({ role, final, text = "" }) => (role === "agent" && final ? [text] : []));
}

describe("the front desk of the first start", () => {
  it("quotes a stay and books it after a yes, without any vendor", async () => {
    const house = houseWith({
      quote_stay: { say: "2 nights come to 288.00 EUR, of which 48.00 are tax." },
      book_stay: { arrival: "2026-11-27", nights: 2, number: "64494ed7" },
    });
    const sentences = [
      "I would like to book a room",
      "next Friday",
      "two",
      "for two guests",
      "Yes, please",
      "Ada Lovelace",
    ];
    const said = await talk(house, sentences);
    assert.match(said.at(-3) ?? "", /288\.00 EUR, of which 48\.00 are tax\. Shall I book it\?/);
    assert.match(said.at(-1) ?? "", /booked for Ada Lovelace.*64494ed7/);
    assert.deepEqual(
      house.asked.map(({ name, given }) => [name, given]),
      [
        ["quote_stay", { arrival: "next Friday", nights: "two", guests: "two" }],
        ["book_stay", { name: "Ada Lovelace" }],
      ],
    );
  });

  it("looks up what is free, and does not take a question about the house for one", async () => {
    const house = houseWith({ find_stay: { say: "Yes, a room is free." } });
    const said = await talk(house, ["Is the Wi-Fi free?", "Do you have a room free?", "tomorrow", "3"]);
    assert.match(said[0] ?? "", /Wi-Fi is free/);
    assert.match(said.at(-1) ?? "", /^Yes, a room is free\./);
    assert.deepEqual(house.asked[0]?.given, { arrival: "tomorrow", nights: "3" });
  });

  it("claims no booking that did not come about", async () => {
    const said = await talk(houseWith({}), ["book it", "Ada"]);
    assert.doesNotMatch(said.at(-1) ?? "", /booked/i);
  });
});
