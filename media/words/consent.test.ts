import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { agrees } from "./consent.ts";
import { wordsFor } from "./words_for.ts";

describe("agreement", () => {
  for (const [language, yes, no] of [
    [
      "en",
      ["Yes.", "Yes, please book it", "Sure — go ahead!", "that’s right"],
      ["No.", "Yes, but not today", "Hmm", "Are you sure?", "Please tell me more"],
    ],
    ["de-AT", ["Ja, gerne", "Machen Sie das!", "In Ordnung"], ["Nein", "Ja, aber nicht heute", "Wie bitte"]],
    ["fr", ["Oui.", "Bien sûr, allez-y", "D’accord"], ["Non", "Oui, mais pas ce soir"]],
    ["es", ["Sí, por favor", "Claro que sí, para dos"], ["No", "Sí, pero mejor mañana"]],
    ["it", ["Sì, va bene", "D'accordo"], ["No", "Sì, ma non oggi"]],
    ["nl", ["Ja hoor", "Doe maar"], ["Nee", "Ja, maar niet vandaag"]],
    ["pt", ["Sim", "Pode ser"], ["Não", "Pode repetir", "Sim, mas não hoje"]],
  ] as const) {
    it(`is told from doubt in ${language}`, () => {
      const words = wordsFor(language);
      for (const text of yes) assert.ok(agrees(text, words), text);
      for (const text of [...no, ""]) assert.ok(!agrees(text, words), text);
    });
  }
});
