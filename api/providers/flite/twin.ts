/** Settings that make `flite` behave. */
import type { TwinBehaviour, TwinSettings, VendorTwin } from "#contracts/vendor_twin.ts";

const settings: { [B in TwinBehaviour]?: TwinSettings } = {
  answers: {},
  silent: { options: { hang_on: [1] } },
  fails: { options: { fail_on: [1] } },
};

export async function startTwin(): Promise<VendorTwin> {
  return { play: (_stage, behaviour) => settings[behaviour], close: async () => {} };
}
