import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { answering, openAppClient } from "#test/kit/app_client.ts";
import { type OpenApiDocument, operationsOf } from "#test/kit/open_api_examples.ts";
import { type Access, type DocumentName, matrix } from "./authorization_matrix.ts";

/** How a document says what the matrix says. */
const schemesOf: Readonly<Record<Access, readonly string[]>> = {
  anybody: [],
  token: ["personal_access_token"],
  person: ["access_token"],
  administrator: ["access_token"],
  program: ["access_token", "api_key"],
  app: ["access_key"],
  collector: ["access_key"],
};
/** On public apps alone: they have a matrix of their own. */
const ofPublicApps = ["run_token"];

describe("the matrix of who may call what", () => {
  let api: ApiHarness;
  let documents: Record<DocumentName, OpenApiDocument>;
  before(async () => {
    api = await openApiHarness();
    const client = await openAppClient(api);
    const app = await client.deploy(answering);
    documents = {
      "/openapi.json": (await api.call("GET", "/openapi.json")).body,
      "/openapi/tax.json": (await api.call("GET", "/openapi/tax.json")).body,
      "the collector's /openapi.json": (await api.call("GET", "/-/collector/openapi.json")).body,
      "an app's /openapi.json": (await client.call(app.host, "GET", "/openapi.json")).body,
    };
  });
  after(() => api.close());

  it("has a line for every operation of every document, and none besides", () => {
    for (const [name, document] of Object.entries(documents)) {
      const operations = operationsOf(document).map(({ method, path }) => `${method} ${path}`);
      assert.deepEqual(Object.keys(matrix[name as DocumentName]).sort(), operations.sort(), name);
    }
  });

  it("says what the documents say of credentials", () => {
    for (const [name, document] of Object.entries(documents)) {
      for (const { method, path, security } of operationsOf(document)) {
        const access = matrix[name as DocumentName][`${method} ${path}`];
        const told = security.flatMap((one) => Object.keys(one)).filter((scheme) => !ofPublicApps.includes(scheme));
        assert.deepEqual(told.sort(), access && schemesOf[access], `${method} ${path}`);
      }
    }
  });
});
