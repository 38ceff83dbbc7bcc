import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { clauseCharsMax, clausesOf, createClauseSplitter, splitClauses } from "./clauses.ts";

describe("clauses", () => {
  const table: [text: string, clauses: string[]][] = [
    ["Hello. How are you?", ["Hello. ", "How are you?"]],
    ["Dr. Brown is in. Mr. Green is not.", ["Dr. Brown is in. ", "Mr. Green is not."]],
    ["It is 3.50 euros. Breakfast is 12.90.", ["It is 3.50 euros. ", "Breakfast is 12.90."]],
    ["Open until 10 p.m. every day. Bye.", ["Open until 10 p.m. every day. ", "Bye."]],
    ["Open until 10 p.m. Then we close.", ["Open until 10 p.m. ", "Then we close."]],
    ["Room No. 12 is free. No. It is not.", ["Room No. 12 is free. ", "No. ", "It is not."]],
    ["Ask for J. Smith. He knows.", ["Ask for J. Smith. ", "He knows."]],
    ['He said "Stop." Then he left.', ['He said "Stop." ', "Then he left."]],
    ["1. First item\n2. Second item", ["1. First item\n", "2. Second item"]],
    ["Well, yes. Fine!", ["Well, yes. ", "Fine!"]],
    ["Good evening and welcome, you have reached us.", ["Good evening and welcome, ", "you have reached us."]],
    ["你好。请问您是谁？谢谢", ["你好。", "请问您是谁？", "谢谢"]],
    ["Meet me at 10:30 sharp.", ["Meet me at 10:30 sharp."]],
    ["Really?! Yes… no.", ["Really?! ", "Yes… ", "no."]],
    ["", []],
    ["  \n ", []],
  ];
  for (const [text, clauses] of table) {
    it(`cuts ${JSON.stringify(text)}`, () => assert.deepEqual(clausesOf(text), clauses));
  }

  it("gives a sentence as soon as the white space behind it is there", () => {
    const splitter = createClauseSplitter();
    assert.deepEqual(splitter.push("Good mor"), []);
    assert.deepEqual(splitter.push("ning."), []);
    assert.deepEqual(splitter.push(" "), ["Good morning. "]);
    assert.deepEqual(splitter.push("How are you"), []);
    assert.deepEqual(splitter.flush(), ["How are you"]);
  });

  it("ends the first clause at a comma, a later one only when it is long", () => {
    const first = "You have reached the front desk, ";
    const rest = "and we are glad that you called, because it has been a very quiet evening so far, ";
    assert.deepEqual(clausesOf(`${first}${rest}you know.`), [first, rest, "you know."]);
    assert.deepEqual(clausesOf(`Hi. ${first}thanks.`), ["Hi. ", `${first}thanks.`]);
  });

  it("streams", async () => {
    async function* deltas() {
      yield* ["One", ". Tw", "o. ", "Three"];
    }
    const clauses: string[] = [];
    for await (const clause of splitClauses(deltas())) clauses.push(clause);
    assert.deepEqual(clauses, ["One. ", "Two. ", "Three"]);
  });

  const piece = fc.oneof(
    fc.constantFrom(". ", ", ", "! ", "\n", " ", "  ", "Dr. ", "p.m. ", "No. ", "3.5", '." ', "…", "。", "😀", "a.m."),
    fc.string({ unit: "binary", maxLength: 8 }),
    fc.stringMatching(/^[A-Za-z]{1,12}$/),
    fc.constant("x".repeat(300)),
  );

  it("loses nothing, bounds each clause, and does not depend on how the text arrives", () => {
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 60 }),
        fc.array(fc.nat({ max: 40 }), { maxLength: 40 }),
        (pieces, cuts) => {
          const text = pieces.join("");
          const whole = clausesOf(text);
          const joined = whole.join("");
          assert.ok(text.startsWith(joined));
          assert.equal(text.slice(joined.length).trim(), "");
          for (const clause of whole) assert.ok(clause.length > 0 && clause.length <= clauseCharsMax);

          const splitter = createClauseSplitter();
          const streamed: string[] = [];
          let at = 0;
          for (const cut of cuts) {
            streamed.push(...splitter.push(text.slice(at, at + cut)));
            at += cut;
          }
          streamed.push(...splitter.push(text.slice(at)), ...splitter.flush());
          assert.deepEqual(streamed, whole);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("takes 100,000 characters without a stop", () => {
    const text = "a".repeat(100_000);
    assert.equal(clausesOf(text).join(""), text);
  });
});
