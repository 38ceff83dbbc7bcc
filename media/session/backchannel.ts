/** Whether what was said over the agent is a listener's ("mm-hm", "okay", or too few words), who does not want the floor. Pure. */
import { plainWords } from "../words/plain_words.ts";
import type { Words } from "../words/words.ts";

/** Who says more, or speaks longer, has something to say. */
export const backchannelWordsMax = 3;
export const backchannelMsMax = 1200;

/** What an agent's configuration says of it. */
export interface BackchannelSettings {
  /** In place of the language's list; then every one of them may be an answer too. */
  own?: readonly string[] | undefined;
  /** Who says fewer words does not interrupt. */
  minInterruptWords?: number;
}

/** What a listener may say, word by word. */
export class Backchannels {
  readonly #listened: ReadonlySet<string>;
  readonly #answers: ReadonlySet<string>;
  readonly #stops: readonly string[];
  readonly #minInterruptWords: number;

  constructor(
    words: Pick<Words, "backchannels" | "answers" | "stops">,
    { own, minInterruptWords = 0 }: BackchannelSettings = {},
  ) {
    this.#listened = new Set((own ?? words.backchannels).map((text) => plainWords(text).join(" ")));
    this.#answers = own ? this.#listened : new Set(words.answers);
    this.#stops = words.stops;
    this.#minInterruptWords = minInterruptWords;
  }

  /** So few words that they do not interrupt, and none of them asks the agent to stop. After a question they are an answer. */
  isTooFew(text: string, isAsked: boolean): boolean {
    const words = plainWords(text);
    if (isAsked || words.length === 0 || words.length >= this.#minInterruptWords) return false;
    const padded = ` ${words.join(" ")} `;
    return !this.#stops.some((stop) => padded.includes(` ${stop} `));
  }

  /** @param isAsked the agent has just asked something: then a "yes" is an answer */
  has(text: string, isAsked: boolean): boolean {
    const words = plainWords(text);
    if (words.length === 0 || words.length > backchannelWordsMax) return false;
    return this.#isMadeOf(words, isAsked);
  }

  #isMadeOf(words: readonly string[], isAsked: boolean): boolean {
    if (words.length === 0) return true;
    return words.some((_, i) => {
      const phrase = words.slice(0, i + 1).join(" ");
      const isListened = this.#listened.has(phrase) && !(isAsked && this.#answers.has(phrase));
      return isListened && this.#isMadeOf(words.slice(i + 1), isAsked);
    });
  }
}

/** Whether the sentence around `at`, or the one before it, is a question. */
export function isQuestionAt(text: string, at: number): boolean {
  let before = "";
  let start = 0;
  for (const [sentence] of text.matchAll(/[^.!?…。？！]*(?:[.!?…。？！]+["'”’»)\]]*\s*|$)/gu)) {
    if (at < start + sentence.length || start + sentence.length >= text.length)
      return isQuestion(sentence) || isQuestion(before);
    before = sentence;
    start += sentence.length;
  }
  return false;
}

const isQuestion = (sentence: string) => /[?？]["'”’»)\]]*\s*$/u.test(sentence);
