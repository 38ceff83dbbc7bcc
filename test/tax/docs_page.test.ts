import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { loadRuleset } from "#tax/rules/rule_files.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { type DocsReader, openDocsReader, readProjectFile } from "#test/kit/docs_reader.ts";
import { withCoverage } from "#test/kit/tax/coverage_table.ts";

const page = readProjectFile("docs/tax.md");

describe("docs/tax.md", () => {
  let api: ApiHarness;
  let reader: DocsReader;

  before(async () => {
    api = await openApiHarness();
    reader = await openDocsReader(api);
  });
  after(async () => {
    reader.close();
    await api.close();
  });

  it("shows what its commands print", async () => {
    const signedUp = await api.call("POST", "/v1/auth/signup", {
      body: { email: "you@inn.example", password: "a long enough one" },
    });
    assert.ok((await reader.follow(page, { API: reader.url, TOKEN: signedUp.body.access_token })) >= 5);
  });

  it("says with the README how much is known, as it is: npm run tax:coverage", () => {
    const readme = readProjectFile("README.md");
    assert.deepEqual(withCoverage(loadRuleset(), { readme, page }), { readme, page });
    assert.match(readme, /most visited destinations \d+ answer/);
    assert.match(page, /^\| 100 \| \d{4}-\d{2}-\d{2} \| \d+ \| \d+ \| \d+ \|$/m);
  });
});
