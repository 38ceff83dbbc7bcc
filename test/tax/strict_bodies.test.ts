/** Where money moves, a field that nobody knows is an order that nobody understood. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { bodySchemaOf, type OpenApiDocument, type Operation, operationsOf } from "#test/kit/open_api_examples.ts";

interface Schema {
  type?: string | string[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
}
type Way = (string | number)[];

/** Every place of a body in which an object may stand: `[]`, `["buyer"]`, `["nightly_rates", 0]`. */
function* objectsIn(schema: Schema, way: Way = []): Iterable<Way> {
  if (schema.properties) yield way;
  for (const [name, field] of Object.entries(schema.properties ?? {})) yield* objectsIn(field, [...way, name]);
  if (schema.items) yield* objectsIn(schema.items, [...way, 0]);
  for (const one of schema.anyOf ?? []) yield* objectsIn(one, way);
}

const bodyWith = (way: Way, value: unknown): unknown =>
  way.reduceRight((inner, step) => (step === 0 ? [inner] : { [step]: inner }), value);

/** What changes bookings, invoices and sellers. Making a booking takes unknown fields, and says so. */
const movesMoney = ({ method, path }: Operation) =>
  method !== "GET" && /^\/v1\/(bookings\/\{|issuers|orgs\/me\/legal-profile)/.test(path);

describe("every request that moves money", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());

  it("refuses fields that nobody knows, at every depth, with 422 that names them; and nothing moves", async () => {
    const { body: signedUp } = await api.call("POST", "/v1/auth/signup", {
      body: { email: "owner@inn.example", password: "correct horse battery" },
    });
    const token = signedUp.access_token;
    await api.sql`update organization set api_access_enabled = true where id = ${signedUp.organization.id}`;
    const call = async (method: string, path: string, body?: unknown) => api.call(method, path, { token, body });
    const calculation = {
      jurisdiction_code: "IT-RM-ROM",
      stay_date: "2026-12-01",
      nights: 3,
      nightly_rate: 120,
      currency: "EUR",
    };
    const booking = (await call("POST", "/v1/bookings", { calculation })).body;
    const issuer = (await call("POST", "/v1/issuers", { legal_name: "Inn" })).body;
    const states = async () => [
      (await call("GET", `/v1/bookings/${booking.id}`)).body,
      (await call("GET", "/v1/issuers")).body,
      (await call("GET", "/v1/orgs/me")).body,
      (await call("GET", `/v1/bookings/${booking.id}/invoice`)).status,
    ];
    const before = await states();
    const document: OpenApiDocument = (await call("GET", "/openapi/tax.json")).body;
    const operations = operationsOf(document).filter(movesMoney);
    assert.ok(operations.length >= 10, String(operations.length));
    let asked = 0;
    for (const operation of operations) {
      const { method, path } = operation;
      const schema = bodySchemaOf(document, operation) as Schema | undefined;
      assert.ok(schema, `${method} ${path} takes a body, if only an empty one`);
      const at = path.replace("{booking_id}", booking.id).replace("{issuer_id}", issuer.id);
      for (const way of new Set(objectsIn(schema))) {
        const { status, body } = await call(method, at, bodyWith(way, { surprise: null }));
        const name = `${method} ${path} ${way.join(".")}`;
        assert.equal(status, 422, `${name}: ${JSON.stringify(body)}`);
        const found = body.detail.find((issue: { type: string }) => issue.type === "extra_forbidden");
        assert.deepEqual(found?.loc, ["body", ...way, "surprise"], `${name}: ${JSON.stringify(body)}`);
        asked += 1;
      }
    }
    assert.ok(asked > 15, String(asked));
    assert.deepEqual(await states(), before);
  });
});
