import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { sendQueuedMail } from "#accounts/account_mail.ts";
import { hashPassword } from "#identity/password.ts";
import { createSignInLink } from "#identity/sign_in_links.ts";
import type { Mail } from "#outbound/mailer.ts";
import { type Answer, type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";

const password = "correct horse battery";

/** What a client shows of a 422: parts of the location without the leading body, then the message. */
function linesOf(answer: Answer): string[] {
  assert.equal(answer.status, 422, JSON.stringify(answer.body));
  return answer.body.detail.map((issue: { type: string; loc: (string | number)[]; msg: string }) => {
    assert.equal(typeof issue.type, "string");
    assert.match(issue.msg, /^[A-Z].*[a-z]/);
    const loc = issue.loc[0] === "body" ? issue.loc.slice(1) : issue.loc;
    assert.ok(loc.length > 0, "there is something to show");
    return `${loc.join(".")}: ${issue.msg}`;
  });
}

/** Sends all queued mail, as the worker would, and answers it. */
async function deliverMail(api: ApiHarness): Promise<Mail[]> {
  const sent: Mail[] = [];
  const mailer = { send: async (mail: Mail) => void sent.push(mail), close: () => undefined };
  const jobs = await api.sql<{ id: string; payload: unknown }[]>`
    select job.id, job.payload from graphile_worker._private_jobs job
    join graphile_worker._private_tasks task on task.id = job.task_id
    where task.identifier = 'send_mail' order by job.id`;
  for (const { id, payload } of jobs) {
    await sendQueuedMail({ sql: api.sql, mailer, publicUrl: "http://desk.example:8080", now: api.now }, payload);
    await api.sql`select graphile_worker.complete_jobs(array[${id}::bigint])`;
  }
  return sent;
}

const tokenIn = (mail: Mail | undefined): string => {
  const token = mail?.text.match(/#token=([\w-]{43})\n/)?.[1];
  assert.ok(token, "the mail has a link with a token");
  assert.ok(mail?.html.includes(token), "and so has its HTML");
  return token;
};

/** Signs up a fresh owner. */
async function signUp(api: ApiHarness, email = `${crypto.randomUUID()}@example.com`) {
  const answer = await api.call("POST", "/v1/auth/signup", { body: { email, password, organization_name: "Inn" } });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return { email, token: answer.body.access_token as string, organizationId: answer.body.organization.id as string };
}

const logIn = (api: ApiHarness, email: string, given = password) =>
  api.call("POST", "/v1/auth/login", { body: { email, password: given } });

async function administrator(api: ApiHarness): Promise<string> {
  const email = `${crypto.randomUUID()}@example.com`;
  await api.sql`
    insert into app_user (email, password_hash, is_platform_admin) values (${email}, ${await hashPassword(password)}, true)`;
  return (await logIn(api, email)).body.access_token;
}

async function invitee(
  api: ApiHarness,
  owner: string,
  role: "admin" | "member",
  email = `${crypto.randomUUID()}@x.example`,
) {
  const invited = await api.call("POST", "/v1/orgs/me/invitations", { token: owner, body: { email, role } });
  assert.equal(invited.status, 201);
  const token = tokenIn((await deliverMail(api)).findLast((mail) => mail.to === email));
  return { email, token, id: invited.body.id as string };
}

describe("accounts of the tax service", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());

  it("signs up a user with an organization, signs in, and says who that is", async () => {
    const { email, token, organizationId } = await signUp(api);
    const me = await api.call("GET", "/v1/auth/me", { token });
    assert.equal(me.status, 200);
    assert.equal(me.body.user.email, email);
    assert.equal(me.body.user.email_verified, false);
    assert.equal(me.body.organization.id, organizationId);
    assert.equal(me.body.organization.api_access_enabled, false);
    assert.equal(me.body.role, "owner");
    assert.ok(!JSON.stringify(me.body).includes("argon2"));

    const again = await logIn(api, email.toUpperCase());
    assert.equal(again.status, 200);
    assert.equal(again.body.token_type, "bearer");
    assert.equal((await api.call("GET", "/v1/auth/me", { token: again.body.access_token })).status, 200);
  });

  it("makes one account of two sign-ups that race for an address, and leaves no stray organization", async () => {
    const email = `${crypto.randomUUID()}@example.com`;
    const body = { email, password, organization_name: `Race ${email}` };
    const answers = await Promise.all(
      [email, email.toUpperCase()].map((one) => api.call("POST", "/v1/auth/signup", { body: { ...body, email: one } })),
    );
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409]);
    assert.equal(typeof answers.find(({ status }) => status === 409)?.body.detail, "string");
    const organizations = await api.sql`select 1 from organization where name = ${body.organization_name}`;
    assert.equal(organizations.length, 1);
  });

  it("verifies an address once, with any case of racing tokens", async () => {
    const { email, token } = await signUp(api);
    await api.call("POST", "/v1/auth/resend-verification", { body: { email } });
    const mails = (await deliverMail(api)).filter((mail) => mail.to === email);
    assert.equal(mails.length, 2);
    const answers = await Promise.all(
      mails.map((mail) => api.call("POST", "/v1/auth/verify-email", { body: { token: tokenIn(mail) } })),
    );
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 410]);
    assert.equal((await api.call("GET", "/v1/auth/me", { token })).body.user.email_verified, true);
    const unknown = await api.call("POST", "/v1/auth/verify-email", { body: { token: "nonsense" } });
    assert.equal(unknown.status, 410);
    assert.equal(typeof unknown.body.detail, "string");
    await api.call("POST", "/v1/auth/resend-verification", { body: { email } });
    assert.deepEqual(await deliverMail(api), [], "a verified address gets no further mail");
  });

  it("resets a password with one of two racing requests, and ends sessions and other reset tokens", async () => {
    const { email, token } = await signUp(api);
    await deliverMail(api);
    assert.equal((await api.call("GET", "/v1/auth/me", { token })).status, 200);
    await api.call("POST", "/v1/auth/forgot-password", { body: { email } });
    await api.call("POST", "/v1/auth/forgot-password", { body: { email } });
    const [first, second] = await deliverMail(api);
    const reset = (mail: Mail | undefined, to: string) =>
      api.call("POST", "/v1/auth/reset-password", { body: { token: tokenIn(mail), password: to } });
    const answers = await Promise.all(["first new password", "other new password"].map((to) => reset(first, to)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
    assert.equal((await reset(second, "third new password")).status, 400);
    const winner = answers[0]?.status === 200 ? "first new password" : "other new password";
    assert.equal((await api.call("GET", "/v1/auth/me", { token })).status, 401, "the old session is over");
    assert.equal((await logIn(api, email)).status, 401);
    assert.equal((await logIn(api, email, winner)).status, 200);
  });

  it("revokes personal access tokens and sign-in links with a reset, unless told to keep them", async () => {
    for (const keeps of [false, true]) {
      const { email, token } = await signUp(api);
      const made = await api.call("POST", "/v1/personal-access-tokens", { token, body: { name: "Deployment" } });
      const pat = made.body.token as string;
      assert.equal((await api.call("GET", "/v1/organizations/me", { token: pat })).status, 200);
      const [user] = await api.sql<{ id: string }[]>`select id from app_user where email = ${email}`;
      const code = await createSignInLink(api.sql, user?.id ?? "", api.now());
      await deliverMail(api);
      await api.call("POST", "/v1/auth/forgot-password", { body: { email } });
      const [mail] = await deliverMail(api);
      const body = { token: tokenIn(mail), password: "another correct horse" };
      const { status, body: reply } = await api.call("POST", "/v1/auth/reset-password", {
        body: keeps ? { ...body, keep_personal_access_tokens: true } : body,
      });
      assert.deepEqual([status, reply.revoked_personal_access_tokens], [200, keeps ? 0 : 1]);
      assert.match(reply.message, keeps ? /go on working/ : /So have all personal access tokens/);
      assert.equal((await api.call("GET", "/v1/organizations/me", { token: pat })).status, keeps ? 200 : 401);
      const redeemed = await api.call("POST", "/v1/sign-in-links/redeem", { body: { code } });
      assert.equal(redeemed.status, keeps ? 200 : 410);
    }
  });

  it("lets tokens run out", async () => {
    const own = await openApiHarness();
    try {
      const { email } = await signUp(own);
      const [verification] = await deliverMail(own);
      await own.call("POST", "/v1/auth/forgot-password", { body: { email } });
      const [reset] = await deliverMail(own);
      own.advance(61 * 60 * 1000);
      const late = await own.call("POST", "/v1/auth/reset-password", { body: { token: tokenIn(reset), password } });
      assert.equal(late.status, 400);
      own.advance(48 * 60 * 60 * 1000);
      const verify = await own.call("POST", "/v1/auth/verify-email", { body: { token: tokenIn(verification) } });
      assert.equal(verify.status, 410);
    } finally {
      await own.close();
    }
  });

  it("answers forgot and resend alike, with the same work, whether there is an account or not", async () => {
    const { email } = await signUp(api);
    await deliverMail(api);
    for (const path of ["/v1/auth/forgot-password", "/v1/auth/resend-verification"]) {
      const known = await api.call("POST", path, { body: { email } });
      const unknown = await api.call("POST", path, { body: { email: `${crypto.randomUUID()}@nobody.example` } });
      assert.equal(known.status, 200);
      assert.deepEqual({ status: unknown.status, body: unknown.body }, { status: 200, body: known.body });
    }
    const jobs = await api.sql`
      select 1 from graphile_worker._private_jobs job join graphile_worker._private_tasks task on task.id = job.task_id
      where task.identifier = 'send_mail'`;
    assert.equal(jobs.length, 4, "the handler queued a mail for each, and looked nobody up");
    const sent = await deliverMail(api);
    assert.deepEqual([...new Set(sent.map((mail) => mail.to))], [email]);
  });

  it("keeps no token in the queue and none in the tables", async () => {
    const { email } = await signUp(api);
    const token = tokenIn((await deliverMail(api)).find((mail) => mail.to === email));
    const rows = await api.sql`select to_json(account_token)::text as text from account_token`;
    assert.ok(rows.length > 0);
    assert.ok(rows.every((row) => !row.text.includes(token)));
  });

  it("says of a credential whether it was missing, malformed or not accepted", async () => {
    const { token } = await signUp(api);
    const of = async (header?: string) => {
      const headers: Record<string, string> = header === undefined ? {} : { authorization: header };
      const response = await api.app.fetch(new Request("http://api.test/v1/auth/me", { headers }));
      assert.equal(response.status, 401);
      return ((await response.json()) as { detail: string }).detail;
    };
    assert.match(await of(), /^Missing/);
    for (const header of ["Basic abc", "Bearer", "Bearer nonsense", "Bearer a.b.c"])
      assert.match(await of(header), /^Malformed/, header);
    const forged = `${token.slice(0, -4)}AAAA`;
    assert.match(await of(`Bearer ${forged}`), /not accepted/);
    const [header, payload] = token.split(".");
    const none = Buffer.from(JSON.stringify({ alg: "none", typ: "JWT" })).toString("base64url");
    assert.match(await of(`Bearer ${none}.${payload}.${"A".repeat(43)}`), /not accepted|Malformed/);
    assert.ok(header);
  });

  it("counts failed sign-ins alone, for each account", async () => {
    const own = await openApiHarness();
    try {
      const [one, other] = [await signUp(own), await signUp(own)];
      for (let round = 0; round < 8; round += 1) assert.equal((await logIn(own, one.email)).status, 200);
      const guesses = await Promise.all(Array.from({ length: 8 }, () => logIn(own, one.email, "wrong password")));
      assert.equal(guesses.filter(({ status }) => status === 401).length, 5);
      const refused = guesses.find(({ status }) => status === 429);
      assert.ok(Number(refused?.headers.get("retry-after")) > 0);
      assert.equal((await logIn(own, one.email)).status, 429);
      assert.equal((await logIn(own, other.email)).status, 200);
      own.advance(61_000);
      assert.equal((await logIn(own, one.email)).status, 200, "nobody is locked out for good");
    } finally {
      await own.close();
    }
  });

  it("answers an unknown address and a wrong password alike", async () => {
    const { email } = await signUp(api);
    const wrong = await logIn(api, email, "wrong password");
    const unknown = await logIn(api, `${crypto.randomUUID()}@nobody.example`);
    assert.deepEqual([wrong.status, wrong.body], [401, unknown.body]);
    assert.equal(unknown.status, 401);
  });

  it("registers users for administrators alone", async () => {
    const { token, organizationId } = await signUp(api);
    const admin = await administrator(api);
    const body = {
      email: `${crypto.randomUUID()}@example.com`,
      password,
      organization_id: organizationId,
      role: "admin",
    };
    assert.equal((await api.call("POST", "/v1/auth/register", { body })).status, 401);
    assert.equal((await api.call("POST", "/v1/auth/register", { token, body })).status, 403);
    const registered = await api.call("POST", "/v1/auth/register", { token: admin, body });
    assert.equal(registered.status, 201);
    assert.equal((await logIn(api, body.email)).status, 200);
    const elsewhere = { email: body.email, password, organization_id: crypto.randomUUID() };
    assert.equal((await api.call("POST", "/v1/auth/login", { body: elsewhere })).status, 404);
    assert.equal((await api.call("POST", "/v1/auth/register", { token: admin, body })).status, 409);
    const nowhere = { ...body, email: "a@b.example", organization_id: crypto.randomUUID() };
    assert.equal((await api.call("POST", "/v1/auth/register", { token: admin, body: nowhere })).status, 404);
  });

  it("answers a wrong body of every endpoint with 422 and readable lines", async () => {
    const { token } = await signUp(api);
    const admin = await administrator(api);
    const wrong: [string, string, object | string, string[], string?][] = [
      ["POST", "/v1/auth/signup", {}, ["email: Required", "password: Required"]],
      [
        "POST",
        "/v1/auth/signup",
        { email: "no", password: "short" },
        ["email: Expected an e-mail address", "password: Expected string length greater or equal to 8"],
      ],
      ["POST", "/v1/auth/signup", "{", ["json: Expected JSON in UTF-8"]],
      ["POST", "/v1/auth/signup", "[]", ["json: Expected object"]],
      [
        "POST",
        "/v1/auth/signup",
        { email: "a@b.example", password: "password" },
        ["password: Expected a password that is not among the first to be guessed"],
      ],
      ["POST", "/v1/auth/login", { email: 7 }, ["password: Required", "email: Expected string"]],
      ["POST", "/v1/auth/register", {}, ["email: Required", "password: Required"], admin],
      ["POST", "/v1/auth/verify-email", {}, ["token: Required"]],
      ["POST", "/v1/auth/resend-verification", {}, ["email: Required"]],
      ["POST", "/v1/auth/forgot-password", { email: "" }, ["email: Expected an e-mail address"]],
      ["POST", "/v1/auth/reset-password", { token: "x" }, ["password: Required"]],
      [
        "PATCH",
        "/v1/orgs/me/legal-profile",
        { country: "Germany" },
        ["country: Expected an ISO 3166-1 alpha-2 code, or null"],
        token,
      ],
      [
        "PATCH",
        "/v1/orgs/me/legal-profile",
        { time_zone: "Mars/Base" },
        ["time_zone: Expected an IANA time zone, for example Europe/Berlin"],
        token,
      ],
      [
        "PATCH",
        "/v1/orgs/me/legal-profile",
        { country: "ZZ", iban: "IT00X0542811101000000123456" },
        [
          "country: Expected an ISO 3166-1 alpha-2 code, or null",
          "iban: Expected an IBAN without spaces, with check digits that fit, or null",
        ],
        token,
      ],
      [
        "POST",
        "/v1/orgs/me/invitations",
        { email: "a@b.example", role: "owner" },
        ["role: Expected one of admin, member"],
        token,
      ],
      ["POST", "/v1/orgs/invitations/abc/accept", {}, ["password: Required"]],
      [
        "POST",
        `/v1/orgs/invitations/${"x".repeat(201)}/preview`,
        {},
        ["path.token: Expected string length less or equal to 200"],
      ],
      [
        "GET",
        "/v1/orgs/me/request-log?limit=201",
        "",
        ["query.limit: Expected integer to be less or equal to 200"],
        token,
      ],
      ["GET", "/v1/orgs/me/request-log?cursor=x", "", ["query.cursor: Expected integer"], token],
      ["POST", "/v1/api-keys", { environment: "staging" }, ["environment: Expected one of live, test"], token],
      ["GET", "/v1/api-keys?include_revoked=maybe", "", ["query.include_revoked: Expected boolean"], token],
      ["DELETE", "/v1/api-keys/seven", "", ["path.key_id: Expected integer"], token],
      [
        "POST",
        "/v1/personal-access-tokens",
        { name: "x", expires_at: "2001-01-01T00:00:00Z" },
        ["expires_at: Expected a time in the future"],
        token,
      ],
      [
        "PATCH",
        `/v1/admin/organizations/${crypto.randomUUID()}`,
        { api_access_enabled: "yes" },
        ["api_access_enabled: Expected boolean"],
        admin,
      ],
    ];
    for (const [method, path, body, lines, credential] of wrong) {
      const options = { ...(credential && { token: credential }), ...(body !== "" && { body }) };
      assert.deepEqual(linesOf(await api.call(method, path, options)).sort(), [...lines].sort(), `${method} ${path}`);
    }
  });

  it("answers what is not there, and failures without a schema, with a plain sentence", async () => {
    for (const path of ["/v1/auth/nothing", "/v1/orgs", "/v1/tax/nothing"]) {
      const answer = await api.call("GET", path);
      assert.deepEqual([answer.status, answer.body.detail], [404, "Not Found"]);
    }
  });

  it("describes itself in OpenAPI", async () => {
    const { status, body } = await api.call("GET", "/openapi/tax.json");
    assert.equal(status, 200);
    assert.equal(body.openapi, "3.1.0");
    assert.ok(body.paths["/v1/auth/signup"].post.responses["422"]);
    assert.equal(body.paths["/v1/api-keys/{key_id}"].delete.parameters[0].schema.type, "integer");
  });
});

