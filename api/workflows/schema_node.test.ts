import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SchemaNode } from "#contracts/workflow.ts";
import { schemaProblems } from "./schema_node.ts";

describe("a schema node", () => {
  const schema: SchemaNode = {
    type: "object",
    properties: {
      question: { type: "string", required: true },
      guests: { type: "array", items: { type: "object", properties: { age: { type: "integer", required: true } } } },
      mood: { type: "string", enum: ["calm", "cross"] },
      extra: { type: "any" },
      place: { type: "object", enum: [{ floor: 1, doors: [1, 2] }] },
    },
  };
  const check = (value: unknown) => schemaProblems(schema, value, "input");

  it("lets unknown fields and any value of any pass", () => {
    const place = { doors: [1, 2], floor: 1 };
    assert.deepEqual(check({ question: "?", guests: [{ age: 3 }], mood: "calm", extra: [1], place, more: true }), {});
  });

  it("names each wrong field by its path", () => {
    assert.deepEqual(
      check({ guests: [{ age: 3 }, {}, { age: "x" }], mood: "odd", place: { floor: 1, doors: [2, 1] } }),
      {
        "input.question": "Expected a value: the field is required",
        "input.guests.1.age": "Expected a value: the field is required",
        "input.guests.2.age": "Expected integer",
        "input.mood": 'Expected one of "calm", "cross"',
        "input.place": 'Expected one of {"floor":1,"doors":[1,2]}',
      },
    );
  });

  it("tells every type from every other", () => {
    const examples: Record<string, unknown[]> = {
      string: ["", "a"],
      number: [0.5],
      integer: [1, -0, 1e20],
      boolean: [true, false],
      object: [{}],
      array: [[]],
      any: [null],
    };
    for (const type of Object.keys(examples) as SchemaNode["type"][]) {
      for (const [of, values] of Object.entries(examples)) {
        const fits = type === "any" || of === type || (type === "number" && of === "integer");
        for (const value of values) {
          assert.deepEqual(schemaProblems({ type }, value, "v"), fits ? {} : { v: `Expected ${type}` });
        }
      }
    }
  });

  it("is read from the value itself, not from what all objects have", () => {
    const properties = { constructor: { type: "string", required: true } } as unknown as Record<string, SchemaNode>;
    assert.deepEqual(schemaProblems({ type: "object", properties }, {}, "v"), {
      "v.constructor": "Expected a value: the field is required",
    });
  });

  it("says that a check would take too long, instead of taking long", () => {
    const choices = Array.from({ length: 1000 }, (_, i) => [i]);
    const value = Array.from({ length: 50_000 }, () => [999]);
    const [at, message] =
      Object.entries(schemaProblems({ type: "array", items: { type: "any", enum: choices } }, value, "v")).at(-1) ?? [];
    assert.equal(at, "v");
    assert.match(message ?? "", /at most 1000000 steps/);
  });
});
