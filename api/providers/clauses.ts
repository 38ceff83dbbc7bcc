/**
 * Cuts a stream of text into clauses that can be spoken while the rest is still being written.
 * The first clause ends early, at a comma if need be, so that speech begins early; later ones run
 * to the end of a sentence, or to a comma once they are long. Nothing is lost but white space at the
 * very end, and how the text was cut into deltas makes no difference.
 */

export interface ClauseSplitter {
  /** Takes more text; returns the clauses that it completes, each with the white space around it. */
  push(delta: string): string[];
  /** The text is complete: returns what is left, if it is more than white space. */
  flush(): string[];
}

/** A clause is never longer, in UTF-16 units: longer ones are cut between words, or inside of a word. */
export const clauseCharsMax = 250;
/** From this length on a comma ends the first clause, and a later one. */
const firstCommaCharsMin = 20;
const laterCommaCharsMin = 60;

const closers = /["')\]}”’»]/;
const sentenceEnds = ".!?…";
const fullWidthEnds = "。！？";
const commas = ",;:—–";
/** Never the end of a sentence. */
const abbreviations = new Set(
  "mr mrs ms dr prof st sr jr mt rev hon capt gen sgt vs e.g i.e cf approx dept tel ext fig vol ave blvd rd".split(" "),
);
/** The end of a sentence only where a capital letter follows. */
const softAbbreviations = new Set("a.m p.m etc inc ltd co corp no nr hrs hr min max est u.s u.k".split(" "));

export function createClauseSplitter(): ClauseSplitter {
  let pending = "";
  let isFirst = true;

  function take(complete: boolean): string[] {
    const clauses: string[] = [];
    for (;;) {
      const end = clauseEnd(pending, isFirst, complete);
      if (end === 0) return clauses;
      clauses.push(pending.slice(0, end));
      pending = pending.slice(end);
      isFirst = false;
    }
  }

  return {
    push(delta) {
      pending += delta;
      return take(false);
    },
    flush() {
      const clauses = take(true);
      if (pending.trim() !== "") clauses.push(pending);
      pending = "";
      isFirst = true;
      return clauses;
    },
  };
}

/** The clauses of a text that is complete. */
export function clausesOf(text: string): string[] {
  const splitter = createClauseSplitter();
  return [...splitter.push(text), ...splitter.flush()];
}

/** Clauses of a stream of text, each as early as it is complete. */
export async function* splitClauses(deltas: AsyncIterable<string>): AsyncIterable<string> {
  const splitter = createClauseSplitter();
  for await (const delta of deltas) yield* splitter.push(delta);
  yield* splitter.flush();
}

/** Where the first clause of `text` ends, or 0 when that is not known yet. `complete`: no text follows. */
function clauseEnd(text: string, isFirst: boolean, complete: boolean): number {
  const start = text.search(/\S/);
  if (start < 0) return text.length > clauseCharsMax ? clauseCharsMax : 0;
  const commaCharsMin = isFirst ? firstCommaCharsMin : laterCommaCharsMin;
  const scanned = Math.min(text.length, clauseCharsMax);
  for (let i = start + 1; i < scanned; i += 1) {
    const char = text[i] as string;
    if (char === "\n" || fullWidthEnds.includes(char)) return i + 1;
    if (!/\s/.test(char)) continue;
    let last = i - 1;
    while (last > start && closers.test(text[last] as string)) last -= 1;
    const mark = text[last] as string;
    if (last === i - 1 && commas.includes(mark) && i - start >= commaCharsMin) return i + 1;
    if (!sentenceEnds.includes(mark)) continue;
    const ends = mark === "." ? endsSentence(text.slice(start, last), text.slice(i), complete) : true;
    if (ends === "unknown") {
      if (text.length <= clauseCharsMax) return 0;
      continue;
    }
    if (ends) return i + 1;
  }
  return text.length > clauseCharsMax ? forcedEnd(text) : 0;
}

/** Whether a full stop behind `before` ends a sentence; `after` begins with white space. */
function endsSentence(before: string, after: string, complete: boolean): boolean | "unknown" {
  if (/^\d{1,3}$/.test(before)) return false; // "1. First": the number of an item
  const word = /[^\s"'([{“‘«]*$/.exec(before)?.[0] ?? "";
  const known = word.toLowerCase();
  if (abbreviations.has(known)) return false;
  if (/^\p{L}$/u.test(word) && word !== "I") return false; // an initial
  if (!softAbbreviations.has(known)) return true;
  const next = /\S/u.exec(after)?.[0];
  if (next === undefined) return complete ? true : "unknown";
  return /[^\p{Ll}\p{N}]/u.test(next);
}

/** Behind the last white space within the bound, else at the bound without parting a surrogate pair. */
function forcedEnd(text: string): number {
  const head = text.slice(0, clauseCharsMax);
  const space = /\s\S*$/.exec(head);
  if (space && head.slice(0, space.index).trim() !== "") return space.index + 1;
  const code = head.charCodeAt(clauseCharsMax - 1);
  return code >= 0xd800 && code <= 0xdbff ? clauseCharsMax - 1 : clauseCharsMax;
}
