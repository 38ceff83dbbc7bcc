import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { spokenText } from "./spoken_text.ts";

describe("spoken text", () => {
  const table: [text: string, spoken: string][] = [
    ["Café Zoë, “naïve”", 'Cafe Zoe, "naive"'],
    ["It’s 12.50 € or €7", "It's 12.50 euros or 7 euros"],
    ["£3 & 20 °C", "3 pounds and 20 degrees C"],
    ["yes — no", "yes, no"],
    ["**bold** _text_", "bold text"],
    ["Straße in Łódź", "Strasse in lodz"],
    ["你好", ""],
    ["...", ""],
    [" a\n\tb ", "a b"],
  ];
  for (const [text, spoken] of table) {
    it(`reads ${JSON.stringify(text)}`, () => assert.equal(spokenText(text), spoken));
  }

  it("is plain ASCII, whatever comes in", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => assert.match(spokenText(text), /^[\x20-\x7e]*$/)));
  });
});
