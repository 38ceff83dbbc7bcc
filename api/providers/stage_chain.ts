/**
 * A stage of a call with others to fall back on. What fails before its first sign is asked once more where
 * that may help, then the next one is asked; one that has failed is left alone for a while. Each step is
 * told, so that the call's client and its record know who answered.
 */
import type { ProviderErrorKind } from "#contracts/codes.ts";
import type { ModelStage } from "#contracts/voice_agent.ts";
import type { VendorBreakers } from "./breaker.ts";
import type { LanguageModel, SpeechToText, SttResult, TextToSpeech, WaitDeps } from "./provider.ts";
import { ProviderError } from "./provider_error.ts";
import { waitFor } from "./waiting.ts";

/** What happened in a chain, for `warning`. */
export interface ChainNews {
  code: "provider_retry" | "provider_fallback" | "provider_recovered";
  stage: ModelStage;
  provider: string;
  /** How it failed; of one that answers again there is none. */
  kind?: ProviderErrorKind;
  message: string;
}

export interface Link<Stage> {
  /** The provider's name. */
  provider: string;
  /** What its failures are counted by: those of one key are those of another call with it too. */
  key: string;
  stage: Stage;
  /** Until its first sign, where another can be asked. */
  firstSignMs: number;
}

export interface ChainDeps {
  waits: WaitDeps;
  breakers: VendorBreakers;
  nowMs(): number;
  tell(news: ChainNews): void;
}

const retryAfterMs = 100;
/** A fallback that answered is asked first for so long. */
const stickyMs = 60_000;

/** Who is asked in which order, and what is told of it. */
class Chain<Stage> {
  readonly links: readonly Link<Stage>[];
  readonly #stage: ModelStage;
  readonly #deps: ChainDeps;
  #preferred: { index: number; untilMs: number } = { index: 0, untilMs: 0 };

  constructor(stage: ModelStage, links: readonly Link<Stage>[], deps: ChainDeps) {
    this.links = links;
    this.#stage = stage;
    this.#deps = deps;
  }

