import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { decodeJwt, jwtVerify, SignJWT } from "jose";
import { topics } from "#bus/bus.ts";
import type { SeatReply, SeatRequest, seatResults } from "#contracts/room_call.ts";
import { type LiveKit, openLiveKit } from "#outbound/livekit.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { sweepCalls } from "#voice/call_sweeper.ts";
import { sweepRooms } from "#voice/room_sweeper.ts";

const agents = "/v1/agents/voice/agents";
const sessions = "/v1/agents/voice/sessions";
const calls = "/v1/agents/voice/calls";
const webhooks = "/v1/agents/voice/rooms/webhook";
const nowhere = "00000000-0000-4000-8000-000000000000";
const liveKit = { url: "http://livekit.example:7880", apiKey: "key", apiSecret: "a secret of the tests, long enough" };
const secret = new TextEncoder().encode(liveKit.apiSecret);

/** A gateway as the api sees it: figures on the bus, and an answer to each request for a seat. */
async function fakeGateway(api: ApiHarness, id: string, slots: number) {
  const asked: SeatRequest[] = [];
  const news: object[] = [];
  const gateway = { asked, news, answer: "seated" as (typeof seatResults)[number], stop: async () => {} };
  const stops = [
    await api.bus.subscribe(topics.seatRequest(id), (payload) => {
      const request = JSON.parse(payload) as SeatRequest;
      asked.push(request);
      const reply: SeatReply = { request_id: request.request_id, result: gateway.answer };
      void api.bus.publish(request.reply_to, JSON.stringify(reply));
    }),
    await api.bus.subscribe(topics.roomNews(id), (payload) => news.push(JSON.parse(payload) as object)),
  ];
  await api.bus.reportCapacity(id, { slots, inUse: 0, draining: false }, 60_000);
  gateway.stop = async () => {
    await api.bus.reportCapacity(id, { slots, inUse: 0, draining: false }, -1);
    await Promise.all(stops.map((stop) => stop()));
  };
  return gateway;
}

