import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Validator } from "@seriousme/openapi-schema-validator";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import {
  answerChecker,
  exampleNamesOf,
  gapsIn,
  type OpenApiDocument,
  operationsOf,
  sendExample,
  shownIn,
} from "#test/kit/open_api_examples.ts";
import { openTaxSender } from "#test/kit/tax/open_api_sender.ts";

describe("the tax service's OpenAPI document", () => {
  let api: ApiHarness;
  let document: OpenApiDocument;

  before(async () => {
    api = await openApiHarness();
    document = (await api.call("GET", "/openapi/tax.json")).body;
  });
  after(() => api.close());

  it("is valid by OpenAPI's own schema of 3.1", async () => {
    const validator = new Validator();
    const result = await validator.validate(structuredClone(document) as unknown as Record<string, unknown>);
    assert.deepEqual(result.errors ?? [], []);
    assert.equal(result.valid, true);
    assert.equal(validator.version, "3.1");
  });

  it("says of every route what it is, takes and answers, how it refuses, and shows an example", () => {
    assert.ok(operationsOf(document).length > 25);
    assert.deepEqual(gapsIn(document), []);
    const ids = operationsOf(document).map(({ operationId }) => operationId);
    assert.equal(new Set(ids).size, ids.length);
  });

  it("has examples that all work, with answers as documented", async () => {
    const check = answerChecker(document);
    const problems: string[] = [];
    for (const operation of operationsOf(document)) {
      for (const name of exampleNamesOf(operation)) {
        const where = `${operation.method} ${operation.path} ${name}`;
        try {
          const sent = await sendExample(document, operation, name, await openTaxSender(api, document));
          if (sent.status !== sent.expectedStatus) problems.push(`${where}: ${shownIn(sent)}`);
          const refusal = sent.shownAnswer;
          if (sent.status >= 400 && !isDeepStrictEqual(sent.body, refusal)) problems.push(`${where}: ${shownIn(sent)}`);
          for (const problem of check(operation, sent)) problems.push(`${where}: ${problem}`);
        } catch (error) {
          problems.push(`${where}: ${(error as Error).message}`);
        }
      }
    }
    assert.deepEqual(problems, []);
  });

  it("shows answers that fit its schemas", () => {
    const check = answerChecker(document);
    const problems: string[] = [];
    let shown = 0;
    for (const operation of operationsOf(document)) {
      for (const [status, reply] of Object.entries(operation.responses)) {
        for (const [mediaType, media] of Object.entries(reply.content ?? {})) {
          for (const [name, { value }] of Object.entries(media.examples ?? {})) {
            shown++;
            for (const problem of check(operation, { status: Number(status), mediaType, body: value })) {
              problems.push(`${operation.method} ${operation.path} ${name}: ${problem}`);
            }
          }
        }
      }
    }
    assert.ok(shown > 5);
    assert.deepEqual(problems, []);
  });
});

describe("a document with gaps", () => {
  it("is told them", () => {
    const responses = { 200: { content: { "application/json": { schema: {} } } }, 404: {} };
    const one = { operationId: "get_a", summary: "One", security: [], parameters: [], responses };
    assert.deepEqual(gapsIn({ paths: { "/v1/a": { get: one } } }), ["GET /v1/a: no example"]);
    const bare = { ...one, summary: "", responses: {} };
    assert.equal(gapsIn({ paths: { "/v1/a": { post: bare } } }).length, 5);
  });

  it("does not pass with an answer that has other fields, types or statuses", () => {
    const schema = { type: "object", required: ["id"], properties: { id: { type: "string" } } };
    const responses = { 200: { content: { "application/json": { schema } } } };
    const operation = { operationId: "get_a", summary: "One", security: [], parameters: [], responses };
    const document = { paths: { "/v1/a": { get: operation } } };
    const problemsOf = (body: object, status = 200) =>
      answerChecker(document)(
        { ...operation, method: "GET", path: "/v1/a" },
        { status, mediaType: "application/json", body: body as never },
      );
    assert.deepEqual(problemsOf({ id: "a" }), []);
    assert.equal(problemsOf({ id: 1 }).length, 1);
    assert.equal(problemsOf({}).length, 1);
    assert.equal(problemsOf({ id: "a", more: 1 }).length, 1);
    assert.equal(problemsOf({ id: "a" }, 202).length, 1);
  });
});