describe("accounts where addresses must be verified", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness(undefined, { requireEmailVerification: true });
  });
  after(() => api.close());

  it("gives no token before the address is verified, and mails again at each sign-in", async () => {
    const email = "guest@inn.example";
    const signedUp = await api.call("POST", "/v1/auth/signup", { body: { email, password } });
    assert.equal(signedUp.status, 201);
    assert.ok(!("access_token" in signedUp.body));
    assert.equal((await deliverMail(api)).length, 1);
    const refused = await logIn(api, email);
    assert.deepEqual([refused.status, refused.body], [403, { detail: "email_verification_required" }]);
    assert.equal((await logIn(api, email, "wrong password")).status, 401, "which only the right password is told");
    const [mail] = await deliverMail(api);
    assert.equal((await api.call("POST", "/v1/auth/verify-email", { body: { token: tokenIn(mail) } })).status, 200);
    assert.equal((await logIn(api, email)).status, 200);
  });
});

describe("organizations of the tax service", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());

  it("sets and clears legal fields, each by itself", async () => {
    const { token } = await signUp(api);
    const change = (body: object) => api.call("PATCH", "/v1/orgs/me/legal-profile", { token, body });
    const set = await change({ legal_name: "Inn GmbH", vat_id: "DE123456789", time_zone: "Europe/Berlin" });
    assert.equal(set.status, 200);
    assert.equal(set.body.legal_name, "Inn GmbH");
    const cleared = await change({ vat_id: null });
    assert.deepEqual([cleared.body.legal_name, cleared.body.vat_id], ["Inn GmbH", null]);
    assert.equal((await api.call("GET", "/v1/orgs/me", { token })).body.time_zone, "Europe/Berlin");
  });

  it("invites, previews and accepts; of two that race one is let in", async () => {
    const owner = await signUp(api);
    const invited = await invitee(api, owner.token, "member");
    const pending = await api.call("GET", "/v1/orgs/me", { token: owner.token });
    assert.deepEqual(
      pending.body.pending_invitations.map((one: { email: string }) => one.email),
      [invited.email],
    );
    const preview = await api.call("POST", `/v1/orgs/invitations/${invited.token}/preview`);
    assert.deepEqual([preview.status, preview.body.organization_name, preview.body.has_account], [200, "Inn", false]);

    const accept = () => api.call("POST", `/v1/orgs/invitations/${invited.token}/accept`, { body: { password } });
    const answers = await Promise.all([accept(), accept()]);
    const [accepted] = answers.filter(({ status }) => status === 201);
    assert.equal(
      answers.filter(({ status }) => status === 201).length,
      1,
      JSON.stringify(answers.map(({ body }) => body)),
    );
    assert.ok([401, 409, 410].includes(answers.find(({ status }) => status !== 201)?.status ?? 0));
    const me = await api.call("GET", "/v1/auth/me", { token: accepted?.body.access_token });
    assert.deepEqual(
      [me.body.organization.id, me.body.role, me.body.user.email_verified],
      [owner.organizationId, "member", true],
    );
    assert.equal((await accept()).status, 410);
    assert.equal((await api.call("POST", `/v1/orgs/invitations/${invited.token}/preview`)).status, 410);
    assert.equal((await api.call("POST", "/v1/orgs/invitations/unknown/preview")).status, 404);
    const people = (await api.call("GET", "/v1/orgs/me", { token: owner.token })).body;
    assert.deepEqual([people.members.length, people.pending_invitations.length], [2, 0]);
    const list = await api.call("GET", "/v1/orgs/me/invitations", { token: owner.token });
    assert.deepEqual(
      list.body.map((one: { status: string }) => one.status),
      ["accepted"],
    );
  });

  it("lets an existing account in with its own password alone", async () => {
    const [owner, other] = [await signUp(api), await signUp(api)];
    const invited = await invitee(api, owner.token, "admin", other.email);
    const accept = (given: string) =>
      api.call("POST", `/v1/orgs/invitations/${invited.token}/accept`, { body: { password: given } });
    assert.equal((await accept("another password")).status, 401);
    const accepted = await accept(password);
    assert.equal(accepted.status, 201);
    assert.equal((await logIn(api, other.email)).status, 200, "whose password stays");
    const me = await api.call("GET", "/v1/auth/me", { token: accepted.body.access_token });
    assert.deepEqual([me.body.organization.id, me.body.role], [owner.organizationId, "admin"]);
    const home = await api.call("GET", "/v1/auth/me", { token: other.token });
    assert.equal(home.body.organization.id, other.organizationId);
  });

  it("refuses a second invitation, members who invite, and revoked tokens", async () => {
    const owner = await signUp(api);
    const member = await invitee(api, owner.token, "member");
    const again = await api.call("POST", "/v1/orgs/me/invitations", {
      token: owner.token,
      body: { email: member.email },
    });
    assert.equal(again.status, 409);
    const { body } = await api.call("POST", `/v1/orgs/invitations/${member.token}/accept`, { body: { password } });
    const asMember = { token: body.access_token as string };
    const tries: [string, string, object?][] = [
      ["POST", "/v1/orgs/me/invitations", { email: "x@y.example" }],
      ["PATCH", "/v1/orgs/me/legal-profile", { legal_name: "Mine" }],
      ["GET", "/v1/orgs/me/request-log"],
      ["POST", "/v1/api-keys", { name: "x" }],
    ];
    for (const [method, path, given] of tries) {
      const answer = await api.call(method, path, { ...asMember, ...(given && { body: given }) });
      assert.equal(answer.status, 403, path);
      assert.equal(typeof answer.body.detail, "string");
    }
    const revoked = await invitee(api, owner.token, "member");
    const path = `/v1/orgs/me/invitations/${revoked.id}`;
    const stranger = await signUp(api);
    assert.equal((await api.call("DELETE", path, { token: stranger.token })).status, 404);
    assert.equal((await api.call("DELETE", path, { token: owner.token })).status, 204);
    assert.equal(
      (await api.call("POST", `/v1/orgs/invitations/${revoked.token}/accept`, { body: { password } })).status,
      410,
    );
  });

  it("hands out API keys once the platform's administrator allows it, and revokes them", async () => {
    const [owner, stranger, admin] = [await signUp(api), await signUp(api), await administrator(api)];
    const create = (body: object = { name: "till" }) => api.call("POST", "/v1/api-keys", { token: owner.token, body });
    assert.equal((await create()).status, 403);
    const flip = (token: string) =>
      api.call("PATCH", `/v1/admin/organizations/${owner.organizationId}`, {
        token,
        body: { api_access_enabled: true },
      });
    assert.equal((await flip(owner.token)).status, 403);
    assert.equal((await flip(admin)).body.api_access_enabled, true);
    const listed = await api.call("GET", "/v1/admin/organizations?q=Inn&limit=1", { token: admin });
    assert.equal(listed.body.length, 1);
    assert.ok(Number(listed.headers.get("x-total-count")) >= 2);

    const created = await create();
    assert.equal(created.status, 201);
    assert.ok(Number.isInteger(created.body.key_id));
    assert.match(created.body.api_key, /^svc_tax_live_[0-9A-Za-z]{38}$/);
    assert.match((await create({ environment: "test" })).body.api_key, /^svc_tax_test_/);
    const list = await api.call("GET", "/v1/api-keys", { token: owner.token });
    assert.equal(list.body.length, 2);
    assert.ok(!JSON.stringify(list.body).includes(created.body.api_key));
    const path = `/v1/api-keys/${created.body.key_id}`;
    assert.equal((await api.call("DELETE", path, { token: stranger.token })).status, 404);
    assert.equal((await api.call("DELETE", path, { token: owner.token })).status, 204);
    assert.equal((await api.call("GET", "/v1/api-keys", { token: owner.token })).body.length, 1);
    const all = await api.call("GET", "/v1/api-keys?include_revoked=true", { token: owner.token });
    assert.equal(all.body.length, 2);
  });

  it("makes, lists and revokes personal access tokens, which open the management API", async () => {
    const [owner, stranger] = [await signUp(api), await signUp(api)];
    const path = "/v1/personal-access-tokens";
    const created = await api.call("POST", path, { token: owner.token, body: { name: "laptop" } });
    assert.equal(created.status, 201);
    const pat: string = created.body.token;
    assert.equal((await api.call("GET", "/v1/organizations/me", { token: pat })).body.data.id, owner.organizationId);
    assert.match((await api.call("GET", "/v1/auth/me", { token: pat })).body.detail, /^Malformed/);
    assert.equal((await api.call("DELETE", `${path}/${created.body.id}`, { token: stranger.token })).status, 404);
    assert.equal((await api.call("DELETE", `${path}/${created.body.id}`, { token: owner.token })).status, 204);
    assert.equal((await api.call("GET", "/v1/organizations/me", { token: pat })).status, 401);
    assert.deepEqual((await api.call("GET", path, { token: owner.token })).body, []);
  });
});