describe("rooms", () => {
  let api: ApiHarness;
  let agentId: string;
  let gateway: Awaited<ReturnType<typeof fakeGateway>>;
  before(async () => {
    api = await openApiHarness(undefined, { liveKit, seatAnswerMs: 100 });
    agentId = await createAgent(api);
    gateway = await fakeGateway(api, "g1", 4);
  });
  after(() => api.close());

  const asOwner = (body?: unknown) => ({ token: api.owner.token, ...(body !== undefined && { body }) });
  async function createAgent(to: ApiHarness): Promise<string> {
    const body = { name: "Desk", project_id: to.projectId, config: { instructions: "Hello {{guest}}" } };
    return (await to.call("POST", agents, { token: to.owner.token, body })).body.data.id;
  }
  const open = (body: unknown = {}, id = agentId) => api.call("POST", `${agents}/${id}/rooms`, asOwner(body));
  const callIdIn = (roomName: string) => roomName.slice(-36);
  const read = async (callId: string) => (await api.call("GET", `${calls}/${callId}`, asOwner())).body.data;
  const openInternally = (callId: string, gateway_id = "g1") =>
    api.internal("POST", `/internal/calls/${callId}/open`, { gateway_id });

  describe("a token", () => {
    it("holds exactly what a caller may do, for ten minutes, in one room", async () => {
      const { status, body } = await open();
      assert.equal(status, 201);
      assert.deepEqual(Object.keys(body).sort(), ["room_name", "token", "url"]);
      assert.equal(body.url, "ws://livekit.example:7880");
      const { payload, protectedHeader } = await jwtVerify(body.token, secret, { issuer: "key" });
      assert.equal(protectedHeader.alg, "HS256");
      assert.equal(payload.sub, "caller");
      assert.deepEqual(payload.video, {
        roomJoin: true,
        room: body.room_name,
        canPublish: true,
        canPublishSources: ["microphone"],
        canSubscribe: true,
        canPublishData: true,
      });
      assert.equal((payload.exp ?? 0) - (payload.nbf ?? 0), 600);
      const claims = ["exp", "iss", "nbf", "roomConfig", "sub", "video"];
      assert.deepEqual(Object.keys(payload).sort(), claims);
      const {
        name,
        emptyTimeout,
        departureTimeout,
        maxParticipants,
        agents: dispatched,
      } = payload.roomConfig as {
        [field: string]: unknown;
      };
      assert.deepEqual(
        { name, emptyTimeout, departureTimeout, maxParticipants, dispatched },
        { name: body.room_name, emptyTimeout: 120, departureTimeout: 20, maxParticipants: 2, dispatched: [] },
      );
    });

    it("of the agent goes to the gateway and nowhere else, and administers nothing either", async () => {
      const { body } = await open();
      const asked = gateway.asked.at(-1);
      assert.equal(asked?.room_name, body.room_name);
      assert.equal(asked?.url, body.url);
      const claims = decodeJwt<{ video: object; kind: string }>(asked?.token ?? "");
      assert.equal(claims.kind, "agent");
      assert.equal(claims.sub, "agent");
      assert.deepEqual(claims.video, {
        roomJoin: true,
        room: body.room_name,
        canPublish: true,
        canPublishSources: ["microphone"],
        canSubscribe: true,
        canPublishData: true,
        canUpdateOwnMetadata: true,
      });
      assert.equal(JSON.stringify(body).includes(asked?.token ?? "-"), false);
      const stored = await api.sql`select * from call where room_name = ${body.room_name}`;
      assert.equal(JSON.stringify(stored).includes(asked?.token ?? "-"), false);
    });

    it("with agent_name calls a LiveKit Agents worker, and takes no slot and makes no record", async () => {
      const askedBefore = gateway.asked.length;
      const body = { agent_name: "their-worker", variables: { guest: "Ada" }, metadata: { ref: 7 } };
      const answer = await open(body);
      assert.equal(answer.status, 201);
      const claims = decodeJwt<{ roomConfig: { agents: { agentName: string; metadata: string }[] } }>(
        answer.body.token,
      );
      const [dispatch] = claims.roomConfig.agents;
      assert.equal(dispatch?.agentName, "their-worker");
      assert.deepEqual(JSON.parse(dispatch?.metadata ?? ""), {
        call_id: callIdIn(answer.body.room_name),
        agent_id: agentId,
        variables: { guest: "Ada" },
        metadata: { ref: 7 },
      });
      assert.equal(gateway.asked.length, askedBefore);
      assert.equal((await api.call("GET", `${calls}/${callIdIn(answer.body.room_name)}`, asOwner())).status, 404);
    });
  });

  describe("a room", () => {
    it("is a call: reserved for two minutes, opened with its additions, listed by its transport", async () => {
      const { body } = await open({
        variables: { guest: "Ada" },
        metadata: { ref: 7 },
        config_overrides: { welcome_message: "Hi {{guest}}" },
        initial_messages: [{ role: "user", text: "before" }],
      });
      const callId = callIdIn(body.room_name);
      assert.equal(body.room_name, `va_${agentId}_${callId}`);
      const reserved = await read(callId);
      assert.equal(reserved.state, "reserved");
      assert.equal(reserved.transport, "room");
      assert.equal(reserved.room_name, body.room_name);
      assert.equal(Date.parse(reserved.expires_at) - Date.parse(reserved.created_at), 120_000);
      const opened = await openInternally(callId);
      assert.equal(opened.status, 200);
      assert.equal(opened.body.config.welcome_message, "Hi Ada");
      assert.equal(opened.body.config.instructions, "Hello Ada");
      assert.deepEqual(opened.body.input_format, { encoding: "pcm_s16le", sample_rate: 16000, container: "raw" });
      assert.deepEqual(opened.body.output_format, { encoding: "pcm_s16le", sample_rate: 24000, container: "raw" });
      assert.deepEqual(opened.body.initial_messages, [{ role: "user", text: "before" }]);
      const listed = await api.call("GET", `${calls}?transport=room&state=in_progress`, asOwner());
      assert.ok(listed.body.data.some((call: { id: string }) => call.id === callId));
      const overWebSocket = await api.call("GET", `${calls}?transport=websocket`, asOwner());
      assert.ok(overWebSocket.body.data.every((call: { transport: string }) => call.transport === "websocket"));
    });

    it("cannot be connected to over a WebSocket, whatever the secret", async () => {
      const { body } = await open();
      const known = await api.internal("GET", `/internal/calls/${callIdIn(body.room_name)}`);
      assert.equal(known.body.secret_sha256, "");
    });

    it("opens once, whoever races, and not after two minutes", async () => {
      const { body } = await open();
      const callId = callIdIn(body.room_name);
      const answers = await Promise.all(["g1", "g2", "g3"].map((id) => openInternally(callId, id)));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409]);
      const late = await open();
      api.advance(120_000);
      assert.equal((await openInternally(callIdIn(late.body.room_name))).status, 410);
      await sweepCalls({ sql: api.sql, bus: api.bus, now: api.now });
      assert.equal((await read(callIdIn(late.body.room_name))).state, "expired");
    });

    const bad: [field: string, body: unknown][] = [
      ["surprise", { surprise: 1 }],
      ["audio_format", { audio_format: {} }],
      ["variables.a b", { variables: { "a b": 1 } }],
      ["metadata", { metadata: { note: "x".repeat(17_000) } }],
      ["config_overrides.mode", { config_overrides: { mode: "realtime" } }],
      ["config_overrides.llm.base_url", { config_overrides: { llm: { base_url: "https://x.example" } } }],
      ["agent_name", { agent_name: "" }],
    ];
    for (const [field, body] of bad) {
      it(`refuses ${JSON.stringify(body).slice(0, 60)} by the path ${field}`, async () => {
        const answer = await open(body);
        assert.equal(answer.status, 400);
        assert.ok(field in answer.body.error.details, JSON.stringify(answer.body));
      });
    }

    it("is refused without a token, of another organization's agent, to a member outside, of an archived agent", async () => {
      assert.equal((await api.call("POST", `${agents}/${agentId}/rooms`, { body: {} })).status, 401);
      const rooms = `${agents}/${agentId}/rooms`;
      assert.equal((await api.call("POST", rooms, { token: api.stranger.token, body: {} })).status, 404);
      assert.equal((await api.call("POST", rooms, { token: api.member.token, body: {} })).status, 403);
      assert.equal((await open({}, nowhere)).status, 404);
      const archived = await createAgent(api);
      await api.call("DELETE", `${agents}/${archived}`, asOwner());
      assert.equal((await open({}, archived)).status, 410);
    });
  });

  describe("a seat", () => {
    it("is asked of the emptiest gateway, and of the next when that one is full", async () => {
      const roomier = await fakeGateway(api, "g2", 8);
      roomier.answer = "capacity";
      const { status, body } = await open();
      assert.equal(status, 201);
      assert.equal(roomier.asked.length, 1);
      assert.equal(gateway.asked.at(-1)?.room_name, body.room_name);
      const [call] = await api.sql`select gateway_id from call where room_name = ${body.room_name}`;
      assert.equal(call?.gateway_id, "g1");
      await roomier.stop();
    });

    it("that is not free is 503 capacity, with nothing left of the call", async () => {
      gateway.answer = "capacity";
      const answer = await open();
      gateway.answer = "seated";
      assert.equal(answer.status, 503);
      assert.equal(answer.body.code, "capacity");
      assert.equal(answer.body.error.code, "unavailable");
      assert.ok(Number(answer.headers.get("retry-after")) >= 1);
      const left = await api.sql`select 1 from call where room_name = ${gateway.asked.at(-1)?.room_name ?? ""}`;
      assert.equal(left.length, 0);
    });

    it("is asked of the next gateway when one does not answer, and is unavailable when none does", async () => {
      const silent = { slots: 9, inUse: 0, draining: false };
      await api.bus.reportCapacity("dead", silent, 60_000);
      const { status, body } = await open();
      assert.equal(status, 201);
      assert.equal(gateway.asked.at(-1)?.room_name, body.room_name);
      await gateway.stop();
      assert.equal((await open()).body.error.code, "unavailable");
      await api.bus.reportCapacity("dead", silent, -1);
      assert.equal((await open()).body.error.code, "unavailable");
      gateway = await fakeGateway(api, "g1", 4);
    });

    it("is not asked of a gateway that drains", async () => {
      await api.bus.reportCapacity("g1", { slots: 4, inUse: 0, draining: true }, 60_000);
      const asked = gateway.asked.length;
      assert.equal((await open()).status, 503);
      assert.equal(gateway.asked.length, asked);
      await api.bus.reportCapacity("g1", { slots: 4, inUse: 0, draining: false }, 60_000);
    });

    it("in a room that cannot be joined is 503 unavailable, with nothing left of the call", async () => {
      gateway.answer = "unavailable";
      const answer = await open();
      gateway.answer = "seated";
      assert.equal(answer.status, 503);
      assert.deepEqual(answer.body.error.code, "unavailable");
      const left = await api.sql`select 1 from call where room_name = ${gateway.asked.at(-1)?.room_name ?? ""}`;
      assert.equal(left.length, 0);
    });
  });

  describe("a draft session", () => {
    const session = (body: unknown, token = api.owner.token) => api.call("POST", sessions, { token, body });

    it("runs on the config it was given, without an agent", async () => {
      const config = { instructions: "Be {{mood}}", llm: { provider: "echo" } };
      const { status, body } = await session({ config, variables: { mood: "kind" } });
      assert.equal(status, 201);
      assert.deepEqual(Object.keys(body).sort(), ["room_name", "token", "url"]);
      const callId = callIdIn(body.room_name);
      assert.equal(body.room_name, `va_draft_${callId}`);
      const opened = await openInternally(callId);
      assert.equal(opened.body.config.instructions, "Be kind");
      assert.equal(opened.body.config.llm.provider, "echo");
      assert.equal("agent_id" in opened.body, false);
      const record = await read(callId);
      assert.equal(record.agent_id, null);
      assert.equal(record.project_id, api.projectId);
    });

    it("with agent_id is the agent's room", async () => {
      const { status, body } = await session({ agent_id: agentId });
      assert.equal(status, 201);
      assert.match(body.room_name, new RegExp(`^va_${agentId}_`));
    });

    it("needs one of both, a valid config, and a project of the caller", async () => {
      const refused = async (body: unknown, token?: string) => {
        const answer = await session(body, token);
        return [answer.status, ...Object.keys(answer.body.error.details ?? {})];
      };
      assert.deepEqual(await refused({}), [400, "config"]);
      assert.deepEqual(await refused({ agent_id: agentId, config: {} }), [400, "config"]);
      assert.deepEqual(await refused({ agent_id: agentId, project_id: api.projectId }), [400, "project_id"]);
      assert.deepEqual(await refused({ config: { surprise: 1 } }), [400, "config.surprise"]);
      assert.deepEqual(await refused({ config: { llm: { provider: "nobody" } } }), [400, "config.llm.provider"]);
      assert.deepEqual(await refused({ config: {}, project_id: nowhere }), [404, "project_id"]);
      assert.deepEqual(await refused({ agent_id: nowhere }), [404]);
      assert.deepEqual(await refused({ config: {}, project_id: api.projectId }, api.member.token), [403]);
      assert.deepEqual(await refused({ config: {} }, api.member.token), [400, "project_id"]);
      assert.deepEqual(await refused({ agent_id: agentId }, api.stranger.token), [404]);
    });
  });

  describe("a webhook", () => {
    const deliver = async (event: object, sign: { key?: Uint8Array; body?: string; issuer?: string } = {}) => {
      const body = JSON.stringify(event);
      const sha256 = createHash("sha256")
        .update(sign.body ?? body)
        .digest("base64");
      const token = await new SignJWT({ sha256 })
        .setProtectedHeader({ alg: "HS256" })
        .setIssuer(sign.issuer ?? "key")
        .setExpirationTime("5m")
        .sign(sign.key ?? secret);
      const response = await api.app.fetch(
        new Request(`http://api.test${webhooks}`, {
          method: "POST",
          headers: { authorization: token, "content-type": "application/webhook+json" },
          body,
        }),
      );
      return response.status;
    };

    it("of a caller who left, or of a room that is finished, reaches the gateway once", async () => {
      const { body } = await open();
      const call_id = callIdIn(body.room_name);
      const seen = gateway.news.length;
      const participant = { identity: "caller", sid: "PA_1" };
      const left = { id: "EV_1", event: "participant_left", room: { name: body.room_name }, participant };
      assert.equal(await deliver(left), 204);
      assert.equal(await deliver(left), 204);
      const agentLeft = { ...left, id: "EV_2", participant: { identity: "agent", sid: "PA_2" } };
      assert.equal(await deliver(agentLeft), 204);
      const finished = { id: "EV_3", event: "room_finished", room: { name: body.room_name } };
      const twice = await Promise.all([deliver(finished), deliver(finished)]);
      assert.deepEqual(twice, [204, 204]);
      assert.deepEqual(gateway.news.slice(seen), [
        { call_id, news: "caller_left", participant_sid: "PA_1" },
        { call_id, news: "room_finished" },
      ]);
    });

    it("of somebody else's room, or of another kind, changes nothing", async () => {
      const seen = gateway.news.length;
      assert.equal(await deliver({ id: "EV_4", event: "room_finished", room: { name: "theirs" } }), 204);
      assert.equal(await deliver({ id: "EV_5", event: "egress_started" }), 204);
      assert.equal(gateway.news.length, seen);
    });

    it("is refused with a wrong key, a wrong signature, another body, or nothing", async () => {
      const event = { id: "EV_6", event: "room_finished", room: { name: "theirs" } };
      assert.equal(await deliver(event, { key: new TextEncoder().encode("another secret, also long enough") }), 401);
      assert.equal(await deliver(event, { issuer: "another" }), 401);
      assert.equal(await deliver(event, { body: "{}" }), 401);
      assert.equal((await api.call("POST", webhooks, { body: event })).status, 401);
      assert.equal((await api.sql`select 1 from livekit_webhook where id = 'EV_6'`).length, 0);
    });
  });

  it("whose call is over are closed by the sweeper, and no others", async () => {
    const [ended, live, late] = await Promise.all([open(), open(), open()]);
    const name = (answer: { body: { room_name: string } }) => answer.body.room_name;
    await openInternally(callIdIn(name(live)));
    await openInternally(callIdIn(name(ended)));
    await api.sql`update call set state = 'expired' where room_name = ${name(late)}`;
    const callId = callIdIn(name(ended));
    await api.internal("POST", `/internal/calls/${callId}/close`, {
      gateway_id: "g1",
      end: { reason: "client_hangup", duration_ms: 1 },
      progress: { call_id: callId, items: [], turns: [] },
    });
    const closed: string[] = [];
    const server: LiveKit = {
      ...(await openLiveKit(liveKit)),
      openRooms: async () => [name(ended), name(live), name(late), "va_somebody", "lobby"],
      closeRoom: async (room) => void closed.push(room),
    };
    const sweep = () => sweepRooms({ sql: api.sql, liveKit: server, now: api.now });
    await sweep();
    assert.deepEqual(closed, [name(late)]); // A goodbye still plays in the other.
    api.advance(4000);
    await sweep();
    assert.deepEqual(closed.slice(1).sort(), [name(ended), name(late)].sort());
  });
});

describe("without LiveKit", () => {
  it("the endpoints answer 503 in the envelope and say what to set", async () => {
    const api = await openApiHarness();
    try {
      const { body } = await api.call("POST", agents, {
        token: api.owner.token,
        body: { name: "Desk", project_id: api.projectId, config: {} },
      });
      for (const [path, request] of [
        [`${agents}/${body.data.id}/rooms`, {}],
        [sessions, { config: {} }],
        [sessions, { agent_id: body.data.id }],
        [webhooks, {}],
      ] as const) {
        const answer = await api.call("POST", path, { token: api.owner.token, body: request });
        assert.equal(answer.status, 503, path);
        assert.equal(answer.body.error.code, "unavailable");
        assert.match(JSON.stringify(answer.body.error.details), /Expected a LiveKit server: there is none here/);
      }
      assert.equal((await api.sql`select 1 from call`).length, 0);
    } finally {
      await api.close();
    }
  });
});
