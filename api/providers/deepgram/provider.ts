/** `deepgram`: recognition over a socket, by Nova or by Flux. */
import { defineProvider } from "../provider.ts";
import { DeepgramOptions, modelDefault } from "./options.ts";

export const deepgram = defineProvider({
  name: "deepgram",
  secrets: {
    connection: "deepgram",
    baseUrl: "https://api.deepgram.com",
    probe: { path: "/v1/projects", headers: (secret) => ({ authorization: `Token ${secret}` }) },
  },
  stt: {
    does: "hears the call as it is spoken; a model `flux-…` says itself when a turn is over, `nova-3` is the default",
    options: DeepgramOptions,
    defaultModel: modelDefault,
    load: () => import("./stt.ts"),
  },
});
