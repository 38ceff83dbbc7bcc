/** Settings that make `rules` behave. */
import type { TwinBehaviour, TwinSettings, VendorTwin } from "#contracts/vendor_twin.ts";

const caller = { intent: "any", patterns: [".*"], say: "Let me see." };

const settings: { [B in TwinBehaviour]?: TwinSettings } = {
  answers: { options: { tokens_per_s: 10_000 } },
  calls_tool: { options: { rules: [{ ...caller, tool: "look_up" }] } },
  silent: { options: { hang_on: [1] } },
  fails: { options: { fail_on: [1] } },
};

export async function startTwin(): Promise<VendorTwin> {
  return { play: (_stage, behaviour) => settings[behaviour], close: async () => {} };
}
