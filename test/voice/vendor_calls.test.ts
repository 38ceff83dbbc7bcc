import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { VendorTwin } from "#contracts/vendor_twin.ts";
import { startTwin as startDeepgram } from "#providers/deepgram/twin.ts";
import { startTwin } from "#providers/openai/twin.ts";
import type { CallClient } from "#test/kit/gateway_fixture.ts";
import { voiceSample } from "#test/kit/session_harness.ts";
import { openVendorHouse, type VendorHouse } from "#test/kit/vendor_house.ts";

const agents = "/v1/agents/voice/agents";

/** `ms` of voice and a silence that ends a turn, at once: detection goes by the audio's own time. */
function speakTo(caller: CallClient, ms: number, silenceMs = 700): void {
  const sound = new Int16Array(16 * (ms + silenceMs));
  for (let at = 0; at < 16 * ms; at += 1) sound[at] = voiceSample(at);
  for (let at = 0; at < sound.length; at += 320) caller.ws.send(Buffer.from(sound.slice(at, at + 320).buffer));
}

describe("a call whose agent uses a vendor", () => {
  let house: VendorHouse;
  let twin: VendorTwin;
  let access: { secret: string; baseUrl: string };
  before(async () => {
    twin = await startTwin();
    assert.ok(twin.access);
    access = twin.access;
    const at = { provider: "openai", model: "twin-1", base_url: access.baseUrl } as const;
    const tokens = { per_million_input_tokens: 1, per_million_cached_tokens: 1, per_million_output_tokens: 2 };
    house = await openVendorHouse({
      currency: "EUR",
      prices: [
        { ...at, stage: "stt", per_minute: 0.6 },
        { ...at, stage: "llm", ...tokens },
      ],
    });
  });
  after(async () => {
    await house.stop();
    await twin.close();
  });

  const finals = (caller: CallClient, role: "agent" | "user") =>
    caller.messages.filter(
      (one): one is Extract<typeof one, { type: "transcript" }> =>
        one.type === "transcript" && one.role === role && one.final,
    );
  const finalOf = (caller: CallClient, role: "agent" | "user") => caller.until(() => finals(caller, role)[0]);
  const withModel = async (connectionId: string) =>
    house.agent({ llm: { provider: "openai", model: "twin-1", connection_id: connectionId } });

  it("is answered by the vendor's model, with the key of the connection", async () => {
    twin.play("llm", "answers");
    const caller = await house.dial(await withModel(await house.connect("openai", access)));
    caller.send({ type: "user_message", text: "When is breakfast?" });
    assert.match((await finalOf(caller, "agent")).text ?? "", /You said: When is breakfast\?/);
    caller.send({ type: "hang_up" });
    assert.equal((await caller.message("call_ended")).reason, "client_hangup");
  });

  it("hears, thinks and speaks through the vendor", async () => {
    for (const stage of ["stt", "llm", "tts"] as const) twin.play(stage, "answers");
    const stage = { provider: "openai", model: "twin-1", connection_id: await house.connect("openai", access) };
    const caller = await house.dial(await house.agent({ stt: { ...stage, language: "de" }, llm: stage, tts: stage }));
    speakTo(caller, 700);
    assert.match((await finalOf(caller, "user")).text ?? "", /^I heard \d+ ms in de\.$/);
    assert.match((await finalOf(caller, "agent")).text ?? "", /You said: I heard/);
    await caller.until(() => caller.audio.some((frame) => frame.some((byte) => byte !== 0)));
    assert.deepEqual(
      caller.messages.filter(({ type }) => type === "error"),
      [],
    );
    caller.send({ type: "hang_up" });
    await caller.whenClosed();
  });

  it("tells what each turn used of whom, and what it cost where a price is known", async () => {
    for (const stage of ["stt", "llm", "tts"] as const) twin.play(stage, "answers");
    const stage = { provider: "openai", model: "twin-1", connection_id: await house.connect("openai", access) };
    const caller = await house.dial(await house.agent({ stt: stage, llm: stage, tts: stage }));
    speakTo(caller, 700);
    const turn = await caller.message("turn_metrics");
    caller.send({ type: "hang_up" });
    const { usage } = await caller.message("call_ended");
    const [stt, llm, tts] = turn.vendors ?? [];
    assert.deepEqual(
      turn.vendors?.map(({ stage, provider, model }) => [stage, provider, model]),
      [
        ["stt", "openai", "twin-1"],
        ["llm", "openai", "twin-1"],
        ["tts", "openai", "twin-1"],
      ],
    );
    assert.ok(stt?.audio_ms && llm?.prompt && llm.completion && tts?.characters);
    assert.equal(stt.cost, Math.round((stt.audio_ms / 60_000) * 0.6 * 1e9) / 1e9);
    assert.equal(llm.cost, (llm.prompt + 2 * llm.completion) / 1e6);
    // Speech has no row in the table.
    assert.equal(tts.cost, null);
    const known = Math.round((stt.cost + llm.cost) * 1e9) / 1e9;
    assert.deepEqual(turn.cost, { currency: "EUR", amount: null, known, unknown: ["tts openai twin-1"] });
    // A call of one turn and nothing else.
    assert.deepEqual([usage.vendors, usage.cost], [turn.vendors, turn.cost]);
    await caller.whenClosed();
    const { call_id } = await caller.message("call_started");
    await house.reports.closeOf(call_id);
    const { data } = (await house.call("GET", `/v1/agents/voice/calls/${call_id}`)).body;
    assert.deepEqual([data.turns[0].vendors, data.turns[0].cost], [turn.vendors, turn.cost]);
    assert.deepEqual(data.usage.cost, turn.cost);
  });

  for (const model of ["nova-3", "flux-general-en"]) {
    it(`is heard as it is spoken by ${model} of Deepgram, turn by turn`, async () => {
      const deepgram = await startDeepgram();
      assert.ok(deepgram.access);
      const connection_id = await house.connect("deepgram", deepgram.access);
      const stt = { provider: "deepgram", model, connection_id };
      const llm = { provider: "scripted", options: { replies: ["One.", "Two."] } };
      const caller = await house.dial(await house.agent({ stt, llm, tts: { provider: "scripted" } }));
      for (const turns of [1, 2]) {
        speakTo(caller, 700);
        await caller.until(() => finals(caller, "agent").length === turns);
      }
      assert.ok(caller.messages.some((one) => one.type === "transcript" && one.role === "user" && !one.final));
      for (const { text } of finals(caller, "user")) assert.match(text ?? "", /^I heard \d+ ms\.$/);
      assert.deepEqual(
        caller.messages.filter(({ type }) => type === "error"),
        [],
      );
      caller.send({ type: "hang_up" });
      await caller.whenClosed();
      await deepgram.close();
    });
  }

  for (const provider of ["elevenlabs", "cartesia"]) {
    it(`is spoken by ${provider}, answer by answer`, async () => {
      const { startTwin: start } = await import(`#providers/${provider}/twin.ts`);
      const voice: VendorTwin = await start();
      assert.ok(voice.access);
      const tts = { provider, voice: "a-voice", connection_id: await house.connect(provider, voice.access) };
      const llm = { provider: "scripted", options: { replies: ["One room.", "Two rooms."] } };
      const caller = await house.dial(await house.agent({ llm, tts }));
      for (const turns of [1, 2]) {
        caller.send({ type: "user_message", text: "How many?", urgency: "immediate" });
        await caller.until(
          () => caller.messages.filter(({ type }) => type === "agent_speech_started").length === turns,
        );
        const heard = caller.audio.length;
        await caller.until(() => caller.audio.slice(heard).some((frame) => frame.some((byte) => byte !== 0)));
      }
      assert.deepEqual(
        caller.messages.filter(({ type }) => type === "error"),
        [],
      );
      caller.send({ type: "hang_up" });
      await caller.whenClosed();
      await voice.close();
    });
  }

  for (const [vendor, stage, model] of [
    ["openai", "stt"],
    ["openai", "llm"],
    ["openai", "tts"],
    ["anthropic", "llm"],
    ["deepgram", "stt", "nova-3"],
    ["deepgram", "stt", "flux-general-en"],
    ["elevenlabs", "tts"],
    ["cartesia", "tts"],
  ] as const) {
    it(`goes on and says so when ${[vendor, stage, model].filter(Boolean).join(" ")} fails, limits, sends garbage or breaks off`, async () => {
      const { startTwin: start } = await import(`#providers/${vendor}/twin.ts`);
      const failing: VendorTwin = await start();
      assert.ok(failing.access);
      const connection_id = await house.connect(vendor, failing.access);
      const settings = { provider: vendor, connection_id, model: model ?? "twin-1", voice: "a-voice" };
      const agentId = await house.agent({
        stt: { provider: "scripted", options: { transcripts: ["Hello."] } },
        llm: { provider: "scripted", options: { replies: ["Good evening."] } },
        [stage]: settings,
      });
      for (const behaviour of ["fails", "rate_limited", "garbage", "drops"] as const) {
        failing.play(stage, behaviour);
        const caller = await house.dial(agentId);
        // Our own detection waits longer where the vendor is to end the turn.
        if (stage === "stt") speakTo(caller, 700, 3000);
        else caller.send({ type: "user_message", text: "Hello." });
        const { code, fatal, message } = await caller.message("error");
        assert.deepEqual([code, fatal], [`${stage}_failed`, false], behaviour);
        assert.ok(message.length > 0 && !message.includes(failing.access.secret));
        const before = caller.messages.length;
        caller.send({ type: "ping", timestamp: behaviour });
        await caller.until(() => caller.messages.slice(before).some(({ type }) => type === "pong"));
        caller.send({ type: "hang_up" });
        assert.equal((await caller.message("call_ended")).reason, "client_hangup");
      }
      await failing.close();
    });
  }

  it("shows the key to nobody", async () => {
    twin.play("llm", "rate_limited");
    const connectionId = await house.connect("openai", access);
    const agentId = await withModel(connectionId);
    const caller = await house.dial(agentId);
    caller.send({ type: "user_message", text: "Hello" });
    const { code, message } = await caller.message("error");
    assert.equal(code, "llm_failed");
    assert.match(message, /429/);
    caller.send({ type: "hang_up" });
    await caller.whenClosed();
    const { call_id } = await caller.message("call_started");
    const told = [
      caller.messages,
      await house.reports.closeOf(call_id),
      (await house.call("GET", `${agents}/${agentId}`)).body,
      (await house.call("GET", `/v1/connections/${connectionId}`)).body,
      (await house.call("GET", `/v1/agents/voice/calls/${call_id}`)).body,
      await house.api.sql`select * from call`,
      await house.api.sql`select * from voice_agent`,
      await house.api.sql`select * from connection`,
    ];
    assert.ok(!JSON.stringify(told).includes(access.secret));
  });

  it("takes a new key from the next call on", async () => {
    twin.play("llm", "answers");
    const connectionId = await house.connect("openai", { ...access, secret: "sk-of-yesterday" });
    const agentId = await withModel(connectionId);
    const before = await house.dial(agentId);
    before.send({ type: "user_message", text: "Hello" });
    assert.match((await before.message("error")).message, /401/);
    assert.equal((await house.call("PATCH", `/v1/connections/${connectionId}`, { secret: access.secret })).status, 200);
    const next = await house.dial(agentId);
    next.send({ type: "user_message", text: "Hello" });
    assert.match((await finalOf(next, "agent")).text ?? "", /You said: Hello/);
    for (const caller of [before, next]) caller.send({ type: "hang_up" });
    await Promise.all([before.whenClosed(), next.whenClosed()]);
  });
});

