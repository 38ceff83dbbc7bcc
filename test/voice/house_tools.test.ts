import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { frontDeskConfig } from "#standalone/first_agents.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";

const agents = "/v1/agents/voice/agents";

describe("tools of the house", () => {
  let api: ApiHarness;
  before(async () => {
    api = await openApiHarness();
  });
  after(() => api.close());

  const post = (path: string, body: object) => api.call("POST", path, { token: api.owner.token, body });

  /** A call in progress with the front desk, whose house has so many rooms. */
  async function callWith(rooms: number) {
    const { stays } = frontDeskConfig;
    const config = { ...frontDeskConfig, stays: { ...stays, rooms } };
    const agent = await post(agents, { name: "Desk", project_id: api.projectId, config });
    assert.equal(agent.status, 201, JSON.stringify(agent.body));
    const reserved = await post(`${agents}/${agent.body.data.id}/calls/websocket`, {});
    const callId = reserved.body.data.call_id;
    const opened = await api.internal("POST", `/internal/calls/${callId}/open`, { gateway_id: "g1" });
    assert.equal(opened.status, 200, JSON.stringify(opened.body));
    const ask = async (name: string, given: object) =>
      (await api.internal("POST", `/internal/calls/${callId}/tools/${name}`, { tool_call_id: "c1", arguments: given }))
        .body;
    return { callId, ask };
  }

  const stay = { arrival: "2035-03-04", nights: "three", guests: "two" };

  it("find a room, quote the stay with its tax, and book what was quoted", async () => {
    const { ask } = await callWith(12);
    const found = await ask("find_stay", stay);
    assert.equal(found.result?.free, 12, JSON.stringify(found));
    assert.match((await ask("book_stay", { name: "Ada" })).error, /Nothing was quoted/);
    const quoted = (await ask("quote_stay", stay)).result;
    // 360.00 and 10 % VAT, and Rome's contribution of two guests for three nights.
    assert.ok(Number(quoted.tax) > 36, quoted.tax);
    assert.equal(Number(quoted.total), 360 + Number(quoted.tax));
    const booked = (await ask("book_stay", { name: "Ada" })).result;
    const [row] = await api.sql<{ state: string; total_tax: string; external_reference: string }[]>`
      select state, total_tax, external_reference from bookings where id = ${booked.booking_id}`;
    assert.deepEqual([row?.state, Number(row?.total_tax)], ["confirmed", Number(quoted.tax)]);
    assert.match(row?.external_reference ?? "", /^Ada /);
    assert.equal((await ask("find_stay", stay)).result.free, 11);
    const again = (await ask("book_stay", { name: "ada" })).result;
    assert.equal(again?.booking_id ?? booked.booking_id, booked.booking_id);
  });

  it("book once, also when two ask at once", async () => {
    const { ask } = await callWith(12);
    const other = { ...stay, arrival: "2035-05-04" };
    await ask("quote_stay", other);
    const both = await Promise.all([ask("book_stay", { name: "Bo" }), ask("book_stay", { name: "Bo" })]);
    assert.equal(new Set(both.map(({ result }) => result.booking_id)).size, 1);
  });

  it("tell what is not free, and what they did not understand", async () => {
    const { ask } = await callWith(1);
    const full = { ...stay, arrival: "2035-07-04" };
    await ask("quote_stay", full);
    await ask("book_stay", { name: "Cy" });
    assert.match((await ask("find_stay", full)).result.say, /nothing is free/);
    assert.match((await ask("quote_stay", { ...full, arrival: "soon" })).error, /day of arrival/);
    assert.match((await ask("quote_stay", { ...full, nights: "many" })).error, /number of nights/);
  });

  it("are for calls in progress alone, and behind the internal secret", async () => {
    const { callId } = await callWith(1);
    const path = `/internal/calls/${callId}/tools/find_stay`;
    assert.equal((await post(path, { tool_call_id: "c1", arguments: stay })).status, 401);
    const nowhere = "/internal/calls/00000000-0000-4000-8000-000000000000/tools/find_stay";
    assert.equal((await api.internal("POST", nowhere, { tool_call_id: "c1", arguments: stay })).status, 404);
  });

  it("ask for a house", async () => {
    const config = { builtin_tools: ["find_stay"] };
    const refused = await post(agents, { name: "Desk", project_id: api.projectId, config });
    assert.deepEqual([refused.status, Object.keys(refused.body.error.details)], [400, ["config.stays"]]);
  });
});
