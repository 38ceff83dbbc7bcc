/**
 * Any endpoint that speaks OpenAI's transcription API: each utterance is sent as a file when it is over.
 * Wire: https://platform.openai.com/docs/api-reference/audio/createTranscription
 */
import type { SpeechToText, SttResult, Utterance, VendorStageRequest } from "../provider.ts";
import { ProviderError } from "../provider_error.ts";
import { withTail } from "../utterance_tail.ts";
import { wavOf } from "../wav.ts";
import { openClient, readable, wasAborted } from "./client.ts";
import { type OpenAiSttOptions, sttModelDefault } from "./options.ts";

export function open({ settings, options, access }: VendorStageRequest<OpenAiSttOptions>): SpeechToText {
  const client = openClient(access, options.first_byte_timeout_ms);
  const model = settings.model ?? sttModelDefault;
  const { language } = settings;
  const nothing: SttResult = { text: "", final: true, language };
  const fieldsFor = (utterance: Utterance): FormData => {
    const fields = new FormData();
    fields.set("file", new File([wavOf(withTail(utterance))], "utterance.wav", { type: "audio/wav" }));
    fields.set("model", model);
    fields.set("response_format", "json");
    // ISO 639-1, of a tag like `en-GB`.
    fields.set("language", language.split("-")[0] ?? language);
    if (options.prompt !== undefined) fields.set("prompt", options.prompt);
    return fields;
  };
  return {
    write() {},
    async finish(utterance, signal) {
      if (signal.aborted) return nothing;
      try {
        const { headers, body } = await encoded(fieldsFor(utterance));
        const heard = await client.post<unknown>("/audio/transcriptions", { headers, body, signal });
        return signal.aborted ? nothing : { ...nothing, text: textOf(heard, model) };
      } catch (error) {
        if (wasAborted(error, signal)) return nothing;
        throw readable("stt", error, model);
      }
    },
    close() {},
  };
}

/** The client takes no form, because its `fetch` here is undici's and the form is Node's own. */
async function encoded(fields: FormData) {
  const form = new Response(fields);
  const headers = { "content-type": form.headers.get("content-type") ?? "multipart/form-data" };
  return { headers, body: new Uint8Array(await form.arrayBuffer()) };
}

function textOf(heard: unknown, model: string): string {
  const text = (heard as { text?: unknown } | null)?.text;
  if (typeof text === "string") return text;
  throw new ProviderError("stt", `The endpoint of ${model} answered no transcript`, { kind: "protocol" });
}
