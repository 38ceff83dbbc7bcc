/** `POST /v1/connections/{connection_id}/test`: whether the vendor takes the key. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { silentLogger } from "#http/logger.ts";
import { catalogue } from "#providers/catalogue.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";

const connections = "/v1/connections";

describe("a test of a connection", () => {
  let open: ApiHarness;
  let closed: ApiHarness;
  /** Its owner has asked for nothing yet. */
  let fresh: ApiHarness;
  before(async () => {
    fresh = await openApiHarness(silentLogger, { allowPrivateAddresses: true });
    open = await openApiHarness(silentLogger, { allowPrivateAddresses: true });
    closed = await openApiHarness();
  });
  after(async () => {
    await open.close();
    await fresh.close();
    await closed.close();
  });

  async function connect(api: ApiHarness, body: object): Promise<string> {
    const connection = { name: "c", project_id: api.projectId, ...body };
    const created = await api.call("POST", connections, { token: api.owner.token, body: connection });
    assert.equal(created.status, 201, JSON.stringify(created.body));
    return created.body.data.id;
  }
  const test = (api: ApiHarness, id: string, token = api.owner.token) =>
    api.call("POST", `${connections}/${id}/test`, { token });

  for (const { name, secrets } of catalogue.filter(({ secrets }) => secrets)) {
    it(`tells a key of ${name} that is good from one that is not`, async () => {
      const { startTwin } = await import(`#providers/${name}/twin.ts`);
      const twin = await startTwin();
      try {
        const provider = secrets?.connection;
        const base_url = twin.access.baseUrl;
        const good = await test(open, await connect(open, { provider, base_url, secret: twin.access.secret }));
        assert.equal(good.status, 200);
        assert.deepEqual(Object.keys(good.body).sort(), ["latency_ms", "ok"]);
        assert.equal(good.body.ok, true);
        const bad = await test(open, await connect(open, { provider, base_url, secret: "another" }));
        assert.deepEqual([bad.body.ok, bad.body.error.kind], [false, "auth"]);
      } finally {
        await twin.close();
      }
    });
  }

  it("answers that it could not be reached, that the address is private, or that nobody can be asked", async () => {
    const base_url = "http://127.0.0.1:9";
    const unreached = await test(fresh, await connect(fresh, { provider: "openai", secret: "k", base_url }));
    assert.deepEqual([unreached.status, unreached.body.error.kind], [200, "network"]);
    const bearer = await test(fresh, await connect(fresh, { provider: "bearer", secret: "k" }));
    assert.equal(bearer.body.ok, false);
    const id = await connect(closed, { provider: "openai", secret: "k" });
    await closed.sql`update connection set base_url = ${base_url} where id = ${id}`;
    assert.equal((await test(closed, id)).body.error.kind, "address_refused");
  });

  it("is a 404 for others, and refused when it is asked too often", async () => {
    const id = await connect(open, { provider: "bearer", secret: "k" });
    assert.equal((await test(open, id, open.stranger.token)).status, 404);
    assert.equal((await test(open, id, open.member.token)).status, 403);
    const answers = await Promise.all(Array.from({ length: 11 }, () => test(open, id)));
    assert.ok(answers.some(({ status, headers }) => status === 429 && Number(headers.get("retry-after")) > 0));
  });
});
