import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { SessionHarness } from "#test/kit/session_harness.ts";

const tool = { name: "open_door", params: [{ name: "room", type: "integer" as const, required: true }] };

function configOf(over: VoiceAgentConfig = {}, given: Record<string, unknown> = { room: 7 }): VoiceAgentConfig {
  return {
    stt: { provider: "scripted", options: { transcripts: ["Stop"], partials: false } },
    llm: {
      provider: "scripted",
      options: {
        tool_calls: [{ turn: 1, name: over.transfer ? "transfer_call" : "open_door", arguments: given }],
        replies: ["It is open.", "Very well."],
      },
    },
    tts: { provider: "scripted", options: { ms_per_char: 10 } },
    client_tools: [tool],
    ...over,
  };
}

async function asked(over?: VoiceAgentConfig, given?: Record<string, unknown>): Promise<SessionHarness> {
  const h = new SessionHarness({ config: configOf(over, given) });
  await h.run(200);
  await h.command({ type: "user_message", text: "Please open it" });
  await h.run(100);
  return h;
}

const phases = (h: SessionHarness) => h.messages("tool_event").map(({ phase }) => phase);

describe("a tool of the client", () => {
  it("is asked for, and its result is answered with", async () => {
    const h = await asked();
    const [call] = h.messages("client_tool_call");
    assert.deepEqual([call?.name, call?.arguments, call?.timeout_ms], ["open_door", { room: 7 }, 10_000]);
    const tool_call_id = call?.tool_call_id ?? "";
    await h.command({ type: "client_tool_result", tool_call_id, result: "turning", final: false });
    await h.command({ type: "client_tool_result", tool_call_id, result: { open: true } });
    await h.runUntil("agent_speech_done");
    assert.deepEqual(phases(h), ["started", "progress", "completed"]);
    assert.equal(h.messages("transcript").at(-1)?.text, "It is open.");
    await h.command({ type: "client_tool_result", tool_call_id, result: "again" });
    assert.equal(h.messages("warning").at(-1)?.code, "late_tool_result");
  });

  it("that fails is told to the model", async () => {
    const h = await asked();
    const tool_call_id = h.messages("client_tool_call")[0]?.tool_call_id ?? "";
    await h.command({ type: "client_tool_result", tool_call_id, result: "jammed", is_error: true });
    assert.deepEqual(phases(h), ["started", "failed"]);
    assert.equal(h.messages("tool_event").at(-1)?.error, "jammed");
  });

  it("that is never answered is cancelled when its time is over", async () => {
    const h = await asked();
    await h.runUntil("client_tool_cancel");
    assert.equal(h.messages("client_tool_cancel")[0]?.reason, "timeout");
    assert.deepEqual(phases(h), ["started", "timeout"]);
  });

  it("is cancelled by an interruption where it says so, and by the end of the call", async () => {
    const h = await asked({ client_tools: [{ ...tool, on_interrupt: "cancel" }] });
    await h.speak(800);
    await h.runUntil("client_tool_cancel");
    assert.equal(h.messages("client_tool_cancel")[0]?.reason, "interrupted");
    const ended = await asked();
    await ended.command({ type: "hang_up" });
    assert.equal(ended.messages("client_tool_cancel")[0]?.reason, "call_ended");
  });

  it("whose answer nobody expects is answered at once", async () => {
    const h = await asked({ client_tools: [{ ...tool, expects_response: false }] });
    await h.runUntil("agent_speech_done");
    assert.deepEqual(phases(h), ["started", "completed"]);
  });

  it("gives no more than the model may be told, and is not asked with what does not fit", async () => {
    const h = await asked();
    const tool_call_id = h.messages("client_tool_call")[0]?.tool_call_id ?? "";
    await h.command({ type: "client_tool_result", tool_call_id, result: "x".repeat(60_000) });
    assert.deepEqual(phases(h), ["started", "completed"]);
    const misfit = await asked({}, { room: "seven" });
    assert.deepEqual(phases(misfit), ["started", "failed"]);
    assert.equal(misfit.messages("client_tool_call").length, 0);
  });

  it("that takes long is answered for, and told of when it is done; what is only to be remembered is not spoken", async () => {
    for (const reaction of ["speak", "listen"] as const) {
      const h = await asked({ client_tools: [{ ...tool, long_running: true }] });
      await h.runUntil("agent_speech_done");
      const tool_call_id = h.messages("client_tool_call")[0]?.tool_call_id ?? "";
      await h.command({ type: "client_tool_result", tool_call_id, result: "open", reaction });
      await h.run(5000);
      assert.equal(h.messages("agent_speech_done").length, reaction === "speak" ? 2 : 1);
    }
  });
});

describe("a transfer", () => {
  const transfer = { enabled: true, destinations: [{ label: "reception", phone_number: "+4930123456" }] };

  it("is the client's to do, and ends the call when it is done", async () => {
    const h = await asked({ transfer }, { destination: "reception", message: "One moment." });
    assert.deepEqual(h.messages("transfer"), [
      {
        type: "transfer",
        destination: { label: "reception", phone_number: "+4930123456" },
        message: "One moment.",
      },
    ]);
    await h.command({ type: "transfer_result", ok: true });
    assert.equal(h.end?.end.reason, "transferred");
  });

  it("that fails is told to the model, and leads nowhere but to what is configured", async () => {
    const h = await asked({ transfer }, { destination: "reception" });
    await h.command({ type: "transfer_result", ok: false, error: "busy" });
    await h.runUntil("agent_speech_done");
    assert.equal(h.messages("tool_event").at(-1)?.error, "busy");
    assert.equal(h.end, undefined);
    const elsewhere = await asked({ transfer }, { destination: "+99900" });
    assert.equal(elsewhere.messages("transfer").length, 0);
    assert.deepEqual(phases(elsewhere), ["started", "failed"]);
  });
});
