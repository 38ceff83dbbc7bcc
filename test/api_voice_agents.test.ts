import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type ApiHarness, openApiHarness } from "./api_harness.ts";

const agents = "/v1/agents/voice/agents";

describe("voice agents", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());

  const as = (token: string, body?: unknown) => ({ token, ...(body !== undefined && { body }) });
  const create = (body: object = {}) =>
    api.call("POST", agents, as(api.owner.token, { name: "Desk", project_id: api.projectId, config: {}, ...body }));

  it("answers 201 with every field of the interface document", async () => {
    const config = { instructions: "Be kind", advanced: { eos_silence_ms: 300 }, llm: { provider: "echo" } };
    const created = await create({ description: "at night", config });
    assert.equal(created.status, 201);
    assert.deepEqual(Object.keys(created.body.data).sort(), [
      "agent_name",
      "allowed_origins",
      "config",
      "created_at",
      "deleted_at",
      "deploy_error",
      "deployed_at",
      "description",
      "id",
      "name",
      "phone_numbers",
      "project_id",
      "status",
      "updated_at",
    ]);
    assert.deepEqual(created.body.data.config, config);
    assert.equal(created.body.data.status, "draft");
    const read = await api.call("GET", `${agents}/${created.body.data.id}`, as(api.owner.token));
    assert.deepEqual(read, { ...read, status: 200, body: created.body });
  });
});
