/** What is written to take for ever is given up; what people write is far from that. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EvaluationError, equalValues, evaluationLimits, newBudget } from "./evaluation_budget.ts";
import { includesText, matches, patternProblem } from "./patterns.ts";
import { referenceProblem, resolveReference, resolveValue } from "./references.ts";
import { renderTemplate, templateProblem } from "./templates.ts";

const budgetOf = () => newBudget("the test", evaluationLimits.nodeStepsMax);
const many = Array.from({ length: 1000 }, (_, i) => ({ id: i, name: `Guest ${i}`, tags: ["a", "b", "c"] }));
/** As large as one node's output may be. */
const large = Array.from({ length: 60_000 }, (_, i) => [i]);

describe("a reference", () => {
  const context = { input: { rooms: [{ name: "Blue", "a b": 1 }, { name: "Red" }], large }, nodes: {}, run: {} };
  const found = (path: string) => resolveReference(path, context, budgetOf());

  it("finds the same with and without the parser", () => {
    const pairs: [string, unknown][] = [
      ["$.input.rooms[1].name", "Red"],
      ["$.input.rooms[-1].name", "Red"],
      ["$['input'].rooms[0]['a b']", 1],
      ['$["input"].rooms[0]["a b"]', 1],
      ["$.input.rooms[7].name", undefined],
      ["$.input.rooms.length", undefined],
      ["$.input.rooms.name", undefined],
      ["$.input[0]", undefined],
      ["$.input.constructor", undefined],
      ["$.input.rooms[?@.name=='Red'].name", "Red"],
      ["$.input.rooms[*]", context.input.rooms[0]],
      ["$..name", "Blue"],
      ["$", context],
    ];
    for (const [path, value] of pairs) assert.deepEqual(found(path), value, path);
  });

  it("hands on the values themselves", () => {
    assert.equal(found("$.input.rooms[*]"), context.input.rooms[0]);
    assert.equal(found("$.input.rooms"), context.input.rooms);
  });

  it("searches all of a large output", () => {
    assert.equal(resolveReference("$.input[?@.id==999].name", { input: many }, budgetOf()), "Guest 999");
    assert.equal(found("$.input.large[59999][0]"), 59_999);
  });

  const hostile = [
    "$.input..*..*..*",
    "$..[?count($..*)>1]",
    "$.input.large[?count($.input.large[*])>1]",
    "$['input','input','input']['large','large','large'][*,*,*,*][*,*,*]",
    "$.input.large[?$.input.large==$.input.large]",
  ];
  for (const path of hostile) {
    it(`is given up when it looks at too much: ${path}`, () => assert.throws(() => found(path), EvaluationError));
  }

  it("is given up over texts that it measures again and again", () => {
    const texts = { input: { text: "x".repeat(250_000), list: Array.from({ length: 5000 }, () => 1) } };
    assert.throws(() => resolveReference("$.input.list[?length($.input.text)>3]", texts, budgetOf()), EvaluationError);
  });

  it("is given up when all of the context is handed on again and again", () => {
    const inputs = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`a${i}`, "$.input"]));
    assert.throws(() => resolveValue(inputs, context, budgetOf()), EvaluationError);
  });

  it("may have one descent, wherever the second one hides", () => {
    assert.equal(referenceProblem("$.input..name"), undefined);
    assert.equal(referenceProblem("$.input['..']['a..b']..name"), undefined);
    assert.match(referenceProblem("$.input..*..*..*") ?? "", /position 10/);
    assert.match(referenceProblem("$.input[?@..a]..b") ?? "", /position 14/);
    assert.match(referenceProblem("$.input['it\\'s']..a..b") ?? "", /position 19/);
  });
});

describe("a template", () => {
  it("renders a list of a thousand guests with their tags", () => {
    const text = renderTemplate("{{#g}}{{name}}: {{#tags}}{{.}} {{/tags}}\n{{/g}}", { g: many }, budgetOf());
    assert.equal(text.split("\n").length, 1001);
  });

  const hostile: [string, string, object][] = [
    ["sections in sections", "{{#a}}{{#a}}{{#a}}{{#a}}x{{/a}}{{/a}}{{/a}}{{/a}}", { a: many }],
    ["a long text again and again", `{{#a}}${"x".repeat(90_000)}{{/a}}`, { a: many }],
    ["a large value again and again", "{{#a}}{{large}}{{/a}}", { a: many, large }],
    ["a large raw value again and again", "{{#a}}{{{large}}}{{/a}}", { a: many, large }],
  ];
  for (const [what, template, view] of hostile) {
    it(`is given up for ${what}`, () =>
      assert.throws(() => renderTemplate(template, view, budgetOf()), EvaluationError));
  }

  it("is refused when it is not closed, or too deep", () => {
    assert.equal(templateProblem("{{#a}}{{b}}{{/a}}"), undefined);
    assert.match(templateProblem("{{#a}}") ?? "", /not closed/);
    assert.match(templateProblem(`${"{{#a}}".repeat(7000)}${"{{/a}}".repeat(7000)}`) ?? "", /at most 20/);
  });
});

describe("a pattern", () => {
  it("is what RE2 takes, of a bounded size", () => {
    for (const good of [
      "(?i)\\b(euros?|late check-out)\\b",
      "[a-z]{1,40}@[a-z.]{1,100}",
      "^[^\\]]+$",
      "\\p{Greek}{3}",
    ]) {
      assert.equal(patternProblem(good), undefined, good);
    }
    assert.match(patternProblem("(?<=a)b") ?? "", /RE2/);
    assert.match(patternProblem("x".repeat(1001)) ?? "", /at most 1000 characters/);
    for (const large of [
      "\\pL{1000}".repeat(20),
      "((a{20}){20}){20}",
      "(ab|cd){900}",
      "[{(]{999}{9}",
      "(a\\Q)\\E){999}b{999}",
    ]) {
      assert.match(patternProblem(large) ?? "", /smaller repeat counts|RE2/, large);
    }
  });

  it("is not tried on a text that is too long for it", () => {
    const pattern = "(?:a?){100}a{100}$";
    assert.equal(patternProblem(pattern), undefined);
    assert.equal(matches(pattern, "a".repeat(200), budgetOf()), true);
    assert.throws(() => matches(pattern, "ab".repeat(100_000), budgetOf()), EvaluationError);
    assert.equal(matches("euros", "x".repeat(200_000), budgetOf()), false);
  });
});

describe("a comparison", () => {
  it("of large values counts, and is given up", () => {
    const other = structuredClone(large.slice(0, 1000));
    assert.equal(equalValues(large.slice(0, 1000), other, budgetOf()), true);
    assert.equal(equalValues({ a: 1, b: [2] }, { b: [2], a: 1 }, budgetOf()), true);
    assert.equal(equalValues({ a: 1 }, { b: 1 }, budgetOf()), false);
    assert.equal(equalValues([1], { 0: 1 }, budgetOf()), false);
    assert.throws(() => {
      const budget = budgetOf();
      for (let i = 0; i < 400; i += 1) equalValues(large.slice(0, 1000), other, budget);
    }, EvaluationError);
  });

  it("of a long repetitive text in another is not begun", () => {
    const whole = "a".repeat(250_000);
    assert.equal(includesText(whole, "b", budgetOf()), false);
    const part = `${"a".repeat(60_000)}b${"a".repeat(60_000)}`;
    assert.throws(() => includesText(whole, part, budgetOf()), EvaluationError);
  });
});
