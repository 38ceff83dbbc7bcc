import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";

const path = "/v1/addresses/validate";
const rome = { line1: "Via Vittorio Veneto 125", city: "Roma", region: "RM", postal_code: "00187", country: "IT" };

describe("addresses over the api", () => {
  let api: ApiHarness;
  let token: string;

  before(async () => {
    api = await openApiHarness();
    token = await signUp();
  });
  after(() => api.close());

  async function signUp(): Promise<string> {
    const body = { email: `${crypto.randomUUID()}@inn.example`, password: "correct horse battery" };
    const answer = await api.call("POST", "/v1/auth/signup", { body });
    await api.sql`update organization set api_access_enabled = true where id = ${answer.body.organization.id}`;
    return answer.body.access_token;
  }
  const logOf = async (of: string) =>
    (await api.call("GET", `/v1/orgs/me/request-log?path=${encodeURIComponent(path)}`, { token: of })).body.items as {
      status: number;
      payload: unknown;
      api_key_id: number | null;
    }[];

  it("are billable: each request is in its organization's log, refused ones as well, and in no other's", async () => {
    const stranger = await signUp();
    assert.equal((await api.call("POST", path, { token, body: { address: rome } })).status, 200);
    assert.equal((await api.call("POST", path, { token, body: { address: { ...rome, country: "XX" } } })).status, 422);
    assert.equal((await api.call("POST", path, { token, body: "{" })).status, 422);
    const entries = await logOf(token);
    assert.deepEqual(
      entries.map(({ status }) => status),
      [422, 422, 200],
    );
    assert.deepEqual(entries[0]?.payload, { bytes: 1 });
    assert.deepEqual(entries[2]?.payload, { address: rome });
    assert.deepEqual(await logOf(stranger), []);
  });

  it("take an API key, and nobody without a credential", async () => {
    const { body: key } = await api.call("POST", "/v1/api-keys", { token, body: {} });
    const withKey = await api.app.fetch(
      new Request(`http://api.test${path}`, {
        method: "POST",
        headers: { "x-api-key": key.api_key, "content-type": "application/json" },
        body: JSON.stringify({ address: rome }),
      }),
    );
    assert.equal(withKey.status, 200);
    const [newest] = await logOf(token);
    assert.equal(newest?.api_key_id, key.key_id);
    assert.equal((await api.call("POST", path, { body: { address: rome } })).status, 401);
  });

  it("lead to the place whose taxes the same point is charged", async () => {
    const point = { lat: 41.9079, lng: 12.4894 };
    const address = await api.call("POST", path, { token, body: { address: rome, ...point } });
    const stay = { stay_date: "2026-03-02", nights: 2, nightly_rate: 100, currency: "EUR" };
    const calculate = (where: object) => api.call("POST", "/v1/tax/calculate", { token, body: { ...stay, ...where } });
    const byCode = await calculate({ jurisdiction_code: address.body.jurisdiction.code });
    const byPoint = await calculate({ latitude: point.lat, longitude: point.lng });
    assert.equal(byCode.status, 200);
    assert.deepEqual(byPoint.body.tax_breakdown, byCode.body.tax_breakdown);
    assert.deepEqual(byPoint.body.jurisdiction, address.body.jurisdiction);
  });
});
