/** Settings that make `scripted` behave. */
import type { TwinBehaviour, TwinSettings, VendorTwin } from "#contracts/vendor_twin.ts";
import type { ModelStage } from "#contracts/voice_agent.ts";

const answers: Record<ModelStage, Record<string, unknown>> = {
  stt: { transcripts: ["I would like a room."] },
  llm: { replies: ["Breakfast is from seven to ten."], tokens_per_s: 10_000 },
  tts: {},
};

function settingsFor(stage: ModelStage, behaviour: TwinBehaviour): TwinSettings | undefined {
  if (behaviour === "answers") return { options: answers[stage] };
  if (behaviour === "silent") return { options: { hang_on: [1] } };
  if (behaviour === "fails") return { options: { fail_on: [1] } };
  if (behaviour === "calls_tool")
    return { options: { tool_calls: [{ turn: 1, name: "look_up", arguments: { a: 1 } }] } };
  return undefined;
}

export async function startTwin(): Promise<VendorTwin> {
  return { play: settingsFor, close: async () => {} };
}
