/** Text as the embedded synthesizer can read it: plain ASCII. What it has no letters for is left out. */

const signs: readonly [RegExp, string][] = [
  [/[\u2018\u2019\u02bc]/g, "'"],
  [/[\u201c\u201d\u00ab\u00bb]/g, '"'],
  [/\s*[\u2012-\u2015]\s*/g, ", "],
  [/\u2026/g, "..."],
  [/€\s?(\d[\d.,]*\d|\d)/g, "$1 euros"],
  [/£\s?(\d[\d.,]*\d|\d)/g, "$1 pounds"],
  [/€/g, " euros "],
  [/£/g, " pounds "],
  [/(\d)\s?°\s?([CF])\b/g, "$1 degrees $2"],
  [/°/g, " degrees "],
  [/&/g, " and "],
  [/ß/g, "ss"],
  [/æ/gi, "ae"],
  [/œ/gi, "oe"],
  [/ø/gi, "o"],
  [/ł/gi, "l"],
  [/[*_`~^|<>{}\\]/g, " "],
];

/** `text` to be synthesized, or an empty one where nothing in it can be spoken. */
export function spokenText(text: string): string {
  let spoken = text;
  for (const [sign, words] of signs) spoken = spoken.replace(sign, words);
  spoken = spoken
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^\x20-\x7e]+/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  return /[A-Za-z0-9]/.test(spoken) ? spoken : "";
}
