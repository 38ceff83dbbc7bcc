import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { purgeRequestLog } from "#accounts/request_log.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";

const stay = { jurisdiction_code: "IT-RM-ROM", stay_date: "2026-03-02", nights: 2, nightly_rate: 100, currency: "EUR" };
const password = "correct horse battery";

describe("billable requests", () => {
  let api: ApiHarness;
  let owner: string;

  before(async () => {
    api = await openApiHarness();
    ({ token: owner } = await signUp());
  });
  after(() => api.close());

  async function signUp() {
    const body = { email: `${crypto.randomUUID()}@example.com`, password };
    const answer = await api.call("POST", "/v1/auth/signup", { body });
    await api.sql`update organization set api_access_enabled = true where id = ${answer.body.organization.id}`;
    return { token: answer.body.access_token as string };
  }
  const newKey = async (token: string) =>
    (await api.call("POST", "/v1/api-keys", { token, body: {} })).body as { api_key: string; key_id: number };
  const calculate = async (
    headers: Record<string, string>,
    body: object | string = stay,
    path = "/v1/tax/calculate",
  ) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const response = await api.app.fetch(
      new Request(`http://api.test${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: text,
      }),
    );
    // biome-ignore lint/suspicious/noExplicitAny: a test reads bodies as a client in JavaScript does
    return { status: response.status, body: (await response.json()) as any };
  };
  const logOf = async (token: string, query = "") =>
    (await api.call("GET", `/v1/orgs/me/request-log${query}`, { token })).body as {
      items: { id: number; endpoint: string; status: number; payload: unknown; api_key_id: number | null }[];
      next_cursor: number | null;
    };

  it("take an API key or an access token; with both the key decides", async () => {
    const { api_key: key } = await newKey(owner);
    const stranger = await signUp();
    for (const headers of [{ "x-api-key": key }, { authorization: `Bearer ${owner}` }]) {
      const answer = await calculate(headers);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      assert.ok(Number(answer.body.tax_breakdown.total_tax) > 0);
    }
    assert.equal((await calculate({ "x-api-key": key, authorization: `Bearer ${stranger.token}` })).status, 200);
    assert.equal((await logOf(stranger.token)).items.length, 0);
    assert.equal((await calculate({ "x-api-key": "nonsense", authorization: `Bearer ${owner}` })).status, 401);
  });

  it("say of a key whether it was missing, malformed or not accepted; unknown and revoked read alike", async () => {
    const { api_key: key, key_id } = await newKey(owner);
    assert.equal((await calculate({ "x-api-key": key })).status, 200);
    const refusal = async (headers: Record<string, string>) => {
      const { status, body } = await calculate(headers);
      assert.equal(status, 401);
      return body.detail as string;
    };
    assert.match(await refusal({}), /^Missing/);
    assert.match(await refusal({ "x-api-key": " " }), /^Missing/);
    const mistyped = key.slice(0, 20) + (key[20] === "a" ? "b" : "a") + key.slice(21);
    for (const wrong of ["nonsense", key.slice(0, -1), mistyped])
      assert.match(await refusal({ "x-api-key": wrong }), /^Malformed/);
    const { api_key: gone, key_id: goneId } = await newKey(owner);
    await api.sql`delete from api_key where id = ${goneId}`;
    const unknown = await refusal({ "x-api-key": gone });
    await api.call("DELETE", `/v1/api-keys/${key_id}`, { token: owner });
    assert.equal(await refusal({ "x-api-key": key }), unknown, "and at once, although it was remembered");
    assert.match(unknown, /not accepted/);
  });

  it("are what a key opens: where a person is needed a living key is a 403, any other a 401", async () => {
    const { api_key: key, key_id } = await newKey(owner);
    const ask = async (method: string, path: string, apiKey: string) => {
      const headers = { "x-api-key": apiKey, "content-type": "application/json" };
      const response = await api.app.fetch(new Request(`http://api.test${path}`, { method, headers }));
      return { status: response.status, body: (await response.json()) as { detail: string } };
    };
    const forPeople = [
      ["GET", "/v1/api-keys"],
      ["POST", "/v1/api-keys"],
      ["GET", "/v1/auth/me"],
      ["GET", "/v1/orgs/me/request-log"],
      ["POST", "/v1/personal-access-tokens"],
      ["PATCH", `/v1/admin/organizations/${crypto.randomUUID()}`],
    ] as const;
    for (const [method, path] of forPeople) {
      const { status, body } = await ask(method, path, key);
      assert.equal(status, 403, `${method} ${path}`);
      assert.match(body.detail, /needs a signed-in user/);
      assert.equal((await ask(method, path, "nonsense")).status, 401);
    }
    const organization = await ask("GET", "/v1/orgs/me", key);
    const asPerson = await api.call("GET", "/v1/orgs/me", { token: owner });
    assert.deepEqual([organization.status, organization.body], [200, asPerson.body]);
    await api.call("DELETE", `/v1/api-keys/${key_id}`, { token: owner });
    assert.equal((await ask("GET", "/v1/orgs/me", key)).status, 401);
    for (const [method, path] of forPeople) assert.equal((await ask(method, path, key)).status, 401);
  });

  it("name the place of what is wrong, in arrays by number", async () => {
    const wrong = { ...stay, nights: "two", guest_ages: [40, "x"], nightly_rate: 0 };
    const { status, body } = await calculate({ authorization: `Bearer ${owner}` }, wrong);
    assert.equal(status, 422);
    const locations = body.detail.map(({ loc }: { loc: unknown }) => loc);
    for (const loc of [
      ["body", "nights"],
      ["body", "guest_ages", 1],
      ["body", "nightly_rate"],
    ]) {
      assert.ok(
        locations.some((one: unknown) => JSON.stringify(one) === JSON.stringify(loc)),
        JSON.stringify(loc),
      );
    }
    const elsewhere = await calculate({ authorization: `Bearer ${owner}` }, { ...stay, jurisdiction_code: "QQ" });
    assert.deepEqual([elsewhere.status, typeof elsewhere.body.detail], [400, "string"]);
    const checkout = await calculate({ authorization: `Bearer ${owner}` }, { ...stay, checkout_date: "2026-03-09" });
    assert.deepEqual(checkout.body.detail[0].loc, ["body", "checkout_date"]);
  });

  it("are logged with a redacted payload, refused ones and unreadable ones included", async () => {
    const { token } = await signUp();
    const { api_key: key, key_id } = await newKey(token);
    const secretive = {
      ...stay,
      guests: [
        { email: "guest@example.com", notes: `key ${key}`, deep: { card_number: "4111", list: [{ apiKey: "x" }] } },
      ],
      PassWord: { nested: true },
      idempotency_key: "kept",
    };
    assert.equal((await calculate({ "x-api-key": key }, secretive)).status, 200);
    assert.equal((await calculate({ "x-api-key": key }, { nights: 0 })).status, 422);
    assert.equal((await calculate({ "x-api-key": key }, '{"password": "hunter2"')).status, 422);
    assert.equal((await calculate({ "x-api-key": key }, { ...stay, jurisdiction_code: "XX-YY" })).status, 400);
    assert.equal((await calculate({ "x-api-key": "nonsense" })).status, 401);
    await api.call("GET", "/v1/jurisdictions", { token });

    const { items } = await logOf(token);
    assert.deepEqual(
      items.map(({ endpoint, status, api_key_id }) => [endpoint, status, api_key_id]),
      [400, 422, 422, 200].map((status) => ["/v1/tax/calculate", status, key_id]),
      "newest first, billable calls alone, none without a credential",
    );
    assert.deepEqual(items[1]?.payload, { bytes: 22 });
    const payload = items[3]?.payload as typeof secretive;
    assert.deepEqual(payload.guests, [
      {
        email: "[redacted]",
        notes: "key [redacted]",
        deep: { card_number: "[redacted]", list: [{ apiKey: "[redacted]" }] },
      },
    ]);
    assert.deepEqual([payload.PassWord, payload.idempotency_key, payload.nights], ["[redacted]", "kept", 2]);
    assert.ok(!JSON.stringify(items).includes("hunter2"));
  });

  it("are kept for the days that are set, and no longer", async () => {
    const { token } = await signUp();
    for (let nights = 1; nights <= 3; nights += 1)
      await calculate({ authorization: `Bearer ${token}` }, { ...stay, nights });
    const [oldest, , newest] = (await logOf(token)).items.map(({ id }) => id).reverse();
    const days = 24 * 60 * 60 * 1000;
    const aged = async (id: number | undefined, ms: number) =>
      api.sql`update request_log set created_at = ${new Date(api.now().getTime() - ms)} where id = ${id ?? 0}`;
    await aged(oldest, 90 * days + 1000);
    await aged(newest, 90 * days - 60_000);
    await purgeRequestLog({ sql: api.sql, now: api.now }, 90);
    assert.deepEqual((await logOf(token)).items.length, 2);
    await purgeRequestLog({ sql: api.sql, now: api.now }, 89);
    assert.deepEqual((await logOf(token)).items.length, 1);
  });

  it("are listed by pages and filters, to the organization's administrators alone", async () => {
    const { token } = await signUp();
    for (let nights = 1; nights <= 5; nights += 1)
      await calculate({ authorization: `Bearer ${token}` }, { ...stay, nights });
    await calculate({ authorization: `Bearer ${token}` }, { ...stay, nights: 0 });
    await calculate({ authorization: `Bearer ${token}` }, { calculations: [stay] }, "/v1/tax/calculate/batch");
    const pages: number[][] = [];
    let cursor: number | null = null;
    do {
      const page = await logOf(token, `?limit=3${cursor === null ? "" : `&cursor=${cursor}`}`);
      pages.push(page.items.map(({ id }) => id));
      cursor = page.next_cursor;
    } while (cursor !== null);
    assert.deepEqual(
      pages.map(({ length }) => length),
      [3, 3, 1],
    );
    const ids = pages.flat();
    assert.deepEqual(
      ids,
      [...new Set(ids)].sort((a, b) => b - a),
    );
    assert.equal((await logOf(token, "?status=422")).items.length, 1);
    assert.equal((await logOf(token, "?path=/v1/tax/calculate")).items.length, 6);
    assert.equal((await logOf(token, "?path=/v1/tax/calculate/batch&status=200")).items.length, 1);
    assert.equal(
      (await logOf(owner, `?cursor=${ids[0]}`)).items.some(({ id }) => ids.includes(id)),
      false,
    );
  });

  it("are all in the log when many come at once", async () => {
    const { token } = await signUp();
    await Promise.all(Array.from({ length: 40 }, () => calculate({ authorization: `Bearer ${token}` })));
    assert.equal((await logOf(token, "?limit=200")).items.length, 40);
  });

  it("find places by name, the best match first", async () => {
    const list = async (query: string) => {
      const answer = await api.call("GET", `/v1/jurisdictions${query}`, { token: owner });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return { codes: answer.body.map((one: { code: string }) => one.code) as string[], all: answer };
    };
    assert.equal((await list("?q=rome")).codes[0], "IT-RM-ROM");
    assert.equal((await list("?q=ROMA")).codes[0], "IT-RM-ROM");
    const italy = (await list("?q=ital")).all.body[0];
    assert.deepEqual([italy.code, italy.type, italy.parent, italy.country], ["IT", "country", null, "IT"]);
    assert.deepEqual(Object.keys(italy).sort(), [
      "code",
      "country",
      "coverage",
      "local_name",
      "name",
      "parent",
      "status",
      "type",
    ]);
    const first = await list("?limit=2&type=country");
    const second = await list("?limit=2&offset=2&type=country");
    assert.ok(Number(first.all.headers.get("x-total-count")) > 230);
    const whole = (await list("?limit=1000")).codes;
    assert.equal(whole.filter((code) => code.length === 2).length, 249, "every country of ISO 3166-1");
    assert.equal(new Set([...first.codes, ...second.codes]).size, 4);
    const below = await list("?country=it&parent=IT&limit=1000");
    assert.ok(below.all.body.every((one: { parent: string }) => one.parent === "IT"));
    assert.equal((await api.call("GET", "/v1/jurisdictions")).status, 401);
    assert.equal((await api.call("GET", "/v1/jurisdictions?type=planet", { token: owner })).status, 422);
  });
});
