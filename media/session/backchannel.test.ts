import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { wordsFor } from "../words/words_for.ts";
import { Backchannels, isQuestionAt } from "./backchannel.ts";

describe("backchannels", () => {
  const said: Record<string, { listens: string[]; speaks: string[] }> = {
    en: {
      listens: ["Mm-hm.", "Yeah, okay", "Right.", "I see", "uh-huh"],
      speaks: ["Stop", "Wait", "No", "Yeah but why"],
    },
    de: { listens: ["Ja, genau", "Mhm", "Alles klar!", "Ach so"], speaks: ["Nein", "Moment", "Ja aber", "Stopp"] },
    fr: { listens: ["D'accord", "Oui oui", "Très bien", "Ah bon"], speaks: ["Non", "Attendez", "Oui mais"] },
    es: { listens: ["Sí, sí", "Vale", "De acuerdo", "Ajá"], speaks: ["No", "Espere", "Sí pero"] },
    it: { listens: ["Va bene", "Sì", "Ho capito", "D'accordo"], speaks: ["No", "Aspetti", "Sì ma"] },
    pt: { listens: ["Está bem", "Sim, sim", "Pois é", "Certo"], speaks: ["Não", "Espere", "Sim mas"] },
    nl: { listens: ["Ja hoor", "Precies", "Oké", "Dat klopt"], speaks: ["Nee", "Wacht", "Ja maar"] },
  };
  for (const [language, { listens, speaks }] of Object.entries(said)) {
    it(`are told from words that want the floor: ${language}`, () => {
      const backchannels = new Backchannels(wordsFor(language));
      assert.deepEqual(
        [...listens, ...speaks].filter((text) => backchannels.has(text, false)),
        listens,
      );
    });
  }

  it("are answers after a question, where they can be, and are never long", () => {
    const backchannels = new Backchannels(wordsFor("en"));
    assert.deepEqual(
      ["Yes", "okay", "all right", "uh-huh", "I see", "hmm"].map((text) => backchannels.has(text, true)),
      [false, false, false, false, true, true],
    );
    assert.equal(backchannels.has("yeah yeah yeah yeah", false), false);
    assert.equal(backchannels.has("", false), false);
  });

  it("may be an agent's own", () => {
    const backchannels = new Backchannels(wordsFor("en"), { own: ["Roger that"] });
    assert.deepEqual([backchannels.has("roger that", false), backchannels.has("okay", false)], [true, false]);
  });

  it("may be whatever has too few words, unless it stops the agent or answers it", () => {
    const backchannels = new Backchannels(wordsFor("en"), { minInterruptWords: 3 });
    const few = ["The garden", "", "The garden room", "Please stop", "Excuse me!"];
    assert.deepEqual(
      few.map((text) => backchannels.isTooFew(text, false)),
      [true, false, false, false, false],
    );
    assert.equal(backchannels.isTooFew("The garden", true), false);
    assert.equal(new Backchannels(wordsFor("en")).isTooFew("So", false), false);
    for (const language of ["de", "fr", "es", "it", "nl", "pt"]) {
      const words = wordsFor(language);
      const others = new Backchannels(words, { minInterruptWords: 5 });
      assert.deepEqual(
        words.stops.filter((stop) => others.isTooFew(`${stop}!`, false)),
        [],
      );
    }
  });
});

describe("a question", () => {
  const text = "We have a room. Shall I book it for you? It costs eighty euros. Breakfast is extra.";
  for (const [heard, isAsked] of [
    ["We have", false],
    ["We have a room. Shall I book", true],
    ["We have a room. Shall I book it for you? It costs", true],
    ["We have a room. Shall I book it for you? It costs eighty euros. Breakfast", false],
    [text, false],
  ] as const) {
    it(`${isAsked ? "is" : "is not"} what was heard last at "${heard.slice(-20)}"`, () => {
      assert.equal(isQuestionAt(text, heard.length), isAsked);
    });
  }
});
