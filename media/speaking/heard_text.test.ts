import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { cutText, type SpokenClause, wordsWithin } from "./heard_text.ts";

const clauses: SpokenClause[] = [
  { text: "Good evening. ", startMs: 0, endMs: 1400 },
  { text: "How may I help you?", startMs: 1400, endMs: 3300 },
];

describe("heard text", () => {
  const cases: [playedMs: number, heard: string, rest: string[]][] = [
    [0, "", ["Good evening. ", "How may I help you?"]],
    [450, "Good", [" evening. ", "How may I help you?"]],
    [1400, "Good evening.", ["How may I help you?"]],
    [2100, "Good evening. How may", [" I help you?"]],
    [3300, "Good evening. How may I help you?", []],
    [9999, "Good evening. How may I help you?", []],
  ];
  for (const [playedMs, heard, rest] of cases) {
    it(`at ${playedMs} ms: "${heard}"`, () => {
      const cut = cutText(clauses, playedMs, 3300);
      assert.equal(cut.heard, heard);
      assert.deepEqual(
        cut.rest.map(({ text }) => text),
        rest,
      );
    });
  }

  it("times what is left from the cut on", () => {
    const { rest } = cutText(clauses, 2100, 3300);
    assert.deepEqual(rest, [{ text: " I help you?", startMs: 0, endMs: 1200 }]);
  });

  it("takes a clause that is still being synthesized as heard in part at most", () => {
    const open: SpokenClause[] = [{ text: "One two three", startMs: 0, endMs: undefined }];
    assert.equal(cutText(open, 500, 500).heard, "One two");
    assert.equal(cutText(open, 0, 0).heard, "");
  });

  it("takes a clause that failed as not heard, and as over", () => {
    const broken: SpokenClause[] = [
      { text: "One two. ", startMs: 0, endMs: 900 },
      { text: "Three four. ", startMs: 900, endMs: 1100, failed: true },
      { text: "Five six.", startMs: 1100, endMs: 2000 },
    ];
    assert.deepEqual(cutText(broken, 2000, 2000), { heard: "One two. Five six.", rest: [] });
    assert.deepEqual(
      cutText(broken, 1000, 2000).rest.map(({ text }) => text),
      ["Three four. ", "Five six."],
    );
  });

  it("loses no letter and never cuts inside of a word", () => {
    const words = fc.array(fc.constantFrom("a", "word", "and", "more,", "…", "日本"), { minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(fc.array(words, { minLength: 1, maxLength: 5 }), fc.nat(6000), (texts, playedMs) => {
        const timed = texts.map((text, i) => ({
          text: `${text.join(" ")} `,
          startMs: i * 1000,
          endMs: (i + 1) * 1000,
        }));
        const { heard, rest } = cutText(timed, playedMs, texts.length * 1000);
        const whole = timed.map(({ text }) => text).join("");
        const unheard = rest.map(({ text }) => text).join("");
        assert.equal(whole.replace(/\s/g, ""), (heard + unheard).replace(/\s/g, ""));
        if (heard && unheard.trim()) assert.match(whole.slice(heard.length), /^\s/);
      }),
    );
  });

  it("wordsWithin keeps whole words alone", () => {
    assert.equal(wordsWithin("one two three", 0.5), "one");
    assert.equal(wordsWithin("one two three", 1), "one two three");
    assert.equal(wordsWithin("one two three", -1), "");
  });
});
