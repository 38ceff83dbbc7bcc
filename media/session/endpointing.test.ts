import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { wordsFor } from "../words/words_for.ts";
import { endingOf, silenceFor } from "./endpointing.ts";

describe("what the words say about the end of a turn", () => {
  const said: Record<string, { whole: string[]; open: string[]; neither: string[] }> = {
    en: {
      whole: ["I need a room.", "Is it quiet?", 'He said "no."'],
      open: ["I need a room and", "We are, um,", "It is zero three zero", "030 12", "I'd like the."],
      neither: ["I need a room", "A table for two", "", "?!"],
    },
    de: {
      whole: ["Ich brauche ein Zimmer."],
      open: ["Ich brauche ein Zimmer und", "Das ist ähm", "null drei null"],
      neither: ["Zwei"],
    },
    fr: {
      whole: ["C'est calme ?"],
      open: ["Je voudrais une chambre et", "Alors euh", "zéro un deux"],
      neither: ["Une chambre"],
    },
    es: {
      whole: ["Quiero una habitación."],
      open: ["Quiero una habitación pero", "cero uno dos"],
      neither: ["Dos"],
    },
    it: { whole: ["Vorrei una camera."], open: ["Vorrei una camera ma", "zero uno due"], neither: ["Due"] },
    nl: { whole: ["Ik wil een kamer."], open: ["Ik wil een kamer en", "nul een twee"], neither: ["Twee"] },
    pt: { whole: ["Quero um quarto."], open: ["Quero um quarto mas", "zero um dois"], neither: ["Dois"] },
  };
  for (const [language, { whole, open, neither }] of Object.entries(said)) {
    it(`is told in ${language}`, () => {
      const endings = [...whole, ...open, ...neither].map((text) => endingOf(text, wordsFor(language)));
      assert.deepEqual(endings, [
        ...whole.map(() => "whole"),
        ...open.map(() => "open"),
        ...neither.map(() => undefined),
      ]);
    });
  }

  it("shortens and lengthens the wait, the latter up to 2 s", () => {
    assert.deepEqual(
      [silenceFor("whole", 500), silenceFor(undefined, 500), silenceFor("open", 500), silenceFor("open", 1500)],
      [300, 500, 1000, 2000],
    );
    assert.equal(silenceFor("open", 3000), 3000);
  });
});