  #firstIndex(): number {
    return this.#deps.nowMs() < this.#preferred.untilMs ? this.#preferred.index : 0;
  }

  /** Asks one link after the other, until one has begun to answer. `open` has a link begin. */
  async *run<T>(open: (stage: Stage, signal: AbortSignal) => AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
    const first = this.#firstIndex();
    const indexes = [...this.links.keys()];
    const order = [...indexes.slice(first), ...indexes.slice(0, first)];
    let failure: unknown;
    for (const [place, index] of order.entries()) {
      const link = this.links[index] as Link<Stage>;
      const next = order[place + 1];
      if (next !== undefined && this.#deps.breakers.isOpen(link.key, this.#deps.nowMs())) continue;
      for (let attempt = 1; ; attempt += 1) {
        let hasBegun = false;
        try {
          const limitMs = next === undefined ? undefined : link.firstSignMs;
          for await (const value of this.#withFirstSign(link, open, limitMs, signal)) {
            hasBegun = true;
            yield value;
          }
          if (!signal.aborted) this.#succeeded(index, first);
          return;
        } catch (error) {
          if (signal.aborted) return;
          failure = error;
          this.#deps.breakers.failed(link.key, this.#deps.nowMs());
          if (hasBegun) throw error;
          if (attempt > 1 || this.#stage !== "llm" || !helpsToAskAgain(error)) break;
          const words = `${link.provider} failed (${kindOf(error)}) and is asked again`;
          this.#tell("provider_retry", link.provider, words, kindOf(error));
          if (!(await waitFor(this.#deps.waits, retryAfterMs, signal))) return;
        }
      }
      const other = next === undefined ? undefined : this.links[next];
      if (!other) break;
      const words = `${link.provider} failed (${kindOf(failure)}); ${other.provider} takes over`;
      this.#tell("provider_fallback", link.provider, words, kindOf(failure));
    }
    throw failure;
  }

  /** What a link answers; a first value that is too late is a failure, and the stream is left. */
  async *#withFirstSign<T>(
    { provider, stage }: Link<Stage>,
    open: (stage: Stage, signal: AbortSignal) => AsyncIterable<T>,
    limitMs: number | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<T> {
    const own = new AbortController();
    const over = new AbortController();
    const follow = () => own.abort();
    signal.addEventListener("abort", follow, { once: true });
    if (signal.aborted) own.abort();
    try {
      const stream = open(stage, own.signal)[Symbol.asyncIterator]();
      const first = stream.next();
      // Nobody waits any more for one that was too late.
      first.catch(() => {});
      const isLate = limitMs !== undefined && waitFor(this.#deps.waits, limitMs, over.signal);
      if (isLate && (await Promise.race([first.then(() => false), isLate]))) {
        throw new ProviderError(this.#stage, `${provider} gave no sign within ${limitMs} ms`, { kind: "timeout" });
      }
      for (let next = await first; !next.done; next = await stream.next()) yield next.value;
    } finally {
      over.abort();
      own.abort();
      signal.removeEventListener("abort", follow);
    }
  }

  #succeeded(index: number, first: number): void {
    const { provider, key } = this.links[index] as Link<Stage>;
    this.#deps.breakers.succeeded(key);
    if (index === 0 && this.#preferred.index > 0) {
      this.#tell("provider_recovered", provider, `${provider} answers again`);
    }
    if (index !== first || index === 0) {
      this.#preferred = { index, untilMs: index === 0 ? 0 : this.#deps.nowMs() + stickyMs };
    }
  }

  #tell(code: ChainNews["code"], provider: string, message: string, kind?: ProviderErrorKind): void {
    this.#deps.tell({ code, stage: this.#stage, provider, ...(kind && { kind }), message });
  }
}

function kindOf(error: unknown): ProviderErrorKind {
  return error instanceof ProviderError ? error.kind : "failed";
}

/** A vendor that is slow, limits us or refuses is not asked again at once. Sockets of ears and voices are dialled again by themselves. */
function helpsToAskAgain(error: unknown): boolean {
  return ["network", "unavailable", "protocol"].includes(kindOf(error));
}

export function chainOfModels(links: readonly Link<LanguageModel>[], deps: ChainDeps): LanguageModel {
  const chain = new Chain("llm", links, deps);
  return {
    reply: (request, signal) => chain.run((stage, own) => stage.reply(request, own), signal),
    close: () => closeAll(links),
  };
}

export function chainOfVoices(links: readonly Link<TextToSpeech>[], deps: ChainDeps): TextToSpeech {
  const chain = new Chain("tts", links, deps);
  return {
    speak: (text, context, signal) => chain.run((stage, own) => stage.speak(text, context, own), signal),
    close: () => closeAll(links),
  };
}

/** The first one hears the call as it goes on, also while another answers, which is given whole utterances. */
export function chainOfRecognizers(links: readonly Link<SpeechToText>[], deps: ChainDeps): SpeechToText {
  const chain = new Chain("stt", links, deps);
  const [primary] = links as [Link<SpeechToText>];
  const stt: SpeechToText = {
    isContinuous: primary.stage.isContinuous ?? false,
    endsTurns: primary.stage.endsTurns ?? false,
    onPartial: undefined,
    onTurnEnd: undefined,
    write: (chunk) => primary.stage.write(chunk),
    async finish(utterance, signal) {
      const ask = async function* (stage: SpeechToText, own: AbortSignal) {
        yield await stage.finish(utterance, own);
      };
      let result: SttResult = { text: "", final: true };
      for await (const heard of chain.run(ask, signal)) result = heard;
      return result;
    },
    close: () => closeAll(links),
  };
  primary.stage.onPartial = (result) => stt.onPartial?.(result);
  primary.stage.onTurnEnd = () => stt.onTurnEnd?.();
  return stt;
}

function closeAll(links: readonly Link<{ close(): void }>[]): void {
  for (const { stage } of links) stage.close();
}
