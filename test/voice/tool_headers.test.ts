import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createEncryption } from "#store/encryption.ts";
import { json } from "#store/sql.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { sealStoredHeaders } from "#voice/header_secrets.ts";

const agents = "/v1/agents/voice/agents";
const planted = "planted-secret-of-a-tool-9f2c";

const configOf = (value: string, over: object = {}) => ({
  tools: [{ name: "find_room", url: "https://pms.example/rooms", headers: [{ key: "X-Api-Key", value }] }],
  mcp_servers: [{ name: "pms", url: "https://pms.example/mcp", headers: [{ key: "x-key", value: "short" }] }],
  ...over,
});

describe("headers of an agent's tools", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());

  const call = (method: string, path: string, body?: unknown) =>
    api.call(method, path, { token: api.owner.token, ...(body !== undefined && { body }) });
  const create = (config: object) => call("POST", agents, { name: "Desk", project_id: api.projectId, config });

  /** What a call of the agent is opened with. */
  async function openedConfig(agentId: string, over: object = {}) {
    const reserved = await call("POST", `${agents}/${agentId}/calls/websocket`, over);
    const opened = await api.internal("POST", `/internal/calls/${reserved.body.data.call_id}/open`, {
      gateway_id: "g1",
    });
    return opened.body.config;
  }

  it("are shown masked, kept sealed, and opened for a call alone", async () => {
    const created = await create(configOf(planted));
    assert.equal(created.status, 201);
    const { id } = created.body.data;
    const shown = { key: "X-Api-Key", value: "********9f2c" };
    assert.deepEqual(created.body.data.config.tools[0].headers, [shown]);
    assert.deepEqual(created.body.data.config.mcp_servers[0].headers, [{ key: "x-key", value: "********" }]);
    const read = await call("GET", `${agents}/${id}`);
    assert.deepEqual(read.body.data, created.body.data);
    const [row] = await api.sql<{ dump: string }[]>`
      select row_to_json(voice_agent)::text as dump from voice_agent where id = ${id}`;
    assert.ok(row && !row.dump.includes(planted) && !row.dump.includes("planted"));
    const opened = await openedConfig(id);
    assert.equal(opened.tools[0].headers[0].value, planted);
    assert.equal(opened.mcp_servers[0].headers[0].value, "short");
  });

  it("survive that the configuration is read, edited and written again", async () => {
    const { id, config } = (await create(configOf(planted))).body.data;
    const edited = await call("PATCH", `${agents}/${id}`, { config: { ...config, welcome_message: "Hello" } });
    assert.deepEqual([edited.status, edited.body.data.config.tools], [200, config.tools]);
    assert.equal((await openedConfig(id)).tools[0].headers[0].value, planted);
    const renamed = await call("PATCH", `${agents}/${id}`, { name: "Night desk" });
    assert.equal(renamed.status, 200);
    assert.equal((await openedConfig(id)).tools[0].headers[0].value, planted);
    await call("PATCH", `${agents}/${id}`, { config: configOf("another-secret-of-a-tool") });
    assert.equal((await openedConfig(id)).tools[0].headers[0].value, "another-secret-of-a-tool");
  });

  it("refuse a masked value that stands for nothing stored", async () => {
    const created = await create(configOf("********9f2c"));
    assert.equal(created.status, 400);
    assert.deepEqual(Object.keys(created.body.error.details), ["config.tools.0.headers.0.value"]);
    const { id, config } = (await create(configOf(planted))).body.data;
    const [tool] = config.tools;
    const moved = { tools: [{ ...tool, name: "other" }] };
    assert.equal((await call("PATCH", `${agents}/${id}`, { config: moved })).status, 400);
    assert.equal((await openedConfig(id)).tools[0].headers[0].value, planted, "nothing is lost");
  });

  it("may hold variables of the call", async () => {
    const { id } = (await create(configOf("Guest {{guest}}"))).body.data;
    assert.equal((await openedConfig(id, { variables: { guest: "7" } })).tools[0].headers[0].value, "Guest 7");
  });

  it("that were stored in plain text are sealed when the api starts, by however many at once", async () => {
    const { id } = (await create({})).body.data;
    const config = configOf(planted);
    await api.sql`update voice_agent set config = ${json(api.sql, config)} where id = ${id}`;
    const encryption = createEncryption("encryption-key-of-tests");
    await Promise.all([sealStoredHeaders(api.sql, encryption), sealStoredHeaders(api.sql, encryption)]);
    const [row] = await api.sql<{ dump: string }[]>`
      select row_to_json(voice_agent)::text as dump from voice_agent where id = ${id}`;
    assert.ok(row && !row.dump.includes("planted"));
    assert.equal((await openedConfig(id)).tools[0].headers[0].value, planted);
  });

  it("and tools are told apart by their names, and lead to no private address", async () => {
    const tool = { name: "a", url: "https://pms.example" };
    const refused: [field: string, config: object][] = [
      ["config.tools.1.name", { tools: [tool, tool] }],
      ["config.client_tools.0.name", { tools: [tool], client_tools: [{ name: "a" }] }],
      ["config.tools.0.name", { tools: [{ ...tool, name: "end_call" }] }],
      ["config.tools.0.url", { tools: [{ ...tool, url: "http://127.0.0.1/{room}" }] }],
      ["config.mcp_servers.0.url", { mcp_servers: [{ name: "m", url: "http://10.0.0.1/mcp" }] }],
      [
        "config.tools.0.headers.1.key",
        {
          tools: [
            {
              ...tool,
              headers: [
                { key: "X-A", value: "1" },
                { key: "x-a", value: "2" },
              ],
            },
          ],
        },
      ],
      ["config.tools.0.headers.0.key", { tools: [{ ...tool, headers: [{ key: "x a", value: "1" }] }] }],
      [
        "config.mcp_servers.0.connection_id",
        {
          mcp_servers: [{ name: "m", url: "https://a.example", connection_id: "00000000-0000-4000-8000-000000000000" }],
        },
      ],
    ];
    for (const [field, config] of refused) {
      const answer = await create(config);
      assert.equal(answer.status, 400, field);
      assert.ok(field in answer.body.error.details, `${field} in ${JSON.stringify(answer.body)}`);
    }
  });
});
