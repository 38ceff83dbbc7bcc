import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { destinationOf } from "#contracts/hosts.ts";
import { ManualClock } from "#test/kit/gateway_fixture.ts";
import { RequestAbortedError, type RequestHead } from "../transport/transport.ts";
import { Bulkhead, type BulkheadLimits, OverloadedError } from "./bulkhead.ts";
import { type Requester, type RouteKind, requesterOf } from "./requester.ts";

const limits: BulkheadLimits = {
  total: 4,
  kind: 3,
  address: 3,
  tenant: 2,
  waiting: 6,
  waitingOfTenant: 4,
  waitMs: 5000,
};
const from = (address: string, tenant: string, kind: RouteKind = "other"): Requester => ({ address, tenant, kind });
const present = new AbortController().signal;

/** A bulkhead, and who got in, in this order. */
function openBulkhead() {
  const clock = new ManualClock();
  const bulkhead = new Bulkhead(clock, limits);
  const admitted: string[] = [];
  const refused: string[] = [];
  const leave = new Map<string, () => void>();
  const enter = (name: string, requester: Requester, signal = present) =>
    bulkhead.enter(requester, signal).then(
      (given) => {
        admitted.push(name);
        leave.set(name, given);
      },
      (error: Error) => void refused.push(`${name} ${error.name}`),
    );
  return { clock, bulkhead, admitted, refused, enter, leave: (name: string) => leave.get(name)?.() };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("the bulkhead", () => {
  it("keeps room for others: of each tenant, each address and each kind", async () => {
    const { admitted, enter } = openBulkhead();
    for (const name of ["1", "2", "3"]) void enter(`a${name}`, from("a", "t"));
    await settled();
    assert.deepEqual(admitted, ["a1", "a2"]);
    void enter("a4", from("a", "u"));
    void enter("a5", from("a", "v"));
    await settled();
    assert.deepEqual(admitted, ["a1", "a2", "a4"]);
    void enter("b1", from("b", "w"));
    void enter("b2", from("b", "x", "tax"));
    await settled();
    assert.deepEqual(admitted, ["a1", "a2", "a4", "b2"]);
  });

  it("serves lines in turn, so that a long one holds up nobody", async () => {
    const { admitted, enter, leave } = openBulkhead();
    for (const name of ["a1", "a2", "a3", "a4", "a5"]) void enter(name, from("a", "t"));
    void enter("b1", from("b", "u"));
    void enter("b2", from("b", "u"));
    void enter("b3", from("b", "v"));
    await settled();
    assert.deepEqual(admitted, ["a1", "a2", "b1"]);
    for (const name of ["a1", "b1", "a2", "b2", "a3"]) {
      leave(name);
      await settled();
    }
    assert.deepEqual(admitted, ["a1", "a2", "b1", "a3", "b2", "a4", "b3", "a5"]);
  });

  it("gives a connection back once, however often it is given", async () => {
    const { bulkhead, admitted, enter, leave } = openBulkhead();
    for (const name of ["a1", "a2", "a3", "a4"]) void enter(name, from("a", "t"));
    await settled();
    leave("a1");
    leave("a1");
    await settled();
    assert.deepEqual(admitted, ["a1", "a2", "a3"]);
    assert.equal(bulkhead.inUse, 2);
  });

  it("refuses who finds no place in line, who waits too long, and forgets who left", async () => {
    const { clock, bulkhead, admitted, refused, enter, leave } = openBulkhead();
    const gone = new AbortController();
    for (const name of ["a1", "a2"]) void enter(name, from("a", "t"));
    void enter("left", from("a", "t"), gone.signal);
    for (const name of ["a3", "a4", "a5", "beyond"]) void enter(name, from("a", "t"));
    await settled();
    assert.deepEqual(refused, ["beyond OverloadedError"]);
    gone.abort();
    await settled();
    assert.deepEqual(refused, ["beyond OverloadedError", "left RequestAbortedError"]);
    clock.advance(limits.waitMs + 1000);
    await settled();
    assert.deepEqual(
      refused.slice(2),
      ["a3", "a4", "a5"].map((name) => `${name} ${OverloadedError.name}`),
    );
    assert.equal(bulkhead.waiting, 0);
    leave("a1");
    void enter("after", from("a", "t"));
    await settled();
    assert.deepEqual(admitted, ["a1", "a2", "after"]);
    await assert.rejects(bulkhead.enter(from("a", "t"), AbortSignal.abort()), RequestAbortedError);
  });
});

describe("who a request comes from", () => {
  const requesterAt = (head: RequestHead) =>
    requesterOf(head, destinationOf(head.headers.host, head.path, "apps.example"));
  const head = (fields: { path?: string; remoteAddress?: string; headers?: Record<string, string> }) => ({
    method: "GET",
    path: "/v1/x",
    query: "",
    headers: {},
    remoteAddress: "192.0.2.1",
    signal: present,
    ...fields,
  });

  it("is one network of IPv6, and an IPv4 address however it is written", () => {
    const addressOf = (remoteAddress: string) => requesterAt(head({ remoteAddress })).address;
    assert.equal(addressOf("2001:db8:1:2::1"), addressOf("2001:0db8:0001:0002:ffff:0000:0000:0009"));
    assert.notEqual(addressOf("2001:db8:1:2::1"), addressOf("2001:db8:1:3::1"));
    assert.equal(addressOf("::ffff:192.0.2.1"), "192.0.2.1");
  });

  it("is told apart by kind of route, host and credential", () => {
    const tenants = [
      head({}),
      head({ headers: { authorization: "Bearer a" } }),
      head({ headers: { authorization: "Bearer a", "x-api-key": "b" } }),
      head({ path: "/v1/bookings/1/refund" }),
      head({ headers: { host: "shop.apps.example" } }),
      head({ path: "/-/apps/bar/v1/runs" }),
      head({ path: "/-/apps/pub/v1/runs" }),
    ].map((one) => requesterAt(one).tenant);
    assert.equal(new Set(tenants).size, tenants.length);
    const [ofHost, ofPathForm] = [
      head({ headers: { host: "pub.apps.example" } }),
      head({ path: "/-/apps/pub/v1/runs" }),
    ];
    assert.equal(requesterAt(ofHost).kind, "apps");
    assert.equal(requesterAt(ofPathForm).kind, "apps");
    assert.equal(requesterAt(head({ path: "/v1/apps/1/invoke/v1/runs" })).kind, "apps");
    assert.equal(requesterAt(head({ path: "/v1/agents/voice/calls" })).kind, "calls");
    assert.equal(requesterAt(head({ path: "/v1/law-changes" })).kind, "tax");
  });
});
