/**
 * A stage that tells what it used: tokens, audio, characters, by the model that answered. A request counts
 * when the vendor gave a sign, or when we left it waiting; what it refused, or what failed before, is not billed.
 */
import type { ModelStage } from "#contracts/voice_agent.ts";
import type { LanguageModel, SpeechToText, StageKinds, TextToSpeech } from "./provider.ts";
import { withTail } from "./utterance_tail.ts";

/** Whose work it is. */
export interface Biller {
  stage: ModelStage;
  provider: string;
  /** The vendor's model, as settings name it or as the provider means it. */
  model?: string;
  /** Where it is reached, if not at the vendor's own address. */
  baseUrl?: string;
}

/** What was used, since the last of these. */
export interface StageUse {
  by: Biller;
  /** The turn of the call, where it is one's. */
  turnId?: string;
  requests: number;
  prompt?: number;
  completion?: number;
  cached?: number;
  audioMs?: number;
  characters?: number;
  /** Requests of which the vendor told no tokens, because it tells none or was stopped. */
  unreported?: number;
}

type TellUse = (use: StageUse) => void;

const meters: { [S in ModelStage]: (stage: StageKinds[S], by: Biller, tell: TellUse) => StageKinds[S] } = {
  stt: meteredRecognizer,
  llm: meteredModel,
  tts: meteredVoice,
};

export function metered<S extends ModelStage>(stage: StageKinds[S], by: Biller & { stage: S }, tell: TellUse) {
  return meters[by.stage](stage, by, tell);
}

function meteredModel(model: LanguageModel, by: Biller, tell: TellUse): LanguageModel {
  return {
    reply: (request, signal) => {
      let tokens: Partial<StageUse> = { unreported: 1 };
      const count = () => tell({ by, ...turnOf(request), requests: 1, ...tokens });
      return counted(model.reply(request, signal), signal, count, (chunk) => {
        if (chunk.kind !== "usage") return;
        const { prompt, completion, cached } = chunk;
        tokens = { prompt, completion, cached };
      });
    },
    close: () => model.close(),
  };
}

function meteredVoice(voice: TextToSpeech, by: Biller, tell: TellUse): TextToSpeech {
  return {
    speak: (text, context, signal) => {
      const count = () => tell({ by, ...turnOf(context), requests: 1, characters: [...text].length });
      return counted(voice.speak(text, context, signal), signal, count);
    },
    close: () => voice.close(),
  };
}

const turnOf = ({ turnId }: { turnId?: string }) => (turnId === undefined ? {} : { turnId });

/** Counts a request once: when its answer is over, or at the moment it is left, so that a call that ends counts it. */
async function* counted<T>(
  answer: AsyncIterable<T>,
  signal: AbortSignal,
  count: () => void,
  see: (value: T) => void = () => {},
): AsyncGenerator<T> {
  let hasBegun = false;
  let isCounted = false;
  const countOnce = () => {
    if (!isCounted) count();
    isCounted = true;
  };
  if (signal.aborted) return;
  signal.addEventListener("abort", countOnce, { once: true });
  try {
    for await (const value of answer) {
      hasBegun = true;
      see(value);
      yield value;
    }
    countOnce();
  } finally {
    signal.removeEventListener("abort", countOnce);
    if (hasBegun) countOnce();
  }
}

/** One that hears everything is billed for everything, one that is given utterances for those that it took. */
function meteredRecognizer(recognizer: SpeechToText, by: Biller, tell: TellUse): SpeechToText {
  let heardMs = 0;
  const isContinuous = recognizer.isContinuous ?? false;
  const metered: SpeechToText = {
    isContinuous,
    endsTurns: recognizer.endsTurns ?? false,
    onPartial: undefined,
    onTurnEnd: undefined,
    write(chunk) {
      if (isContinuous) heardMs += (chunk.samples.length * 1000) / chunk.sampleRateHz;
      recognizer.write(chunk);
    },
    async finish(utterance, signal) {
      const result = await recognizer.finish(utterance, signal);
      const { samples, sampleRateHz } = withTail(utterance);
      // As somebody's fallback it hears nothing but whole utterances.
      const audioMs = heardMs > 0 ? heardMs : (samples.length * 1000) / sampleRateHz;
      heardMs = 0;
      tell({ by, ...turnOf(utterance), requests: 1, audioMs });
      return result;
    },
    close() {
      // What came after the last turn.
      if (heardMs > 0) tell({ by, requests: 0, audioMs: heardMs });
      heardMs = 0;
      recognizer.close();
    },
  };
  recognizer.onPartial = (result) => metered.onPartial?.(result);
  recognizer.onTurnEnd = () => metered.onTurnEnd?.();
  return metered;
}
