import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { gapsOf } from "./gaps.ts";

const described = { description: "words" };
const operation = (schema: object) => ({
  summary: "S",
  parameters: [],
  responses: { 200: { content: { "application/json": { schema } } } },
});
const documentWith = (get: object, schemas: object) =>
  ({ paths: { "/v1/a": { get } }, components: { schemas } }) as unknown as Parameters<typeof gapsOf>[0];

describe("what a document leaves unsaid", () => {
  it("is nothing where each reply has a name and each field has words, or those of the schema it refers to", () => {
    const schemas = {
      A: { properties: { one: described, other: { $ref: "#/components/schemas/B" } } },
      B: { ...described, properties: {} },
    };
    assert.deepEqual(gapsOf(documentWith(operation({ $ref: "#/components/schemas/A" }), schemas)), []);
  });

  it("is told by place: summary, parameter, reply, fields at every depth", () => {
    const get = { ...operation({ type: "object" }), summary: " ", parameters: [{ name: "q" }] };
    const items = { properties: { deep: {} } };
    const schemas = {
      A: { properties: { list: { ...described, items }, other: { $ref: "#/components/schemas/B" } } },
      B: {},
    };
    assert.deepEqual(gapsOf(documentWith(get, schemas)), [
      "GET /v1/a: no summary",
      "GET /v1/a: no words for parameter q",
      "GET /v1/a: no named schema of reply 200",
      "A.list.deep: no words",
      "A.other: no words",
    ]);
  });
});
