import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";

const agents = "/v1/agents/voice/agents";
const nowhere = "00000000-0000-4000-8000-000000000000";

describe("voice agents", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());

  const asOwner = (body?: unknown) => ({ token: api.owner.token, ...(body !== undefined && { body }) });
  const create = (body: object = {}) =>
    api.call("POST", agents, asOwner({ name: "Desk", project_id: api.projectId, config: {}, ...body }));
  const createId = async (body: object = {}): Promise<string> => (await create(body)).body.data.id;

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
    const read = await api.call("GET", `${agents}/${created.body.data.id}`, asOwner());
    assert.deepEqual([read.status, read.body.data], [200, created.body.data]);
  });

  it("keeps a configuration just as it was written, field order included", async () => {
    const text = '{"welcome_message":"Hi","advanced":{"max_tool_steps":2,"eos_silence_ms":200},"instructions":"x"}';
    const id = await createId({ config: JSON.parse(text) });
    const { body } = await api.call("GET", `${agents}/${id}`, asOwner());
    assert.equal(JSON.stringify(body.data.config), text);
  });

  it("saves what has no effect on its providers, and says so", async () => {
    const llm = { provider: "rules", temperature: 0.2, language: "en" };
    const config = { instructions: "Be kind", llm, tts: { language: "de", voice: "kal16" } };
    const created = await create({ config });
    assert.equal(created.status, 201);
    const paths = (body: { warnings: { path: string }[] }) => body.warnings.map(({ path }) => path);
    assert.deepEqual(paths(created.body), ["config.instructions", "config.llm.temperature", "config.tts.language"]);
    const more = {
      realtime: { model: "a" },
      recording_enabled: true,
      llm: { fallbacks: [{ provider: "rules", temperature: 1 }] },
    };
    assert.deepEqual(paths((await create({ config: more })).body), [
      "config.llm.fallbacks.0.temperature",
      "config.realtime",
      "config.recording_enabled",
    ]);
    const path = `${agents}/${created.body.data.id}`;
    const changed = await api.call("PATCH", path, asOwner({ config: { tts: { voice: "kal16" } } }));
    assert.deepEqual(paths(changed.body), []);
  });

  const badConfigs: [field: string, config: unknown][] = [
    ["config.advanced.eos_silence_ms", { advanced: { eos_silence_ms: 99 } }],
    ["config.advanced.idle_timeout_s", { advanced: { idle_timeout_s: 4 } }],
    ["config.advanced.surprise", { advanced: { surprise: 1 } }],
    ["config.surprise", { surprise: 1 }],
    ["config.mode", { mode: "realtime" }],
    ["config.mode", { mode: "telepathy" }],
    ["config.stt.provider", { stt: { model: "nova-3" } }],
    ["config.llm.provider", { llm: { provider: "nobody" } }],
    ["config.llm.temperature", { llm: { temperature: 2.5 } }],
    [
      "config.llm.options.rules.0.patterns.0",
      { llm: { options: { rules: [{ intent: "a", patterns: ["("], say: "b" }] } } },
    ],
    ["config.tts.options.surprise", { tts: { provider: "scripted", options: { surprise: 1 } } }],
    ["config.tools.0.url", { tools: [{ name: "a", url: "ftp://x" }] }],
    ["config.advanced.min_interrupt_words", { advanced: { min_interrupt_words: 6 } }],
    ["config.transfer", { transfer: { enabled: true } }],
    [
      "config.transfer.destinations.0.label",
      { transfer: { phone_number: "+4930123", destinations: [{ label: "default", phone_number: "+4930456" }] } },
    ],
    ["config.transfer.phone_number", { transfer: { phone_number: "0049" } }],
    ["config.realtime.provider", { realtime: { provider: "x" } }],
    ["config", "not an object"],
    ["config.welcome_message", { welcome_message: "a\0b" }],
    ["config.welcome_message", { welcome_message: "\ud800" }],
  ];
  for (const [field, config] of badConfigs) {
    it(`refuses ${JSON.stringify(config).slice(0, 70)} by the path ${field}`, async () => {
      for (const answer of [
        await create({ config }),
        await api.call("PATCH", `${agents}/${await createId()}`, asOwner({ config })),
      ]) {
        assert.equal(answer.status, 400);
        assert.equal(answer.body.error.code, "bad_request");
        assert.ok(field in answer.body.error.details, JSON.stringify(answer.body));
      }
    });
  }

  it("accepts idle_timeout_s 0 and 5, and refuses missing and unknown fields", async () => {
    for (const idle_timeout_s of [0, 5])
      assert.equal((await create({ config: { advanced: { idle_timeout_s } } })).status, 201);
    const answer = await api.call("POST", agents, asOwner({ surprise: 1 }));
    assert.deepEqual(answer.body.error.details, {
      surprise: "Unknown field",
      name: "Required",
      project_id: "Required",
      config: "Required",
    });
    assert.ok("name" in (await create({ name: "   " })).body.error.details);
    assert.ok(
      "allowed_origins.0" in (await create({ allowed_origins: ["https://a.example/path"] })).body.error.details,
    );
  });

  it("changes only what PATCH names, and replaces config as a whole", async () => {
    const id = await createId({ description: "before", config: { instructions: "a", welcome_message: "b" } });
    const changed = await api.call(
      "PATCH",
      `${agents}/${id}`,
      asOwner({ config: { instructions: "c" }, allowed_origins: ["https://WWW.example.com"] }),
    );
    assert.equal(changed.status, 200);
    assert.equal(changed.body.data.name, "Desk");
    assert.equal(changed.body.data.description, "before");
    assert.deepEqual(changed.body.data.config, { instructions: "c" });
    assert.deepEqual(changed.body.data.allowed_origins, ["https://www.example.com"]);
    const renamed = await api.call("PATCH", `${agents}/${id}`, asOwner({ name: "Night desk" }));
    assert.deepEqual(renamed.body.data.config, { instructions: "c" });
    assert.equal((await api.call("PATCH", `${agents}/${id}`, asOwner({ project_id: api.projectId }))).status, 400);
  });

  it("archives once, answers the same to racing and later deletes, and then refuses changes", async () => {
    const id = await createId();
    await api.sql`update voice_agent set phone_numbers = '{+4930123}' where id = ${id}`;
    const answers = await Promise.all([1, 2, 3].map(() => api.call("DELETE", `${agents}/${id}`, asOwner())));
    answers.push(await api.call("DELETE", `${agents}/${id}`, asOwner()));
    for (const { status, body } of answers) assert.deepEqual([status, body], [200, answers[0]?.body]);
    const archived = answers[0]?.body.data;
    assert.equal(archived.status, "archived");
    assert.ok(archived.deleted_at);
    assert.deepEqual(archived.phone_numbers, []);
    assert.equal((await api.call("GET", `${agents}/${id}`, asOwner())).status, 200);
    assert.equal((await api.call("PATCH", `${agents}/${id}`, asOwner({ name: "x" }))).status, 409);
    assert.equal((await api.call("POST", `${agents}/${id}/calls/websocket`, asOwner({}))).status, 410);
    const ids = async (query: string) =>
      (await api.call("GET", `${agents}?page_size=100&${query}`, asOwner())).body.data.map(
        (agent: { id: string }) => agent.id,
      );
    assert.equal((await ids("")).includes(id), false);
    assert.equal((await ids("status=archived")).includes(id), true);
  });

  it("pages and sorts without gaps or repeats, and clamps", async () => {
    const project = await api.call("POST", "/v1/projects", asOwner({ name: "Paging" }));
    const project_id = project.body.data.id;
    for (const name of ["c", "a", "b", "a", "d"]) await create({ name, project_id });
    const list = (query: string) => api.call("GET", `${agents}?project_id=${project_id}&${query}`, asOwner());
    const seen: string[] = [];
    for (const page of [1, 2, 3]) {
      const { body } = await list(`sort=name&page=${page}&page_size=2`);
      assert.deepEqual(body.pagination, { page, page_size: 2, page_count: 3, total_count: 5 });
      seen.push(...body.data.map((agent: { id: string; name: string }) => `${agent.name} ${agent.id}`));
    }
    assert.deepEqual(seen.map((entry) => entry[0]).join(""), "aabcd");
    assert.equal(new Set(seen).size, 5);
    assert.equal((await list("sort=-name,created_at")).body.data[0].name, "d");
    assert.equal((await list("")).body.pagination.page_size, 20);
    assert.equal((await list("page_size=0")).body.pagination.page_size, 1);
    assert.equal((await list("page_size=100000")).body.pagination.page_size, 100);
    assert.equal((await list("page=-3")).body.pagination.page, 1);
    const beyond = await list("page=99999999999999999999");
    assert.deepEqual([beyond.status, beyond.body.data, beyond.body.pagination.total_count], [200, [], 5]);
    for (const query of [
      "sort=config",
      "sort=name,name",
      "sort=,",
      "page=two",
      "page_size=1.5",
      "page=1&page=2",
      "colour=red",
      "project_id=x",
      "status=gone",
    ]) {
      const answer = await api.call("GET", `${agents}?${query}`, asOwner());
      assert.equal(answer.status, 400, query);
      assert.ok(answer.body.error.details, query);
    }
  });

  it("answers 404 to strangers and for ids that cannot exist, 403 to members outside the project", async () => {
    const id = await createId();
    const attempts: [method: string, path: string, body?: unknown][] = [
      ["GET", `${agents}/${id}`],
      ["PATCH", `${agents}/${id}`, { name: "mine" }],
      ["DELETE", `${agents}/${id}`],
      ["POST", `${agents}/${id}/calls/websocket`, {}],
      ["POST", agents, { name: "mine", project_id: api.projectId, config: {} }],
    ];
    for (const [method, path, body] of attempts) {
      const request = (token: string) => api.call(method, path, { token, ...(body !== undefined && { body }) });
      assert.equal((await request(api.stranger.token)).status, 404, `${method} ${path}`);
      assert.equal((await request(api.member.token)).status, 403, `${method} ${path}`);
    }
    for (const odd of ["nonsense", nowhere, "%00", "1%20or%201=1"]) {
      assert.equal((await api.call("GET", `${agents}/${odd}`, asOwner())).status, 404, odd);
    }
    const listed = await api.call("GET", agents, { token: api.stranger.token });
    assert.deepEqual([listed.status, listed.body.data], [200, []]);
    assert.deepEqual((await api.call("GET", agents, { token: api.member.token })).body.data, []);
    assert.equal((await create({ project_id: nowhere })).status, 404);
  });

  it("opens a project to the members that belong to it", async () => {
    const project = await api.call("POST", "/v1/projects", asOwner({ name: "Shared" }));
    const project_id = project.body.data.id;
    await api.sql`insert into project_member (project_id, user_id) values (${project_id}, ${api.member.userId})`;
    const id = await createId({ project_id });
    const asMember = { token: api.member.token };
    assert.equal((await api.call("GET", `${agents}/${id}`, asMember)).status, 200);
    const { body } = await api.call("GET", agents, asMember);
    assert.deepEqual(
      body.data.map((agent: { id: string }) => agent.id),
      [id],
    );
  });
});
