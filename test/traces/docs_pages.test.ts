import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { openAppClient } from "#test/kit/app_client.ts";
import { type DocsReader, openDocsReader, readProjectFile } from "#test/kit/docs_reader.ts";

describe("the commands of", () => {
  let api: ApiHarness;
  let reader: DocsReader;
  let environment: Record<string, string>;

  before(async () => {
    api = await openApiHarness();
    reader = await openDocsReader(api);
    const { accessKey } = await openAppClient(api);
    environment = { API_URL: reader.url, PROJECT_ID: api.projectId, PAT: api.owner.token, KEY: accessKey };
  });
  after(async () => {
    reader.close();
    await api.close();
  });

  /** Its requests all succeed. */
  const succeeding = (page: string) => readProjectFile(page).replaceAll("curl ", "curl --fail --no-progress-meter ");

  it("docs/collector.md work", async () => {
    const page = succeeding("docs/collector.md").replaceAll("http://127.0.0.1:8080", reader.url);
    assert.ok((await reader.follow(page, environment)) >= 3);
  });

  it("docs/traces.md work", async () => {
    assert.ok((await reader.follow(succeeding("docs/traces.md"), environment)) >= 2);
  });
});
