import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { ApiError } from "#contracts/errors.ts";
import { gatewayHeader } from "#contracts/internal_runs.ts";
import { countSignIn, signInSucceeded } from "#identity/attempt_limits.ts";
import { purgeExpiredCredentials } from "#identity/purge.ts";
import { type ApiHarness, internalSecret, openApiHarness } from "#test/kit/api_harness.ts";

const password = "correct horse battery";
const dayMs = 24 * 60 * 60 * 1000;

describe("sign-ins that fail", () => {
  let api: ApiHarness;
  let email: string;
  let userId: string;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());
  beforeEach(async () => {
    await api.sql`truncate sign_in_attempt, sign_in_address`;
    email = `info-${crypto.randomUUID()}@inn.example`;
    const signedUp = await api.call("POST", "/v1/auth/signup", { body: { email, password } });
    userId = signedUp.body.user.id;
  });

  /** As our gateway passes it on. */
  const logIn = async (as: string, from: string, given = "wrong password") => {
    const headers = {
      "content-type": "application/json",
      [gatewayHeader]: internalSecret,
      "x-forwarded-for": from,
    };
    const init = { method: "POST", headers, body: JSON.stringify({ email: as, password: given }) };
    return api.app.fetch(new Request("http://api.test/v1/auth/login", init));
  };
  /** Counts an attempt, without the cost of a password. @returns seconds to wait, 0 when it may be judged */
  const attempt = (as: string, from: string) =>
    countSignIn(api.sql, { email: as, address: from }, api.now()).then(
      () => 0,
      (error: unknown) => {
        assert.ok(error instanceof ApiError && error.code === "too_many_requests", String(error));
        return error.retryAfterS ?? Number.NaN;
      },
    );
  const waitsOf = async (count: number, of: (index: number) => [string, string]) => {
    const waits: number[] = [];
    for (let done = 0; done < count; done += 50) {
      const indexes = Array.from({ length: Math.min(50, count - done) }, (_, index) => done + index);
      waits.push(...(await Promise.all(indexes.map((index) => attempt(...of(index))))));
    }
    return waits;
  };
  const refused = (waits: readonly number[]) => waits.filter((wait) => wait > 0).length;

  it("count as one account's, however its address is written", async () => {
    const variants = ["info", "INFO", "İNFO", "ınfo", "Info", "iNFO", "inﬂo"].map((name) =>
      email.replace("info", name),
    );
    const answers: Response[] = [];
    for (const variant of variants) answers.push(await logIn(variant, "192.0.2.1"));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [401, 401, 401, 401, 401, 429, 401],
      "the sixth is too many; the last is another account",
    );
    const wait = Number(answers[5]?.headers.get("retry-after"));
    assert.ok(wait > 0 && wait <= 60, String(wait));
  });

  it("do not keep others behind the same proxy from signing in", async () => {
    for (let round = 0; round < 6; round += 1) await logIn(email, "192.0.2.1");
    assert.equal((await logIn(email, "192.0.2.1", password)).status, 429);
    assert.equal((await logIn(email, "192.0.2.2", password)).status, 200);
  });

  it("are 1000 in an hour for an address, whatever the account; of IPv6 for a /64", async () => {
    const others = (from: string) => (index: number) =>
      [`guest-${index}-${crypto.randomUUID()}@inn.example`, from] as [string, string];
    const from = (index: number) => `2001:db8:0:1::${(index % 500).toString(16)}`;
    assert.equal(refused(await waitsOf(1000, (index) => others(from(index))(index))), 0);
    const [wait = 0] = await waitsOf(1, others("2001:db8:0:1:ffff::1"));
    assert.ok(wait > 3000 && wait <= 3600, String(wait));
    assert.equal(refused(await waitsOf(1, others("2001:db8:0:2::1"))), 0);
    const before = await api.sql`select attempts from sign_in_attempt where key = 'address 2001:db8:0:1::/64'`;
    assert.equal(before[0]?.attempts, 1000, "what is refused is no failure");
    api.advance(3_601_000);
    assert.equal(refused(await waitsOf(1, others("2001:db8:0:1:ffff::1"))), 0);
  });

  it("are 200 in an hour for an account from everywhere; then strangers take turns, and its people do not wait", async () => {
    await signInSucceeded(api.sql, userId, { email, address: "198.51.100.7" }, api.now());
    const anywhere = (index: number) => [email, `203.0.${index >> 8}.${index & 255}`] as [string, string];
    assert.equal(refused(await waitsOf(200, anywhere)), 0);
    const waits = await waitsOf(10, (index) => anywhere(index + 200));
    assert.equal(refused(waits), 9, "one of all strangers is let through");
    assert.ok(waits.every((wait) => wait <= 30));
    assert.equal(await attempt(email, "198.51.100.7"), 0);
    assert.equal((await logIn(email, "198.51.100.7", password)).status, 200);
    assert.equal((await logIn(email, "203.0.113.99", password)).status, 429);
    api.advance(31_000);
    assert.equal((await logIn(email, "203.0.113.99", password)).status, 200);
    assert.equal((await logIn(email, "203.0.113.99", password)).status, 200, "it is one of the account's now");
  });

  it("are forgotten when nothing is judged by them any more", async () => {
    await logIn(email, "192.0.2.1", password);
    await logIn(email, "192.0.2.1");
    const now = (days: number) => () => new Date(api.now().getTime() + days * dayMs);
    const left = async () => [
      (await api.sql`select 1 from sign_in_attempt`).length,
      (await api.sql`select 1 from sign_in_address`).length,
    ];
    await purgeExpiredCredentials({ sql: api.sql, now: now(1) });
    assert.deepEqual(await left(), [0, 1]);
    await purgeExpiredCredentials({ sql: api.sql, now: now(181) });
    assert.deepEqual(await left(), [0, 0]);
  });
});
