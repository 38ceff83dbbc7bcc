import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { topics } from "#bus/bus.ts";
import { createPersonalAccessToken } from "#identity/personal_access_tokens.ts";
import { sha256Hex } from "#identity/secret.ts";
import { createSignInLink } from "#identity/sign_in_links.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";

describe("who you are", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());

  const asOwner = (body?: unknown) => ({ token: api.owner.token, ...(body !== undefined && { body }) });
  const me = (token?: string) => api.call("GET", "/v1/organizations/me", token === undefined ? {} : { token });
  const newToken = (expiresAt?: Date) =>
    createPersonalAccessToken(api.sql, {
      userId: api.owner.userId,
      organizationId: api.owner.organizationId,
      name: "test",
      now: api.now(),
      ...(expiresAt && { expiresAt }),
    });

  describe("personal access tokens", () => {
    it("open the management API, legacy ones too", async () => {
      const answer = await me(api.owner.token);
      assert.equal(answer.status, 200);
      assert.equal(answer.body.data.id, api.owner.organizationId);
      const legacy = `uak_${"x".repeat(40)}`;
      await api.sql`update personal_access_token set secret_sha256 = ${sha256Hex(legacy)} where secret_sha256 = ${sha256Hex(await newToken())}`;
      assert.equal((await me(legacy)).status, 200);
    });

    it("are the only credential there", async () => {
      const key = await api.call("POST", "/v1/access-keys", asOwner({ name: "key" }));
      for (const token of [undefined, "", "nonsense", `svc_pat_${"x".repeat(43)}`, key.body.data.secret]) {
        const answer = await me(token);
        assert.equal(answer.status, 401, token);
        assert.deepEqual(answer.body, { error: { code: "unauthorized", message: "Unauthorized" } });
      }
    });

    it("end at their expiry, however often they were just used", async () => {
      const token = await newToken(new Date(api.now().getTime() + 5000));
      assert.equal((await me(token)).status, 200);
      api.advance(5001);
      assert.equal((await me(token)).status, 401);
    });

    it("end within 10 s of being revoked, and at once when the bus says so", async () => {
      const [told, untold] = [await newToken(), await newToken()];
      for (const token of [told, untold]) {
        assert.equal((await me(token)).status, 200);
        await api.sql`update personal_access_token set revoked_at = now() where secret_sha256 = ${sha256Hex(token)}`;
      }
      await api.bus.publish(topics.credentialRevoked, sha256Hex(told));
      assert.equal((await me(told)).status, 401);
      assert.equal((await me(untold)).status, 200);
      api.advance(10_001);
      assert.equal((await me(untold)).status, 401);
    });

    it("are stored as a digest alone", async () => {
      const token = await newToken();
      const rows = await api.sql`select * from personal_access_token`;
      assert.equal(JSON.stringify(rows).includes(token), false);
    });
  });

  describe("projects", () => {
    it("are created, read, changed, listed and deleted", async () => {
      const created = await api.call("POST", "/v1/projects", asOwner({ name: "Annex", description: "across" }));
      assert.equal(created.status, 201);
      const path = `/v1/projects/${created.body.data.id}`;
      assert.deepEqual((await api.call("GET", path, asOwner())).body, created.body);
      const changed = await api.call("PATCH", path, asOwner({ name: "Barn" }));
      assert.deepEqual([changed.body.data.name, changed.body.data.description], ["Barn", "across"]);
      const listed = await api.call("GET", "/v1/projects?sort=name", asOwner());
      assert.deepEqual(listed.body.data.map((project: { name: string }) => project.name).sort(), ["Barn", "Desk"]);
      assert.equal((await api.call("DELETE", path, asOwner())).status, 200);
      assert.equal((await api.call("GET", path, asOwner())).status, 404);
      assert.equal((await api.call("DELETE", path, asOwner())).status, 404);
    });

    it("stay while they have an agent, and go once it is archived", async () => {
      const project = await api.call("POST", "/v1/projects", asOwner({ name: "Busy" }));
      const project_id = project.body.data.id;
      const agent = await api.call("POST", "/v1/agents/voice/agents", asOwner({ name: "A", project_id, config: {} }));
      const refused = await api.call("DELETE", `/v1/projects/${project_id}`, asOwner());
      assert.deepEqual([refused.status, refused.body.error.code], [409, "conflict"]);
      await api.call("DELETE", `/v1/agents/voice/agents/${agent.body.data.id}`, asOwner());
      assert.equal((await api.call("DELETE", `/v1/projects/${project_id}`, asOwner())).status, 200);
    });

    it("never lose an agent that is created while they are deleted", async () => {
      for (let round = 0; round < 10; round++) {
        const project = await api.call("POST", "/v1/projects", asOwner({ name: "Race" }));
        const project_id = project.body.data.id;
        const [created, deleted] = await Promise.all([
          api.call("POST", "/v1/agents/voice/agents", asOwner({ name: "A", project_id, config: {} })),
          api.call("DELETE", `/v1/projects/${project_id}`, asOwner()),
        ]);
        assert.ok(
          (created.status === 201 && deleted.status === 409) || (created.status === 404 && deleted.status === 200),
          `created ${created.status}, deleted ${deleted.status}`,
        );
      }
    });

    it("answer 404 to strangers and 403 to members", async () => {
      const path = `/v1/projects/${api.projectId}`;
      for (const [method, body] of [["GET"], ["PATCH", { name: "x" }], ["DELETE"]] as const) {
        const request = (token: string) => api.call(method, path, { token, ...(body && { body }) });
        assert.equal((await request(api.stranger.token)).status, 404, method);
        assert.equal((await request(api.member.token)).status, 403, method);
      }
      assert.equal(
        (await api.call("POST", "/v1/projects", { token: api.member.token, body: { name: "x" } })).status,
        403,
      );
    });
  });

  describe("access keys", () => {
    it("show their secret once, and are revoked for good", async () => {
      const created = await api.call("POST", "/v1/access-keys", asOwner({ name: "CI", project_id: api.projectId }));
      assert.equal(created.status, 201);
      const { secret, ...key } = created.body.data;
      assert.match(secret, /^svc_acc_[\w-]{43}$/);
      assert.equal(key.last_four, secret.slice(-4));
      const path = `/v1/access-keys/${key.id}`;
      assert.deepEqual((await api.call("GET", path, asOwner())).body.data, key);
      const listed = await api.call("GET", `/v1/access-keys?project_id=${api.projectId}`, asOwner());
      assert.equal(JSON.stringify(listed.body).includes(secret), false);
      const dropped: string[] = [];
      const unsubscribe = await api.bus.subscribe(topics.credentialRevoked, (sha256) => dropped.push(sha256));
      const revoked = await api.call("DELETE", path, asOwner());
      assert.ok(revoked.body.data.revoked_at);
      assert.deepEqual((await api.call("DELETE", path, asOwner())).body, revoked.body);
      assert.ok(dropped.includes(sha256Hex(secret)));
      await unsubscribe();
    });

    it("belong to the organization for administrators only, to a project for those that reach it", async () => {
      const make = (token: string, body: object) => api.call("POST", "/v1/access-keys", { token, body });
      assert.equal((await make(api.member.token, { name: "k" })).status, 403);
      assert.equal((await make(api.member.token, { name: "k", project_id: api.projectId })).status, 403);
      assert.equal((await make(api.stranger.token, { name: "k", project_id: api.projectId })).status, 404);
      const id = (await make(api.owner.token, { name: "k" })).body.data.id;
      assert.equal((await api.call("GET", `/v1/access-keys/${id}`, { token: api.stranger.token })).status, 404);
      assert.equal((await api.call("DELETE", `/v1/access-keys/${id}`, { token: api.member.token })).status, 403);
      const past = await make(api.owner.token, { name: "k", expires_at: "2001-01-01T00:00:00Z" });
      assert.deepEqual(past.body.error.details, { expires_at: "Expected a time in the future" });
    });

    it("end with their project", async () => {
      const project = await api.call("POST", "/v1/projects", asOwner({ name: "Short" }));
      const project_id = project.body.data.id;
      const key = await api.call("POST", "/v1/access-keys", asOwner({ name: "k", project_id }));
      await api.call("DELETE", `/v1/projects/${project_id}`, asOwner());
      const read = await api.call("GET", `/v1/access-keys/${key.body.data.id}`, asOwner());
      assert.ok(read.body.data.revoked_at);
    });
  });

  describe("sign-in links", () => {
    const redeem = (code: unknown) => api.call("POST", "/v1/sign-in-links/redeem", { body: { code } });

    it("give a token for 12 hours, once, to one of racing redeemers", async () => {
      const code = await createSignInLink(api.sql, api.owner.userId, api.now());
      const answers = await Promise.all([redeem(code), redeem(code), redeem(code)]);
      assert.deepEqual(answers.map((answer) => answer.status).sort(), [200, 410, 410]);
      const { token, expires_at } = answers.find((answer) => answer.status === 200)?.body.data ?? {};
      assert.equal((await me(token)).status, 200);
      const hours = (Date.parse(expires_at) - api.now().getTime()) / 3_600_000;
      assert.ok(hours > 11.9 && hours <= 12);
      api.advance(12 * 3_600_000);
      assert.equal((await me(token)).status, 401);
    });

    it("end after an hour, and answer 410 for an unknown code, 400 for a malformed one", async () => {
      const code = await createSignInLink(api.sql, api.owner.userId, api.now());
      api.advance(3_600_001);
      assert.equal((await redeem(code)).status, 410);
      assert.equal((await redeem("A".repeat(43))).status, 410);
      for (const bad of ["short", 7, undefined, `${"A".repeat(42)}!`]) assert.equal((await redeem(bad)).status, 400);
    });
  });
});
