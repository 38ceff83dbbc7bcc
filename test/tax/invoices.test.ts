import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { XMLParser } from "fast-xml-parser";
import { takeNumber } from "#tax/invoices/invoice_number.ts";
import { type Answer, type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";

const stay = {
  jurisdiction_code: "DE-BW-BADEN",
  stay_date: "2026-12-01",
  nights: 3,
  nightly_rate: 120,
  currency: "EUR",
  number_of_guests: 2,
};
const hotel = {
  legal_name: "Hotel am See GmbH",
  vat_id: "DE123456789",
  address_line1: "Seestrasse 1",
  city: "Baden-Baden",
  postal_code: "76530",
  country: "DE",
  electronic_address: "7300010000001",
  electronic_address_scheme: "0088",
  contact_name: "Accounts",
  contact_phone: "+49 7221 12345",
  contact_email: "accounts@hotel.example",
  iban: "DE89370400440532013000",
  payment_terms: "Due within 14 days",
  time_zone: "Europe/Berlin",
};
const buyer = {
  name: "Example Travel GmbH",
  vat_id: "DE987654321",
  address_line1: "Hauptstrasse 5",
  city: "Berlin",
  postal_code: "10115",
  country: "DE",
  electronic_address: "DE987654321",
  electronic_address_scheme: "9930",
};
const password = "correct horse battery";
const nobody = "00000000-0000-4000-8000-000000000000";

describe("invoices", () => {
  let api: ApiHarness;
  let owner: string;

  before(async () => {
    api = await openApiHarness();
    owner = await signUp();
  });
  after(() => api.close());

  async function signUp(): Promise<string> {
    const email = `${crypto.randomUUID()}@example.com`;
    const answer = await api.call("POST", "/v1/auth/signup", { body: { email, password } });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    await api.sql`update organization set api_access_enabled = true where id = ${answer.body.organization.id}`;
    return answer.body.access_token;
  }
  /** A member of the owner's organization who administers nothing. */
  async function member(): Promise<string> {
    const email = `${crypto.randomUUID()}@example.com`;
    const signedUp = await api.call("POST", "/v1/auth/signup", { body: { email, password } });
    const me = await api.call("GET", "/v1/auth/me", { token: owner });
    await api.sql`
      update organization_member set organization_id = ${me.body.organization.id}, role = 'member'
      where user_id = ${signedUp.body.user.id}`;
    const answer = await api.call("POST", "/v1/auth/login", { body: { email, password } });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body.access_token;
  }
  /** A request with a session, or with a key. */
  const call = async (method: string, path: string, body?: unknown, credential = owner): Promise<Answer> => {
    if (!credential.startsWith("svc_")) {
      return api.call(method, path, { token: credential, ...(body !== undefined && { body }) });
    }
    const headers = { "x-api-key": credential, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await api.app.fetch(new Request(`http://api.test${path}`, { method, headers, ...sent }));
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  const expecting = async (status: number, ...request: Parameters<typeof call>) => {
    const answer = await call(...request);
    assert.equal(answer.status, status, `${request[0]} ${request[1]}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const newIssuer = (fields: object = {}, credential = owner) =>
    expecting(201, "POST", "/v1/issuers", { ...hotel, ...fields }, credential);
  const book = async (fields: object = {}, credential = owner) =>
    (await expecting(201, "POST", "/v1/bookings", { calculation: stay, ...fields }, credential)).id as string;
  const newKey = async (environment: "live" | "test") =>
    (await expecting(201, "POST", "/v1/api-keys", { environment })).api_key as string;
  /** A booking of an issuer of its own, with all that its e-invoice needs. */
  async function sendable(fields: object = {}): Promise<string> {
    const booking = await book({ issuer_id: (await newIssuer(fields)).id });
    await expecting(200, "PATCH", `/v1/bookings/${booking}/invoice-details`, { buyer, buyer_reference: "4711" });
    return booking;
  }

  describe("are sold by issuers, which", () => {
    it("are created, read, changed, listed and archived", async () => {
      const created = await newIssuer({ invoice_series: "SEE" });
      assert.equal(created.legal_name, "Hotel am See GmbH");
      assert.equal(created.tax_number, null);
      assert.deepEqual(await expecting(200, "GET", `/v1/issuers/${created.id}`), created);
      const change = { tax_number: "12/345", contact_phone: null };
      const changed = await expecting(200, "PATCH", `/v1/issuers/${created.id}`, change);
      assert.equal(changed.tax_number, "12/345");
      assert.equal(changed.contact_phone, null);
      assert.equal(changed.invoice_series, "SEE");
      const listed = await call("GET", "/v1/issuers?limit=1");
      assert.deepEqual(listed.body, [changed]);
      assert.ok(Number(listed.headers.get("x-total-count")) >= 1);

      const archived = await expecting(200, "POST", `/v1/issuers/${created.id}/archive`);
      assert.ok(archived.archived_at);
      assert.deepEqual(await expecting(200, "POST", `/v1/issuers/${created.id}/archive`), archived);
      const idsOf = async (query: string) =>
        (await expecting(200, "GET", `/v1/issuers${query}`)).map((one: { id: string }) => one.id);
      assert.ok(!(await idsOf("")).includes(created.id));
      assert.ok((await idsOf("?include_archived=true")).includes(created.id));
      await expecting(409, "PATCH", `/v1/issuers/${created.id}`, { city: "Bonn" });
      await expecting(422, "POST", "/v1/bookings", { calculation: stay, issuer_id: created.id });
    });

    it("are refused with the field that is wrong", async () => {
      const { id } = await newIssuer();
      const wrong: [string, string, object, string][] = [
        ["POST", "", { city: "Bonn" }, "legal_name"],
        ["POST", "", { ...hotel, legal_name: " " }, "legal_name"],
        ["POST", "", { ...hotel, vat_id: "123" }, "vat_id"],
        ["POST", "", { ...hotel, time_zone: "Berlin" }, "time_zone"],
        ["POST", "", { ...hotel, invoice_series: "A.B" }, "invoice_series"],
        ["PATCH", `/${id}`, { country: "Germany" }, "country"],
        ["PATCH", `/${id}`, { legal_name: null }, "legal_name"],
      ];
      for (const [method, path, body, field] of wrong) {
        const { detail } = await expecting(422, method, `/v1/issuers${path}`, body);
        assert.deepEqual(detail[0].loc, ["body", field]);
        assert.equal(typeof detail[0].type, "string");
        assert.match(detail[0].msg, /^(Expected|Required)/);
      }
    });

    it("are read by members, and changed by administrators and programs", async () => {
      const { id } = await newIssuer();
      const anybody = await member();
      await expecting(200, "GET", `/v1/issuers/${id}`, undefined, anybody);
      await expecting(403, "POST", "/v1/issuers", hotel, anybody);
      await expecting(403, "PATCH", `/v1/issuers/${id}`, { city: "Bonn" }, anybody);
      await expecting(403, "POST", `/v1/issuers/${id}/archive`, {}, anybody);
      await newIssuer({}, await newKey("live"));
    });
  });

  it("do not exist for other organizations, nor do issuers", async () => {
    const booking = await sendable();
    const { id: invoice } = await expecting(201, "POST", `/v1/bookings/${booking}/invoice`);
    const { id: issuer } = await newIssuer();
    const stranger = await signUp();
    const requests: [string, string, object?][] = [
      ["GET", `/v1/issuers/${issuer}`],
      ["PATCH", `/v1/issuers/${issuer}`, { city: "Bonn" }],
      ["POST", `/v1/issuers/${issuer}/archive`],
      ["PATCH", `/v1/bookings/${booking}/invoice-details`, { note: "Mine" }],
      ["GET", `/v1/bookings/${booking}/document`],
      ["POST", `/v1/bookings/${booking}/invoice`],
      ["GET", `/v1/bookings/${booking}/invoice`],
      ["POST", `/v1/bookings/${booking}/invoice/credit`],
      ["GET", `/v1/bookings/${booking}/invoice/ubl`],
      ["GET", `/v1/invoices/${invoice}`],
      ["GET", `/v1/invoices/${invoice}/ubl`],
    ];
    for (const [method, path, body] of requests) {
      await expecting(404, method, path, body, stranger);
      await expecting(404, method, path.replace(/[0-9a-f-]{36}/, nobody), body);
    }
    assert.deepEqual(await expecting(200, "GET", "/v1/invoices", undefined, stranger), {
      items: [],
      next_cursor: null,
    });
    assert.deepEqual(await expecting(200, "GET", "/v1/issuers", undefined, stranger), []);
    await expecting(404, "POST", "/v1/bookings", { calculation: stay, issuer_id: issuer }, stranger);
    assert.equal((await expecting(200, "GET", `/v1/bookings/${booking}/invoice`)).id, invoice);
  });

  it("are a draft until they are issued: details are set one by one, and cleared with null", async () => {
    const booking = await book({ issuer_id: (await newIssuer()).id });
    const path = `/v1/bookings/${booking}`;
    const set = async (body: object) =>
      (await expecting(200, "PATCH", `${path}/invoice-details`, body)).invoice_details;
    assert.deepEqual(await set({ buyer: { name: "Ann", city: "Rome" }, note: "Thanks" }), {
      buyer: { name: "Ann", city: "Rome" },
      note: "Thanks",
    });
    assert.deepEqual(await set({ buyer: { city: null, country: "IT" }, payment_due_date: "2026-12-24" }), {
      buyer: { name: "Ann", country: "IT" },
      note: "Thanks",
      payment_due_date: "2026-12-24",
    });
    const draft = await expecting(200, "GET", `${path}/document`);
    assert.equal(draft.state, "draft");
    assert.equal(draft.invoice_id, null);
    assert.equal(draft.number, null);
    assert.equal(draft.buyer.name, "Ann");
    assert.equal(draft.due_date, "2026-12-24");
    assert.equal(draft.validation.is_valid, false);
    assert.deepEqual(
      draft.validation.violations.map(({ rule, term, path: at }: Record<string, string>) => [rule, term, at]),
      [
        ["PEPPOL-EN16931-R003", "BT-10", "buyer_reference"],
        ["PEPPOL-EN16931-R010", "BT-49", "buyer.electronic_address"],
      ],
    );
    assert.deepEqual(await set({ buyer: null, note: null, payment_due_date: null }), {});
  });

  it("refuse details that are wrong, with the field", async () => {
    const path = `/v1/bookings/${await book()}/invoice-details`;
    const wrong: [object, (string | number)[]][] = [
      [{ buyer: "Ann" }, ["body", "buyer"]],
      [{ buyer: { country: "Italy" } }, ["body", "buyer", "country"]],
      [{ buyer: { name: "" } }, ["body", "buyer", "name"]],
      [{ payment_due_date: "2026-02-30" }, ["body", "payment_due_date"]],
      [{ payment_due_date: "soon" }, ["body", "payment_due_date"]],
      [{ payment_means_code: "71" }, ["body", "payment_means_code"]],
      [{ note: "Room\u0007 service" }, ["body", "note"]],
      [{ payment_terms: "At once\u0000" }, ["body", "payment_terms"]],
      [{ buyer: { name: "Ann\u001b[31m" } }, ["body", "buyer", "name"]],
      [{ buyer: { contact_name: "\ud800Ann" } }, ["body", "buyer", "contact_name"]],
      [{ vat_exemption: { category: "E", reason: "Small\ufffe" } }, ["body", "vat_exemption", "reason"]],
      [{ paid_amount: "-1" }, ["body", "paid_amount"]],
      [{ vat_exemption: { category: "S" } }, ["body", "vat_exemption", "category"]],
      [{ vat_exemption: 7 }, ["body", "vat_exemption"]],
      [{ vat_exemption: { category: "E", reason_code: "NONE" } }, ["body", "vat_exemption", "reason_code"]],
    ];
    for (const [body, loc] of wrong) {
      const { detail } = await expecting(422, "PATCH", path, body);
      assert.deepEqual(detail[0].loc.slice(0, loc.length), loc, JSON.stringify(detail));
    }
    await expecting(422, "POST", path.replace("invoice-details", "invoice"), { require_valid: "yes" });
    await expecting(422, "POST", path.replace("invoice-details", "invoice/credit"), { reason: "" });
    const credit = await expecting(422, "POST", path.replace("invoice-details", "invoice/credit"), {
      reason: "\u0001x",
    });
    assert.deepEqual(credit.detail[0].loc, ["body", "reason"]);
    await expecting(200, "PATCH", path, { note: "Two\r\nlines,\tand a tab: \u{1f6cf}" });
    await expecting(422, "GET", "/v1/invoices?booking_id=7");
  });

  it("are never paid over: neither when it is said, nor after the booking became cheaper", async () => {
    const booking = await sendable();
    const path = `/v1/bookings/${booking}`;
    const { total_with_tax: total } = await expecting(200, "GET", path);
    const { detail } = await expecting(422, "PATCH", `${path}/invoice-details`, { paid_amount: `${total}1` });
    assert.deepEqual(detail[0].loc, ["body", "paid_amount"]);
    assert.match(detail[0].msg, new RegExp(`at most ${total} EUR`));
    await expecting(200, "PATCH", `${path}/invoice-details`, { paid_amount: total });
    assert.equal((await expecting(200, "GET", `${path}/document`)).totals.payable, "0.00");

    await expecting(200, "POST", `${path}/refund`, { nights: 1 });
    const refused = await expecting(409, "POST", `${path}/invoice`);
    assert.match(refused.detail, /paid_amount/);
    const { total_with_tax: left } = await expecting(200, "GET", path);
    await expecting(200, "PATCH", `${path}/invoice-details`, { paid_amount: left });
    const issued = await expecting(201, "POST", `${path}/invoice`);
    assert.deepEqual([issued.document.totals.paid, issued.document.totals.payable], [left, "0.00"]);
  });

  it("freeze their booking while they are live, and a credit note thaws it", async () => {
    const booking = await sendable();
    const path = `/v1/bookings/${booking}`;
    const invoice = await expecting(201, "POST", `${path}/invoice`);
    assert.equal(invoice.state, "issued");
    assert.equal(invoice.validation.is_valid, true, JSON.stringify(invoice.validation));
    assert.deepEqual(await expecting(200, "GET", `${path}/invoice`), invoice);
    const frozen: [string, string, object][] = [
      ["POST", "adjust", { nights: 2 }],
      ["POST", "void", {}],
      ["POST", "refund", { nights: 1 }],
      ["PATCH", "invoice-details", { note: "Late" }],
      ["POST", "invoice", {}],
    ];
    for (const [method, action, body] of frozen) {
      const { detail } = await expecting(409, method, `${path}/${action}`, body);
      assert.match(detail, new RegExp(invoice.number));
    }

    const creditNote = await expecting(201, "POST", `${path}/invoice/credit`, { reason: "Wrong nights" });
    assert.equal(creditNote.type, "credit_note");
    assert.equal(creditNote.credited_invoice_id, invoice.id);
    assert.equal(creditNote.total_with_vat, invoice.total_with_vat);
    assert.equal(creditNote.document.preceding_invoice.number, invoice.number);
    assert.equal(creditNote.document.note, "Wrong nights");
    assert.equal(creditNote.validation.is_valid, true, JSON.stringify(creditNote.validation));
    const credited = await expecting(200, "GET", `/v1/invoices/${invoice.id}`);
    assert.equal(credited.state, "credited");
    assert.ok(credited.credited_at);
    await expecting(409, "POST", `${path}/invoice/credit`);
    await expecting(404, "GET", `${path}/invoice`);

    await expecting(200, "POST", `${path}/adjust`, { nights: 2 });
    const again = await expecting(201, "POST", `${path}/invoice`);
    assert.equal(again.sequence, invoice.sequence + 1);
    assert.ok(Number(again.total_with_vat) < Number(invoice.total_with_vat));
    const listed = await expecting(200, "GET", `/v1/invoices?booking_id=${booking}`);
    assert.deepEqual(
      listed.items.map(({ type, state }: Record<string, string>) => `${type} ${state}`),
      ["invoice issued", "credit_note issued", "invoice credited"],
    );
    const page = await expecting(200, "GET", `/v1/invoices?booking_id=${booking}&limit=2`);
    const rest = await expecting(200, "GET", `/v1/invoices?booking_id=${booking}&cursor=${page.next_cursor}`);
    assert.deepEqual([...page.items, ...rest.items], listed.items);
    const numbersOf = async (query: string) =>
      (await expecting(200, "GET", `/v1/invoices?${query}`)).items.map((one: { number: string }) => one.number);
    assert.deepEqual(await numbersOf(`number=${again.number}&booking_id=${booking}`), [again.number]);
    assert.equal((await numbersOf(`booking_id=${booking}&issued_from=${again.issue_date}`)).length, 3);
    assert.deepEqual(await numbersOf(`booking_id=${booking}&issued_to=2020-01-01`), []);
    await expecting(422, "GET", "/v1/invoices?issued_from=2026-02-30");
    const notes = await expecting(200, "GET", `/v1/invoices?booking_id=${booking}&type=credit_note&state=issued`);
    assert.deepEqual(
      notes.items.map(({ id }: { id: string }) => id),
      [creditNote.id],
    );
  });

  it("are not issued for a booking that has ended", async () => {
    for (const action of ["void", "refund"]) {
      const path = `/v1/bookings/${await book()}`;
      await expecting(200, "POST", `${path}/${action}`, {});
      for (const [method, what] of [
        ["POST", "invoice"],
        ["POST", "invoice/credit"],
        ["PATCH", "invoice-details"],
      ] as const) {
        const { detail } = await expecting(409, method, `${path}/${what}`, {});
        assert.equal(typeof detail, "string");
      }
    }
  });

  it("stay as they were issued, whatever becomes of the seller", async () => {
    const issuer = await newIssuer();
    const booking = await book({ issuer_id: issuer.id });
    const issued = await expecting(201, "POST", `/v1/bookings/${booking}/invoice`);
    await expecting(200, "PATCH", `/v1/issuers/${issuer.id}`, { legal_name: "Renamed GmbH" });
    await expecting(200, "POST", `/v1/issuers/${issuer.id}/archive`);
    const { document } = await expecting(200, "GET", `/v1/invoices/${issued.id}`);
    assert.deepEqual(document, issued.document);
    assert.equal((await expecting(200, "GET", `/v1/bookings/${booking}/document`)).seller.name, hotel.legal_name);
    await assert.rejects(api.sql`update invoices set number = 'X' where id = ${issued.id}`, /never rewritten/);
    const credit = await expecting(201, "POST", `/v1/bookings/${booking}/invoice/credit`);
    assert.equal(credit.document.seller.name, hotel.legal_name);
    await assert.rejects(
      api.sql`update invoices set state = 'issued', credited_at = null where id = ${issued.id}`,
      /never/,
    );
  });

  it("of small sellers bear no VAT, and say by which law", async () => {
    const booking = `/v1/bookings/${await sendable({ vat_status: "small_business" })}`;
    const { calculation, result, issuer_id } = await expecting(200, "GET", booking);
    assert.deepEqual([calculation.seller_vat_status, result.totals_by_kind.vat], ["small_business", "0.00"]);
    const longer = await expecting(200, "POST", `${booking}/adjust`, { nights: 4 });
    assert.equal(longer.result.totals_by_kind.vat, "0.00", "an adjustment as well");
    const document = await expecting(200, "GET", `${booking}/document`);
    const [group] = document.vat_breakdown;
    assert.equal(group.vat_category, "E");
    assert.match(group.exemption_reason, /§ 19 UStG/);
    assert.deepEqual(document.validation.violations, []);
    const charging = await book({ issuer_id, calculation: { ...stay, seller_vat_status: "registered" } });
    const otherwise = await expecting(200, "GET", `/v1/bookings/${charging}`);
    assert.notEqual(otherwise.result.totals_by_kind.vat, "0.00", "a booking may say otherwise");
  });

  it("are of the organization's legal profile where the booking names no issuer", async () => {
    const token = await signUp();
    const booking = await book({}, token);
    const missing = await expecting(200, "GET", `/v1/bookings/${booking}/document`, undefined, token);
    const rules = missing.validation.violations.map(({ rule }: { rule: string }) => rule);
    assert.ok(
      ["BR-06", "BR-08", "BR-S-02", "BR-CO-26"].every((rule) => rules.includes(rule)),
      rules.join(),
    );
    await expecting(200, "PATCH", "/v1/orgs/me/legal-profile", { ...hotel, legal_name: "Own Inn" }, token);
    const document = await expecting(200, "GET", `/v1/bookings/${booking}/document`, undefined, token);
    assert.equal(document.seller.name, "Own Inn");
    const { number, issuer_id } = await expecting(201, "POST", `/v1/bookings/${booking}/invoice`, {}, token);
    assert.equal(issuer_id, null);
    assert.match(number, /^INV-\d{4}-000001$/);
  });

  it("are sent as UBL when they are ready, and say what is missing when not", async () => {
    const booking = await sendable();
    const path = `/v1/bookings/${booking}`;
    const notIssued = await expecting(422, "GET", `${path}/invoice/ubl`);
    assert.equal(typeof notIssued.detail, "string");
    assert.deepEqual(
      notIssued.violations.map(({ rule }: { rule: string }) => rule),
      ["BR-02", "BR-03"],
    );

    const invoice = await expecting(201, "POST", `${path}/invoice`, { require_valid: true });
    for (const at of [`${path}/invoice/ubl`, `/v1/invoices/${invoice.id}/ubl`]) {
      const answer = await call("GET", at);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get("content-type"), "application/xml");
      assert.match(answer.headers.get("content-disposition") ?? "", new RegExp(`"${invoice.number}.xml"`));
      const { Invoice: root } = new XMLParser({ removeNSPrefix: true, parseTagValue: false }).parse(answer.body);
      assert.equal(root.ID, invoice.number);
      assert.equal(root.LegalMonetaryTotal.PayableAmount, invoice.total_with_vat);
    }
    const credit = await expecting(201, "POST", `${path}/invoice/credit`);
    const { body } = await call("GET", `/v1/invoices/${credit.id}/ubl`);
    assert.match(body, /<CreditNote /);

    const bare = await book({ issuer_id: (await newIssuer({ invoice_series: "BARE" })).id });
    const refused = await expecting(422, "POST", `/v1/bookings/${bare}/invoice`, { require_valid: true });
    assert.match(refused.detail, /BR-07/);
    const issued = await expecting(201, "POST", `/v1/bookings/${bare}/invoice`);
    assert.equal(issued.sequence, 1, "what was refused took no number");
    assert.equal(issued.validation.is_valid, false);
    for (const { rule, term, path: at, message } of (await expecting(422, "GET", `/v1/bookings/${bare}/invoice/ubl`))
      .violations) {
      assert.match(rule, /^(BR|PEPPOL|DE-R)-/);
      assert.match(term, /^B[TG]-\d+/);
      assert.match(at, /^[a-z]/);
      assert.match(message, /xpected/);
    }
  });

  it("of test keys have numbers of their own, and live ones do not see them", async () => {
    const issuer = await newIssuer({ invoice_series: "T" });
    const key = await newKey("test");
    const test = await book({ issuer_id: issuer.id }, key);
    const live = await book({ issuer_id: issuer.id });
    const numberOf = async (booking: string, credential: string) =>
      (await expecting(201, "POST", `/v1/bookings/${booking}/invoice`, {}, credential)).number as string;
    const year = new Date(api.now()).getUTCFullYear();
    assert.match(await numberOf(test, key), new RegExp(`^TEST\\.T-${year}-000001$`));
    assert.match(await numberOf(live, owner), new RegExp(`^T-${year}-000001$`));
    await expecting(404, "GET", `/v1/bookings/${test}/invoice`);
    const note = await expecting(201, "POST", `/v1/bookings/${test}/invoice/credit`, {}, key);
    assert.match(note.number, /^TEST\.CN\.T-\d{4}-000001$/);
    const types = (await expecting(200, "GET", "/v1/invoices?limit=200")).items.map(
      (one: { environment: string }) => one.environment,
    );
    assert.ok(!types.includes("test"));
  });

  it("bear the day of their seller's time zone, and begin anew with its year", async () => {
    const own = await openApiHarness();
    try {
      const signedUp = await own.call("POST", "/v1/auth/signup", { body: { email: "zones@example.com", password } });
      const token = signedUp.body.access_token as string;
      const issue = async (issuer: string) => {
        const booked = await own.call("POST", "/v1/bookings", {
          token,
          body: { calculation: stay, issuer_id: issuer },
        });
        const answer = await own.call("POST", `/v1/bookings/${booked.body.id}/invoice`, { token });
        assert.equal(answer.status, 201, JSON.stringify(answer.body));
        return answer.body as { issue_date: string; number: string };
      };
      const issuerIn = async (time_zone: string) =>
        (await own.call("POST", "/v1/issuers", { token, body: { ...hotel, time_zone } })).body.id as string;
      const [first, last] = [await issuerIn("Pacific/Kiritimati"), await issuerIn("Pacific/Pago_Pago")];
      // 25 hours apart: never the same day.
      const days = [(await issue(first)).issue_date, (await issue(last)).issue_date];
      assert.ok((days[0] ?? "") > (days[1] ?? ""), days.join(" "));

      // To noon of New Year's Day in UTC: the last of December in the one place alone.
      const newYear = Date.UTC(own.now().getUTCFullYear() + 1, 0, 1, 10, 30);
      own.advance(newYear - own.now().getTime());
      const session = await own.call("POST", "/v1/auth/login", { body: { email: "zones@example.com", password } });
      const year = new Date(newYear).getUTCFullYear();
      const later = async (issuer: string) => {
        const booked = await own.call("POST", "/v1/bookings", {
          token: session.body.access_token,
          body: { calculation: stay, issuer_id: issuer },
        });
        return (await own.call("POST", `/v1/bookings/${booked.body.id}/invoice`, { token: session.body.access_token }))
          .body.number as string;
      };
      assert.match(await later(first), new RegExp(`-${year}-000001$`));
      assert.match(await later(last), new RegExp(`-${year - 1}-000002$`));
    } finally {
      await own.close();
    }
  });

  it("never go back by a day within a series, whatever the clocks of two processes say", async () => {
    const me = await expecting(200, "GET", "/v1/auth/me");
    const organizationId = me.organization.id as string;
    const of = { organizationId, issuerId: null, environment: "live", type: "invoice" } as const;
    const seller = { invoice_series: "CLOCKS" };
    const take = (at: string) => api.sql.begin((tx) => takeNumber(tx, of, seller, new Date(at)));
    assert.deepEqual((await take("2031-05-02T00:00:00Z")).issue_date, "2031-05-02");
    const late = await take("2031-05-01T23:59:59Z");
    assert.deepEqual([late.issue_date, late.sequence], ["2031-05-02", 2]);
    const rolledBack = api.sql.begin(async (tx) => {
      await takeNumber(tx, of, seller, new Date("2031-05-03T00:00:00Z"));
      throw new Error("not issued after all");
    });
    await assert.rejects(rolledBack, /not issued/);
    const next = await take("2031-05-02T12:00:00Z");
    assert.deepEqual([next.issue_date, next.sequence], ["2031-05-02", 3]);
  });

  it("number without a gap from 1: 200 issued by 8 clients at once over 2 issuers", async () => {
    const issuers = [(await newIssuer({ invoice_series: "A" })).id, (await newIssuer({ invoice_series: "B" })).id];
    const waiting: string[] = [];
    const creator = async (issuer_id: string | undefined) => {
      for (let count = 0; count < 25; count++) waiting.push(await book({ issuer_id }));
    };
    await Promise.all(Array.from({ length: 8 }, (_, index) => creator(issuers[index % 2])));
    const taken = new Map<string, number[]>();
    const client = async () => {
      for (let booking = waiting.pop(); booking; booking = waiting.pop()) {
        const { issuer_id, sequence } = await expecting(201, "POST", `/v1/bookings/${booking}/invoice`);
        taken.set(issuer_id, [...(taken.get(issuer_id) ?? []), sequence]);
      }
    };
    await Promise.all(Array.from({ length: 8 }, client));
    for (const issuer of issuers) {
      const sequences = (taken.get(issuer) ?? []).sort((a, b) => a - b);
      assert.deepEqual(
        sequences,
        Array.from({ length: 100 }, (_, index) => index + 1),
      );
    }
    const numbers = await api.sql<{ number: string }[]>`
      select number from invoices where issuer_id = ${issuers[0] ?? ""} order by sequence`;
    assert.equal(new Set(numbers.map(({ number }) => number)).size, 100);
    assert.match(numbers.at(-1)?.number ?? "", /^A-\d{4}-000100$/);
  });

  it("are issued once, and credited once, by many that try at the same time", async () => {
    const booking = await book({ issuer_id: (await newIssuer({ invoice_series: "ONCE" })).id });
    const path = `/v1/bookings/${booking}/invoice`;
    const rivals = (at: string) => Promise.all(Array.from({ length: 12 }, () => call("POST", at)));
    for (const at of [path, `${path}/credit`]) {
      const statuses = (await rivals(at)).map(({ status }) => status).sort();
      assert.deepEqual(statuses, [201, ...Array(11).fill(409)]);
    }
    const rows = await api.sql`select sequence from invoices where booking_id = ${booking} order by position`;
    assert.deepEqual(
      rows.map(({ sequence }) => sequence),
      [1, 1],
    );
  });

  it("and the changes that they freeze exclude each other", async () => {
    for (let round = 0; round < 5; round++) {
      const path = `/v1/bookings/${await book()}`;
      const [issued, voided] = await Promise.all([call("POST", `${path}/invoice`), call("POST", `${path}/void`, {})]);
      assert.deepEqual([issued.status, voided.status].sort(), issued.status === 201 ? [201, 409] : [200, 409]);
    }
  });

  it("are billable requests when they are issued, credited or given details, and nothing of the buyer is logged by reading", async () => {
    const token = await signUp();
    const path = `/v1/bookings/${await book({}, token)}`;
    await expecting(200, "PATCH", `${path}/invoice-details`, { buyer: { name: "Ann" } }, token);
    await expecting(200, "GET", `${path}/document`, undefined, token);
    await expecting(201, "POST", `${path}/invoice`, {}, token);
    await expecting(201, "POST", `${path}/invoice/credit`, {}, token);
    const { items } = await expecting(200, "GET", "/v1/orgs/me/request-log", undefined, token);
    assert.deepEqual(
      items.map(({ method, endpoint }: Record<string, string>) => `${method} ${endpoint}`),
      [
        "POST /v1/bookings/{booking_id}/invoice/credit",
        "POST /v1/bookings/{booking_id}/invoice",
        "PATCH /v1/bookings/{booking_id}/invoice-details",
        "POST /v1/bookings",
      ],
    );
  });
});
