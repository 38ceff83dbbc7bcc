import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createPersonalAccessToken } from "#identity/personal_access_tokens.ts";
import { type Answer, type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";

const password = "correct horse battery";

interface Colleague {
  userId: string;
  token: string;
}

describe("members of an organization", () => {
  let api: ApiHarness;
  let owner: Colleague & { organizationId: string };

  before(async () => {
    api = await openApiHarness();
    const email = `${crypto.randomUUID()}@inn.example`;
    const { body } = await api.call("POST", "/v1/auth/signup", { body: { email, password } });
    owner = { userId: body.user.id, token: body.access_token, organizationId: body.organization.id };
  });
  after(() => api.close());

  /** Somebody who belongs to the owner's organization, signed in. */
  async function colleague(role: "owner" | "admin" | "member"): Promise<Colleague> {
    const email = `${crypto.randomUUID()}@inn.example`;
    const { body: user } = await api.call("POST", "/v1/auth/signup", { body: { email, password } });
    await api.sql`delete from organization where id = ${user.organization.id}`;
    await api.sql`
      insert into organization_member (organization_id, user_id, role)
      values (${owner.organizationId}, ${user.user.id}, ${role})`;
    const signedIn = await api.call("POST", "/v1/auth/login", { body: { email, password } });
    assert.equal(signedIn.status, 200);
    return { userId: user.user.id, token: signedIn.body.access_token };
  }
  const pathOf = ({ userId }: { userId: string }) => `/v1/orgs/me/members/${userId}`;
  const remove = (by: Colleague, whom: Colleague) => api.call("DELETE", pathOf(whom), { token: by.token });
  const make = (by: Colleague, whom: Colleague, role: string): Promise<Answer> =>
    api.call("PATCH", pathOf(whom), { token: by.token, body: { role } });
  const statusOfMe = async ({ token }: Colleague) => (await api.call("GET", "/v1/orgs/me", { token })).status;

  it("get other roles, which count at once", async () => {
    const ben = await colleague("member");
    const invite = { email: "new@inn.example" };
    const inviting = () => api.call("POST", "/v1/orgs/me/invitations", { token: ben.token, body: invite });
    assert.equal((await inviting()).status, 403);
    const changed = await make(owner, ben, "admin");
    assert.equal(changed.status, 200);
    assert.equal(changed.body.role, "admin");
    assert.equal(changed.body.user_id, ben.userId);
    assert.equal((await inviting()).status, 201);
    assert.equal((await make(owner, ben, "member")).status, 200);
    assert.equal((await inviting()).status, 403);
    assert.equal((await make(owner, ben, "king")).status, 422);
    assert.equal((await make(owner, ben, "member")).status, 200, "the same role again changes nothing");
  });

  it("are changed and removed by administrators alone, and owners by owners", async () => {
    const [admin, member, second] = await Promise.all([colleague("admin"), colleague("member"), colleague("owner")]);
    assert.equal((await remove(member, admin)).status, 403);
    assert.equal((await make(member, member, "admin")).status, 403);
    assert.equal((await remove(admin, second)).status, 403);
    assert.equal((await make(admin, member, "owner")).status, 403);
    assert.equal((await make(admin, second, "member")).status, 403);
    assert.equal((await make(admin, member, "admin")).status, 200);
    assert.equal((await make(owner, second, "member")).status, 200);
    assert.equal((await remove(second, second)).status, 204, "everybody may leave");
    assert.equal((await remove(admin, member)).status, 204);
    assert.equal((await remove(admin, member)).status, 404);
  });

  it("of another organization do not exist", async () => {
    const stranger = { userId: api.stranger.userId, token: "" };
    assert.equal((await remove(owner, stranger)).status, 404);
    assert.equal((await make(owner, stranger, "member")).status, 404);
    assert.equal((await remove(owner, { ...stranger, userId: "nonsense" })).status, 404);
    assert.equal((await remove({ ...owner, token: "nonsense" }, owner)).status, 401);
  });

  it("lose every credential at once when they are removed, and are gone from the list", async () => {
    const ben = await colleague("admin");
    const [project] = await api.sql<{ id: string }[]>`
      insert into project (organization_id, name, created_at, updated_at)
      values (${owner.organizationId}, 'Desk', now(), now()) returning id`;
    await api.sql`insert into project_member (project_id, user_id) values (${project?.id ?? ""}, ${ben.userId})`;
    const personal = await createPersonalAccessToken(api.sql, {
      userId: ben.userId,
      organizationId: owner.organizationId,
      name: "laptop",
      now: new Date(),
    });
    const statusOfPersonal = async () => (await api.call("GET", "/v1/organizations/me", { token: personal })).status;
    // Asked once before, so that both are remembered.
    assert.deepEqual([await statusOfMe(ben), await statusOfPersonal()], [200, 200]);
    assert.equal((await remove(owner, ben)).status, 204);
    assert.deepEqual([await statusOfMe(ben), await statusOfPersonal()], [401, 401]);
    const { body } = await api.call("GET", "/v1/orgs/me", { token: owner.token });
    assert.ok(!body.members.some((one: { user_id: string }) => one.user_id === ben.userId));
    assert.deepEqual([...(await api.sql`select 1 from project_member where user_id = ${ben.userId}`)], []);
  });

  it("leave at least one owner, also when the last two go at once", async () => {
    assert.equal((await remove(owner, owner)).status, 409);
    assert.equal((await make(owner, owner, "member")).status, 409);
    assert.equal((await make(owner, owner, "owner")).status, 200);
    for (let round = 0; round < 5; round++) {
      const second = await colleague("owner");
      const answers = await Promise.all([make(second, owner, "admin"), make(owner, second, "admin")]);
      const statuses = answers.map(({ status }) => status).sort();
      // Whoever comes second is no owner any more.
      assert.deepEqual(statuses, [200, 403]);
      const [rest] = await api.sql<{ count: number }[]>`
        select count(*)::integer as count from organization_member
        where organization_id = ${owner.organizationId} and role = 'owner'`;
      assert.equal(rest?.count, 1);
      await api.sql`
        update organization_member set role = case when user_id = ${owner.userId} then 'owner' else 'member' end
        where organization_id = ${owner.organizationId}`;
      await api.bus.publish("credential_revoked", owner.userId);
    }
    const third = await colleague("owner");
    const leaving = await Promise.all([remove(third, third), remove(owner, owner)]);
    assert.deepEqual(leaving.map(({ status }) => status).sort(), [204, 409]);
  });
});
