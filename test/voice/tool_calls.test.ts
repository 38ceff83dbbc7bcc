/** Tools in calls, through the whole house: saved over the api, run by a gateway's threads, kept in the record. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import type { CallClient } from "#test/kit/gateway_fixture.ts";
import { openVendorHouse, type VendorHouse } from "#test/kit/vendor_house.ts";

describe("tools in a call", () => {
  let house: VendorHouse;
  let url = "";
  let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const server = createServer((request, response) => answer(request, response));
  before(async () => {
    house = await openVendorHouse();
    await once(server.listen(0, "127.0.0.1"), "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await house.stop();
  });

  /** An agent that calls these tools in its first turn. */
  const agentOf = (config: object, ...calls: { name: string; arguments?: object }[]) =>
    house.agent({
      llm: {
        provider: "scripted",
        options: { tool_calls: calls.map((call) => ({ turn: 1, ...call })), replies: ["Here you are."] },
      },
      ...config,
    });

  /** Asks, waits for the answer, and hangs up. @returns the call's record */
  async function talk(agentId: string) {
    const caller = await house.dial(agentId);
    caller.send({ type: "start", capabilities: { text_only: true } });
    caller.send({ type: "user_message", text: "Is there a room?" });
    await caller.until(() =>
      caller.messages.some((one) => one.type === "transcript" && one.role === "agent" && one.final),
    );
    return { caller, record: await recordOf(caller) };
  }

  async function recordOf(caller: CallClient) {
    const { call_id } = await caller.message("call_started");
    caller.send({ type: "hang_up" });
    await house.reports.closeOf(call_id);
    return (await house.call("GET", `/v1/agents/voice/calls/${call_id}`)).body.data;
  }

  it("are sent the secret of their connection, the new one from the next call on, and no one else is shown it", async () => {
    const secrets = ["secret-of-yesterday-1", "secret-of-today-2"];
    const shown: (string | undefined)[] = [];
    answer = (request, response) => {
      shown.push(request.headers.authorization);
      response.end(`seven rooms for ${request.headers.authorization}`);
    };
    const connection_id = await house.connect("bearer", { secret: secrets[0] as string, baseUrl: url });
    const agentId = await agentOf({ tools: [{ name: "find_room", url, connection_id }] }, { name: "find_room" });
    const before = await talk(agentId);
    await house.call("PATCH", `/v1/connections/${connection_id}`, { secret: secrets[1] });
    const next = await talk(agentId);
    assert.deepEqual(
      shown,
      secrets.map((secret) => `Bearer ${secret}`),
    );
    const told = JSON.stringify([before.caller.messages, before.record, next.caller.messages, next.record]);
    for (const secret of secrets) assert.ok(!told.includes(secret));
    const [kept] = next.record.tools;
    assert.deepEqual(
      { ...kept, started_ms: 0, duration_ms: 0, tool_call_id: "" },
      {
        tool_call_id: "",
        name: "find_room",
        source: "http",
        state: "completed",
        arguments: {},
        result: "seven rooms for ********",
        error: null,
        started_ms: 0,
        duration_ms: 0,
      },
    );
    await house.call("DELETE", `/v1/connections/${connection_id}`);
    const gone = await talk(agentId);
    assert.equal(shown.length, 2, "without its credential the host is not asked");
    const events = gone.caller.messages.flatMap((one) => (one.type === "tool_event" ? [one] : []));
    assert.equal(events.at(-1)?.error, "The connection that has its credential is gone");
  });
});
