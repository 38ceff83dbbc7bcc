/** Which part of a text was heard, from the timing of its clauses. Pure. */

/** A clause of an utterance and its place in the utterance's audio; `endMs` is absent while it is still synthesized. */
export interface SpokenClause {
  text: string;
  startMs: number;
  endMs: number | undefined;
  /** Speech gave it up. Which of its words were spoken is not known: it counts as not heard. */
  failed?: boolean;
}

/** The start of `text` up to the last word that ends within its first `fraction`. */
export function wordsWithin(text: string, fraction: number): string {
  if (fraction >= 1) return text;
  const length = Math.floor(text.length * Math.max(0, fraction));
  let end = 0;
  for (const word of text.matchAll(/\S+/g)) {
    const wordEnd = word.index + word[0].length;
    if (wordEnd > length) break;
    end = wordEnd;
  }
  return text.slice(0, end);
}

/** An utterance cut in two: what was heard, and the clauses that were not, timed from the cut on. */
export interface CutText {
  heard: string;
  rest: SpokenClause[];
}

/**
 * Cuts an utterance at `playedMs`: the text that was heard, and the clauses that were not, timed
 * from the cut on; a failed clause that is over is in neither. `audioMs` bounds a clause that is still being synthesized. Words are taken to
 * last in proportion to their letters.
 */
export function cutText(clauses: readonly SpokenClause[], playedMs: number, audioMs: number): CutText {
  let heard = "";
  const rest: SpokenClause[] = [];
  for (const clause of clauses) {
    if (clause.failed && clause.endMs !== undefined && clause.endMs <= playedMs) continue;
    const lastMs = (clause.endMs ?? Math.max(audioMs, clause.startMs)) - clause.startMs;
    const fraction =
      playedMs <= clause.startMs
        ? 0
        : lastMs <= 0
          ? Number(clause.endMs !== undefined)
          : (playedMs - clause.startMs) / lastMs;
    const isWhole = fraction >= 1 && clause.endMs !== undefined;
    const part = clause.failed ? "" : isWhole ? clause.text : wordsWithin(clause.text, Math.min(fraction, 0.999));
    heard += part;
    if (!isWhole) {
      rest.push({
        text: clause.text.slice(part.length),
        startMs: Math.max(0, clause.startMs - playedMs),
        endMs: clause.endMs === undefined ? undefined : Math.max(0, clause.endMs - playedMs),
        ...(clause.failed && { failed: true }),
      });
    }
  }
  return { heard: heard.trim(), rest };
}
