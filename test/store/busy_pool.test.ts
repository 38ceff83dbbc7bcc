/** What becomes of everybody else when many requests change things at once. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ApiError } from "#contracts/errors.ts";
import { openSql, unavailableStore } from "#store/sql.ts";
import { eventually } from "#test/kit/app_client.ts";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { type BookingDesk, openBookingDesk } from "#test/kit/tax/booking_desk.ts";
import { ruleOf } from "#test/kit/tax/calculation_fixture.ts";
import { patienceMs } from "../kit/patience.ts";

const levy = ruleOf("levy", { unit: "person_night", amount: { flat: "3.00" } });

describe("many changes at once", () => {
  let desk: BookingDesk;
  before(async () => {
    desk = await openBookingDesk([levy]);
  });
  after(() => desk.close());

  it("60 refunds and adjusts of different bookings are all answered, and so is who reads meanwhile", {
    timeout: patienceMs,
  }, async () => {
    const bookings = await Promise.all(Array.from({ length: 60 }, () => desk.book()));
    // A process that has just started remembers no rules: each change reads them.
    desk.enact([levy]);
    const changes = bookings.map(({ id }, index) =>
      desk.call("POST", `/v1/bookings/${id}/${index % 2 === 0 ? "refund" : "adjust"}`, { nights: 1 }),
    );
    const reads = bookings.map(({ id }) => desk.call("GET", `/v1/bookings/${id}`));
    for (const { status, body } of await Promise.all([...changes, ...reads])) {
      assert.equal(status, 200, JSON.stringify(body));
    }
  });
});

describe("a pool of connections", () => {
  let database: TestDatabase;
  before(async () => {
    database = await createTestDatabase();
  });
  after(() => database.drop());

  const isUnavailable = (error: unknown) => {
    const shown = error instanceof ApiError ? error : unavailableStore(error);
    return shown?.code === "unavailable" && shown.retryAfterS !== undefined;
  };

  it("answers statements while its transactions wait, and refuses the transaction that waits too long", async () => {
    const sql = openSql({ databaseUrl: database.url, connectionsMax: 4, waitMsMax: 50 });
    const ends: (() => void)[] = [];
    const open = () =>
      sql.begin(async (transaction) => {
        await transaction`select 1`;
        await new Promise<void>((resolve) => ends.push(resolve));
      });
    const begun = [open(), open()];
    await eventually(async () => ends.length === 2, "both stand open");
    await assert.rejects(open(), isUnavailable);
    const rows = await Promise.all(Array.from({ length: 50 }, () => sql`select 1 as one`));
    assert.equal(rows.length, 50);
    for (const end of ends) end();
    await Promise.all(begun);
    await sql.end({ timeout: 5 });
  });

  it("gives up a statement that takes too long, a lock that is not given, and a transaction that stands still", async () => {
    const sql = openSql({ databaseUrl: database.url, statementMsMax: 50, lockMsMax: 20 });
    await assert.rejects(sql`select pg_sleep(30)`, isUnavailable);
    await database.sql.begin(async (holder) => {
      await holder`lock table organization`;
      await assert.rejects(sql`select 1 from organization`, isUnavailable);
    });
    const [limits] = await database.sql`select current_setting('idle_in_transaction_session_timeout') as idle`;
    assert.equal(limits?.idle, "10s");
    await sql.end({ timeout: 5 });
  });
});
