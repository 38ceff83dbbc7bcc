import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Answer, type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";

const rome = { jurisdiction_code: "IT-RM-ROM", stay_date: "2026-12-01", nights: 3, nightly_rate: 120, currency: "EUR" };
const stay = { ...rome, number_of_guests: 2, star_rating: 4, property_type: "hotel" };
const password = "correct horse battery";
const nobody = "00000000-0000-4000-8000-000000000000";

describe("bookings", () => {
  let api: ApiHarness;
  let owner: string;

  before(async () => {
    api = await openApiHarness();
    owner = await signUp("owner@example.com");
  });
  after(() => api.close());

  async function signUp(email = `${crypto.randomUUID()}@example.com`): Promise<string> {
    const answer = await api.call("POST", "/v1/auth/signup", { body: { email, password } });
    await api.sql`update organization set api_access_enabled = true where id = ${answer.body.organization.id}`;
    return answer.body.access_token;
  }
  const post = (path: string, body: unknown, token = owner) => api.call("POST", `/v1/bookings${path}`, { token, body });
  const get = (path: string, token = owner) => api.call("GET", `/v1/bookings${path}`, { token });
  const book = async (calculation: object = stay, fields: object = {}) => {
    const answer = await post("", { calculation, ...fields });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return answer.body;
  };
  const change = async (path: string, body: unknown) => {
    const answer = await post(path, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  };
  /** The same request by a program with a key. */
  const withKey = async (key: string, method: string, path: string, body?: unknown) => {
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const request = new Request(`http://api.test${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const response = await api.app.fetch(request);
    return { status: response.status, body: (await response.json()) as Answer["body"] };
  };
  const newKey = async (environment: "live" | "test") =>
    (await api.call("POST", "/v1/api-keys", { token: owner, body: { environment } })).body.api_key as string;

  describe("that are made", () => {
    it("hold what was asked, what /v1/tax/calculate answers, and how they came to be", async () => {
      const booking = await book(stay, { external_reference: "PMS-77" });
      const calculated = await api.call("POST", "/v1/tax/calculate", { token: owner, body: stay });
      assert.deepEqual(booking.result, calculated.body);
      assert.deepEqual(booking.calculation, stay);
      assert.equal(booking.state, "confirmed");
      assert.equal(booking.external_reference, "PMS-77");
      assert.equal(booking.checkout_date, "2026-12-04");
      assert.equal(booking.ruleset_hash, calculated.body.ruleset_hash);
      const { changes, ...read } = (await get(`/${booking.id}`)).body;
      assert.deepEqual(read, booking);
      assert.deepEqual(
        changes.map((one: { kind: string; tax_delta: { total_tax: string } }) => [one.kind, one.tax_delta.total_tax]),
        [["created", booking.total_tax]],
      );
    });

    it("are refused as a calculation is, with the place in the body", async () => {
      const refusals: [object, number, RegExp | (string | number)[]][] = [
        [{}, 422, ["body", "calculation"]],
        [{ calculation: { ...stay, nightly_rate: 0 } }, 422, ["body", "calculation", "nightly_rate"]],
        [{ calculation: { ...stay, checkout_date: "2026-12-05" } }, 422, ["body", "calculation", "checkout_date"]],
        [{ calculation: { ...stay, guest_ages: [1] } }, 422, ["body", "calculation", "guest_ages"]],
        [{ calculation: stay, idempotency_key: "k".repeat(201) }, 422, ["body", "idempotency_key"]],
        [{ calculation: stay, external_reference: 7 }, 422, ["body", "external_reference"]],
        [{ calculation: stay, issuer_id: "none" }, 422, ["body", "issuer_id"]],
        [{ calculation: stay, issuer_id: nobody }, 404, /No such issuer/],
        [{ calculation: { ...stay, jurisdiction_code: "XX" } }, 400, /unknown jurisdiction/],
        [{ calculation: { ...stay, jurisdiction_code: undefined } }, 400, /missing coordinates/],
        [{ calculation: { ...stay, currency: "USD" } }, 400, /currency mismatch/],
      ];
      for (const [body, status, expected] of refusals) {
        const answer = await post("", body);
        assert.equal(answer.status, status, JSON.stringify(answer.body));
        if (expected instanceof RegExp) assert.match(answer.body.detail, expected);
        else {
          const [issue] = answer.body.detail;
          assert.deepEqual(issue.loc, expected);
          assert.equal(typeof issue.type, "string");
          assert.ok(issue.msg.length > 0);
        }
      }
    });

    it("name the fields that nobody reads, and refuse slips of the hand", async () => {
      const { status, body } = await post("", {
        calculation: { ...stay, loyalty: 7 },
        note: "late",
        idempotency_key: "u",
      });
      assert.deepEqual([status, body.ignored_fields], [201, ["calculation.loyalty", "note"]]);
      assert.deepEqual(body.calculation, stay);
      const again = await post("", { calculation: stay, idempotency_key: "u" });
      assert.deepEqual([again.status, again.body.ignored_fields, again.body.id], [200, undefined, body.id]);
      for (const slip of [{ calculation: { ...stay, guest_age: [8] } }, { calculation: stay, issuerid: nobody }])
        assert.deepEqual(
          [(await post("", slip)).status, (await post("", slip)).body.detail[0].type],
          [422, "extra_forbidden"],
        );
    });

    it("are refused as their organization asks of all, unless they say otherwise themselves", async () => {
      const token = await signUp();
      const settings = (method: string, body?: object) => api.call(method, "/v1/orgs/me/tax-settings", { token, body });
      assert.deepEqual((await settings("GET")).body, { require_complete: false, accept_assumed: true, strict: false });
      const unknown = {
        jurisdiction_code: "GE-TB",
        stay_date: "2026-12-01",
        nights: 2,
        nightly_rate: 200,
        currency: "GEL",
      };
      const made = await post("", { calculation: unknown, idempotency_key: "before" }, token);
      assert.equal(made.status, 201, JSON.stringify(made.body));
      const set = await settings("PATCH", { require_complete: true, strict: true });
      assert.deepEqual(set.body, { require_complete: true, accept_assumed: true, strict: true });
      const refused = await post("", { calculation: unknown }, token);
      assert.equal(refused.status, 400);
      assert.match(refused.body.detail, /^incomplete: /);
      assert.equal(refused.body.completeness.status, "incomplete");
      const adjusted = await api.call("POST", `/v1/bookings/${made.body.id}/adjust`, { token, body: { nights: 3 } });
      assert.equal(adjusted.status, 400, "an adjustment as well");
      assert.equal((await post("", { calculation: { ...unknown, require_complete: false } }, token)).status, 201);
      assert.equal(
        (await post("", { calculation: unknown, idempotency_key: "before" }, token)).status,
        200,
        "a replay",
      );
      const unread = { ...stay, loyalty: 7 };
      assert.equal((await post("", { calculation: unread }, token)).body.detail[0].type, "extra_forbidden");
      assert.equal((await post("", { calculation: { ...unread, strict: false } }, token)).status, 201);
      assert.equal((await post("", { calculation: unknown })).status, 201, "others are not asked");
      const wrong = await settings("PATCH", { require: true });
      assert.deepEqual([wrong.status, wrong.body.detail[0].type], [422, "extra_forbidden"]);
      const refund = await api.call("POST", `/v1/bookings/${made.body.id}/refund`, { token, body: {} });
      assert.equal(refund.status, 200, "money goes back all the same");
    });

    it("are 404 for other organizations and 401 without a credential", async () => {
      const { id } = await book();
      const stranger = await signUp();
      for (const [method, path] of [
        ["GET", ""],
        ["POST", "/adjust"],
        ["POST", "/refund"],
        ["POST", "/void"],
      ] as const) {
        const body = method === "POST" ? { ...(path === "/adjust" && { nights: 2 }) } : undefined;
        const answer = await api.call(method, `/v1/bookings/${id}${path}`, { token: stranger, body });
        assert.equal(answer.status, 404, `${method} ${path}`);
        assert.equal((await api.call(method, `/v1/bookings/${id}${path}`, { body })).status, 401);
        assert.equal((await api.call(method, `/v1/bookings/nonsense${path}`, { token: owner, body })).status, 404);
      }
      assert.deepEqual((await get("", stranger)).body.items, []);
    });

    it("may name an issuer of the organization that is not archived", async () => {
      const issuer = await api.call("POST", "/v1/issuers", {
        token: owner,
        body: { legal_name: "Gasthof am See GmbH" },
      });
      assert.equal(issuer.status, 201, JSON.stringify(issuer.body));
      const sold = { idempotency_key: "by an issuer", calculation: stay, issuer_id: issuer.body.id };
      const booking = await post("", sold);
      assert.deepEqual([booking.status, booking.body.issuer_id], [201, issuer.body.id]);
      assert.equal((await post("", { ...sold, issuer_id: null })).status, 409);
      assert.equal((await post("", sold, await signUp())).status, 404);
      await api.call("POST", `/v1/issuers/${issuer.body.id}/archive`, { token: owner });
      assert.equal((await post("", { ...sold, idempotency_key: "later" })).status, 422);
      assert.equal((await post("", sold)).status, 200);
    });

    it("may be at a point, and stay at the place found there", async () => {
      const { jurisdiction_code: _, ...somewhere } = stay;
      const booking = await book({ ...somewhere, latitude: 41.9, longitude: 12.5 });
      assert.match(booking.jurisdiction_code, /^IT/);
      const { status } = await post(`/${booking.id}/adjust`, { nights: 4 });
      assert.equal(status, 200);
      assert.equal((await post(`/${booking.id}/adjust`, { latitude: 48.85, longitude: 2.35 })).status, 422);
    });

    it("are live or test, and neither sees the other", async () => {
      const [live, test] = [await newKey("live"), await newKey("test")];
      const body = { calculation: stay, idempotency_key: "both" };
      const [first, second] = [
        await withKey(live, "POST", "/v1/bookings", body),
        await withKey(test, "POST", "/v1/bookings", body),
      ];
      assert.deepEqual([first.status, second.status], [201, 201]);
      assert.equal(second.body.environment, "test");
      assert.equal((await withKey(test, "GET", `/v1/bookings/${first.body.id}`)).status, 404);
      assert.equal((await withKey(live, "POST", `/v1/bookings/${second.body.id}/void`, {})).status, 404);
      const listed = await withKey(test, "GET", "/v1/bookings");
      assert.deepEqual(
        listed.body.items.map(({ id }: { id: string }) => id),
        [second.body.id],
      );
    });
  });

  describe("that are listed", () => {
    let inn: string;
    const ids = async (query: string) => {
      const { status, body } = await get(query, inn);
      assert.equal(status, 200, JSON.stringify(body));
      return body.items.map((item: { external_reference: string }) => item.external_reference);
    };
    before(async () => {
      inn = await signUp();
      for (const [index, stay_date] of ["2026-12-01", "2026-12-05", "2027-01-01", "2027-01-01"].entries()) {
        const body = { calculation: { ...stay, stay_date }, external_reference: `ref ${Math.min(index, 2)}` };
        assert.equal((await post("", body, inn)).status, 201);
      }
    });

    it("come newest first, page by page, without a gap or a repetition", async () => {
      const seen: string[] = [];
      let cursor = "";
      for (let page = 0; page < 4; page++) {
        const { body } = await get(`?limit=1${cursor}`, inn);
        seen.push(...body.items.map((item: { id: string }) => item.id));
        assert.equal(body.next_cursor === null, page === 3);
        // What is made meanwhile stands before the first page.
        if (page === 1)
          assert.equal((await post("", { calculation: stay, external_reference: "late" }, inn)).status, 201);
        cursor = `&cursor=${body.next_cursor}`;
      }
      const all = (await get("", inn)).body.items.map((item: { id: string }) => item.id);
      assert.deepEqual(seen, all.slice(1));
    });

    it("say all but the result", async () => {
      const [item] = (await get("?external_reference=ref%200", inn)).body.items;
      const { result: _, changes: __, ...summary } = (await get(`/${item.id}`, inn)).body;
      assert.deepEqual(item, summary);
    });

    it("are found by reference, state, arrival and time of creation", async () => {
      assert.deepEqual(await ids("?external_reference=ref%202"), ["ref 2", "ref 2"]);
      assert.deepEqual(await ids("?stay_from=2026-12-05&stay_to=2026-12-31"), ["ref 1"]);
      assert.deepEqual(await ids("?state=voided"), []);
      const [first] = (await get("?external_reference=ref%201", inn)).body.items;
      await post(`/${first.id}/void`, {}, inn);
      assert.deepEqual(await ids("?state=voided"), ["ref 1"]);
      const at = encodeURIComponent(first.created_at);
      assert.deepEqual(await ids(`?created_at:lt=${at}`), ["ref 0"]);
      assert.deepEqual(await ids(`?created_at:gte=${at}&created_at:lte=${at}`), ["ref 1"]);
      for (const [query, field] of [
        ["?state=gone", "state"],
        ["?stay_from=2026-02-30", "stay_from"],
        ["?limit=201", "limit"],
        ["?cursor=0", "cursor"],
        ["?nights=2", "nights"],
      ]) {
        const { status, body } = await get(query ?? "", inn);
        assert.deepEqual([status, body.detail[0].loc], [422, ["query", field]], query);
      }
    });
  });

  it("stand in the request log as they were asked and answered, refused ones too", async () => {
    const inn = await signUp();
    const { body } = await post("", { idempotency_key: "logged", calculation: stay }, inn);
    await post("", { idempotency_key: "logged", calculation: stay }, inn);
    await post("", { idempotency_key: "logged", calculation: { ...stay, nights: 1 } }, inn);
    await post(`/${body.id}/adjust`, { nights: 2 }, inn);
    await post(`/${body.id}/refund`, { refund_idempotency_key: "back" }, inn);
    await post(`/${body.id}/void`, {}, inn);
    await get(`/${body.id}`, inn);
    const log = await api.call("GET", "/v1/orgs/me/request-log", { token: inn });
    assert.deepEqual(
      log.body.items.map((entry: { endpoint: string; status: number }) => [entry.endpoint, entry.status]).reverse(),
      [
        ["/v1/bookings", 201],
        ["/v1/bookings", 200],
        ["/v1/bookings", 409],
        ["/v1/bookings/{booking_id}/adjust", 200],
        ["/v1/bookings/{booking_id}/refund", 200],
        ["/v1/bookings/{booking_id}/void", 409],
      ],
    );
  });

  describe("sent again with a key", () => {
    it("are the first one, also when it has changed meanwhile", async () => {
      const body = { idempotency_key: "again", calculation: stay };
      const first = await post("", body);
      assert.equal(first.status, 201);
      const again = await post("", body);
      assert.deepEqual([again.status, again.body], [200, first.body]);
      assert.equal(again.headers.get("idempotent-replayed"), "true");
      await change(`/${first.body.id}/adjust`, { nights: 2 });
      const later = await post("", body);
      assert.deepEqual([later.status, later.body.id, later.body.state], [200, first.body.id, "adjusted"]);
    });

    it("are the same by meaning: order, defaults, and how a number is written", async () => {
      const first = await post("", { idempotency_key: "meaning", calculation: stay });
      const { nights, ...rest } = stay;
      const same = [
        { calculation: { nights, ...rest }, idempotency_key: "meaning" },
        { idempotency_key: "meaning", external_reference: null, calculation: { ...stay, nightly_rate: "120.00" } },
        {
          idempotency_key: "meaning",
          calculation: { ...stay, rooms: 1, purpose: "leisure", checkout_date: "2026-12-04", unknown_field: 1 },
        },
        `{"idempotency_key": "meaning", "calculation": ${JSON.stringify(stay).replace("120", "1.2e2")}}`,
      ];
      for (const body of same) {
        const answer = await post("", body);
        assert.deepEqual([answer.status, answer.body.id], [200, first.body.id], JSON.stringify(body));
      }
      const other = [
        { idempotency_key: "meaning", calculation: { ...stay, nights: 4 } },
        { idempotency_key: "meaning", calculation: { ...stay, nightly_rate: "120.01" } },
        { idempotency_key: "meaning", calculation: { ...stay, booking_date: "2026-01-01" } },
        { idempotency_key: "meaning", calculation: stay, external_reference: "PMS" },
      ];
      for (const body of other) {
        const answer = await post("", body);
        assert.equal(answer.status, 409, JSON.stringify(body));
        assert.match(answer.body.detail, /idempotency_key/);
      }
    });

    it("are the same request on another day", async () => {
      const first = await post("", { idempotency_key: "two days", calculation: stay });
      const dayMs = 86_400_000;
      api.advance(dayMs);
      const session = await api.call("POST", "/v1/auth/login", { body: { email: "owner@example.com", password } });
      const again = await post("", { idempotency_key: "two days", calculation: stay }, session.body.access_token);
      api.advance(-dayMs);
      assert.deepEqual([again.status, again.body.id], [200, first.body.id]);
    });

    it("leave nothing behind when they are refused, so that the key is free for the right one", async () => {
      const key = { idempotency_key: "mended" };
      assert.equal((await post("", { ...key, calculation: { ...stay, currency: "USD" } })).status, 400);
      assert.equal((await post("", { ...key, calculation: { ...stay, nights: 0 } })).status, 422);
      assert.equal((await post("", { ...key, calculation: stay })).status, 201);
    });

    it("take keys of 200 characters, one organization's apart from another's", async () => {
      const body = { idempotency_key: "k".repeat(200), calculation: stay };
      const first = await post("", body);
      const other = await post("", body, await signUp());
      assert.deepEqual([first.status, other.status], [201, 201]);
      assert.notEqual(first.body.id, other.body.id);
    });

    it("count a key's characters as people do, 200 of them", async () => {
      const made = await post("", { idempotency_key: "🛎".repeat(200), calculation: stay });
      assert.deepEqual([made.status, made.body.idempotency_key], [201, "🛎".repeat(200)]);
      const refunded = await post(`/${made.body.id}/refund`, { refund_idempotency_key: "🛎".repeat(200), nights: 1 });
      assert.equal(refunded.status, 200);
      const tooLong = await post("", { idempotency_key: "🛎".repeat(201), calculation: stay });
      assert.deepEqual([tooLong.status, tooLong.body.detail[0].loc], [422, ["body", "idempotency_key"]]);
    });

    it("are new every time without one, and with an empty one", async () => {
      const [first, second] = [await book(), await book()];
      assert.notEqual(first.id, second.id);
      const [third, fourth] = [await book(stay, { idempotency_key: "" }), await book(stay, { idempotency_key: "" })];
      assert.notEqual(third.id, fourth.id);
      assert.equal(third.idempotency_key, null);
      const refund = { refund_idempotency_key: "", nights: 1 };
      const given = [await change(`/${third.id}/refund`, refund), await change(`/${third.id}/refund`, refund)];
      assert.equal(given[1].calculation.nights, stay.nights - 2);
    });

    it("wait for a twin for 5 seconds, and are refused then", async () => {
      const booking = await book();
      const body = { idempotency_key: "slow twin", calculation: stay };
      const answers = await api.sql.begin(async (tx) => {
        await tx`
          update bookings set idempotency_key = 'slow twin', request_fingerprint = 'unlike' where id = ${booking.id}`;
        return Promise.all([post("", body), post(`/${booking.id}/refund`, { nights: 1 })]);
      });
      for (const { status, body } of answers) {
        assert.equal(status, 409);
        assert.match(body.detail, /in progress/);
      }
    });

    it("50 times at once, make one booking", async () => {
      const body = { idempotency_key: "fifty", calculation: stay };
      const answers = await Promise.all(Array.from({ length: 50 }, () => post("", body)));
      assert.deepEqual(tally(answers), { 201: 1, 200: 49 });
      assert.equal(new Set(answers.map((answer) => answer.body.id)).size, 1);
      const rows = await api.sql`select 1 from bookings where idempotency_key = 'fifty'`;
      assert.equal(rows.length, 1);
    });

    it("50 times at once with two bodies, make one booking, and refuse the other body", async () => {
      const bodies = [3, 4].map((nights) => ({ idempotency_key: "rivals", calculation: { ...stay, nights } }));
      const sent = Array.from({ length: 50 }, (_, index) => bodies[index % 2]);
      const answers = await Promise.all(sent.map((body) => post("", body)));
      assert.deepEqual(tally(answers), { 201: 1, 200: 24, 409: 25 });
      const winner = answers.findIndex(({ status }) => status === 201) % 2;
      for (const [index, answer] of answers.entries()) {
        assert.equal(answer.status === 409, index % 2 !== winner, `request ${index}`);
      }
      assert.equal((await api.sql`select 1 from bookings where idempotency_key = 'rivals'`).length, 1);
    });
  });
});

const tally = (answers: readonly { status: number }[]) => {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};
