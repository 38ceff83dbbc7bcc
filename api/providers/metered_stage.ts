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
  /** When it was asked, by the clock that was given. */
  at?: RequestTimes;
}

/** Milliseconds of one clock. */
export interface RequestTimes {
  startedMs: number;
  /** From its start to the first sign of an answer; undefined where there was none. */
  firstMs?: number;
  durationMs: number;
}

type TellUse = (use: StageUse) => void;
type NowMs = () => number;

const meters: {
  [S in ModelStage]: (stage: StageKinds[S], by: Biller, tell: TellUse, nowMs: NowMs | undefined) => StageKinds[S];
} = {
  stt: meteredRecognizer,
  llm: meteredModel,
  tts: meteredVoice,
};

/** @param nowMs the clock by which requests are timed; without it they are not */
export function metered<S extends ModelStage>(
  stage: StageKinds[S],
  by: Biller & { stage: S },
  tell: TellUse,
  nowMs?: NowMs,
) {
  return meters[by.stage](stage, by, tell, nowMs);
}

/** Times of one request, from now on. */
function timedBy(nowMs: NowMs | undefined) {
  const startedMs = nowMs?.();
  let firstMs: number | undefined;
  return {
    sign() {
      if (nowMs && startedMs !== undefined) firstMs ??= nowMs() - startedMs;
    },
    times(): Pick<StageUse, "at"> {
      if (!nowMs || startedMs === undefined) return {};
      return { at: { startedMs, durationMs: nowMs() - startedMs, ...(firstMs !== undefined && { firstMs }) } };
    },
  };
}

function meteredModel(model: LanguageModel, by: Biller, tell: TellUse, nowMs: NowMs | undefined): LanguageModel {
  return {
    reply: (request, signal) => {
      let tokens: Partial<StageUse> = { unreported: 1 };
      const timed = timedBy(nowMs);
      const count = () => tell({ by, ...turnOf(request), requests: 1, ...tokens, ...timed.times() });
      return counted(model.reply(request, signal), signal, count, (chunk) => {
        timed.sign();
        if (chunk.kind !== "usage") return;
        const { prompt, completion, cached } = chunk;
        tokens = { prompt, completion, cached };
      });
    },
    close: () => model.close(),
  };
}

function meteredVoice(voice: TextToSpeech, by: Biller, tell: TellUse, nowMs: NowMs | undefined): TextToSpeech {
  return {
    speak: (text, context, signal) => {
      const timed = timedBy(nowMs);
      const count = () => tell({ by, ...turnOf(context), requests: 1, characters: [...text].length, ...timed.times() });
      return counted(voice.speak(text, context, signal), signal, count, timed.sign);
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
function meteredRecognizer(
  recognizer: SpeechToText,
  by: Biller,
  tell: TellUse,
  nowMs: NowMs | undefined,
): SpeechToText {
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
      const timed = timedBy(nowMs);
      const result = await recognizer.finish(utterance, signal);
      const { samples, sampleRateHz } = withTail(utterance);
      // As somebody's fallback it hears nothing but whole utterances.
      const audioMs = heardMs > 0 ? heardMs : (samples.length * 1000) / sampleRateHz;
      heardMs = 0;
      tell({ by, ...turnOf(utterance), requests: 1, audioMs, ...timed.times() });
      return result;
    },
    close() {
      // What came after the last turn.
      if (heardMs > 0) tell({ by, requests: 0, audioMs: heardMs, ...timedBy(nowMs).times() });
      heardMs = 0;
      recognizer.close();
    },
  };
  recognizer.onPartial = (result) => metered.onPartial?.(result);
  recognizer.onTurnEnd = () => metered.onTurnEnd?.();
  return metered;
}