describe("an agent with a vendor's stage", () => {
  let house: VendorHouse;
  before(async () => {
    house = await openVendorHouse();
  });
  after(() => house.stop());

  const save = (config: object, projectId = house.api.projectId) =>
    house.call("POST", agents, { name: "Desk", project_id: projectId, config });

  it("is not saved with a connection that is missing, another vendor's or another project's", async () => {
    const baseUrl = "https://models.example/v1";
    const fit = await house.connect("openai", { secret: "k", baseUrl });
    const bearer = await house.connect("bearer", { secret: "k", baseUrl });
    const other = await house.call("POST", "/v1/projects", { name: "Another" });
    const llm = (connection_id?: string) => ({ llm: { provider: "openai", model: "m", connection_id } });
    assert.equal((await save(llm(fit))).status, 201);
    assert.equal((await save(llm(fit.toUpperCase()))).status, 201);
    for (const [config, projectId] of [
      [llm()],
      [llm(bearer)],
      [llm("00000000-0000-4000-8000-000000000000")],
      [llm(fit), other.body.data.id],
    ] as const) {
      const answer = await save(config, projectId);
      assert.equal(answer.status, 400, JSON.stringify(answer.body));
      assert.deepEqual(Object.keys(answer.body.error.details), ["config.llm.connection_id"]);
    }
    const agentId = (await save({})).body.data.id;
    const changed = await house.call("PATCH", `${agents}/${agentId}`, { config: llm(bearer) });
    assert.deepEqual(Object.keys(changed.body.error.details), ["config.llm.connection_id"]);
  });

  it("takes no connection or address from who starts a call", async () => {
    const agentId = (await save({})).body.data.id;
    for (const llm of [
      { provider: "openai" },
      { base_url: "https://x.example" },
      { connection_id: crypto.randomUUID() },
    ]) {
      const answer = await house.call("POST", `${agents}/${agentId}/calls/websocket`, { config_overrides: { llm } });
      assert.equal(answer.status, 400, JSON.stringify(llm));
    }
  });
});
