import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AppTool } from "#contracts/voice_agent.ts";
import { SessionHarness } from "#test/kit/session_harness.ts";
import type { RemoteRequest, RemoteTools } from "./remote_tools.ts";
import type { ToolProgress } from "./tool.ts";

const app_id = "00000000-0000-4000-8000-00000000000a";
const run_id = "00000000-0000-4000-8000-00000000000b";

/** A run that a test ends, and tells of. */
class OneRun implements RemoteTools {
  readonly asked: RemoteRequest[] = [];
  tell: (update: ToolProgress) => void = () => {};
  end: (output: unknown) => void = () => {};

  ask(request: RemoteRequest, signal: AbortSignal, progress?: (update: ToolProgress) => void): Promise<unknown> {
    this.asked.push(request);
    this.tell = progress ?? this.tell;
    this.tell({ runId: run_id });
    return new Promise((resolve, reject) => {
      this.end = resolve;
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  }
}

async function asked(tool: Partial<AppTool>): Promise<{ h: SessionHarness; run: OneRun }> {
  const run = new OneRun();
  const h = new SessionHarness({
    config: {
      llm: {
        provider: "scripted",
        options: {
          tool_calls: [{ turn: 1, name: "check_rates", arguments: { day: "today" } }],
          replies: ["I look.", "They are fine."],
        },
      },
      tts: { provider: "scripted", options: { ms_per_char: 60 } },
      app_tools: [{ app_id, name: "check_rates", ...tool }],
    },
    remoteTools: run,
  });
  await h.run(200);
  await h.command({ type: "user_message", text: "Check the rates" });
  await h.run(200);
  return { h, run };
}

const said = (h: SessionHarness) =>
  h.messages("transcript").flatMap(({ role, final, text }) => (role === "agent" && final ? [text?.trim()] : []));

describe("a tool that is a run of an app, in a call", () => {
  it("goes on by itself, tells of itself, and its end is spoken of", async () => {
    const { h, run } = await asked({ on_call_end: "cancel" });
    await h.runUntil("agent_speech_done");
    assert.deepEqual(run.asked, [
      {
        is: "app",
        callId: "00000000-0000-4000-8000-000000000001",
        toolCallId: run.asked[0]?.is === "app" ? run.asked[0].toolCallId : "",
        appId: app_id,
        given: { day: "today" },
        endsWithCall: true,
      },
    ]);
    run.tell({ text: "Checking rates", percent: 40 });
    run.end({ rate: 120 });
    await h.runUntil("agent_speech_done", 2);
    assert.deepEqual(said(h), ["I look.", "They are fine."]);
    assert.deepEqual(
      h.messages("tool_event").map(({ phase, text, percent, run_id: of }) => [phase, text, percent, of]),
      [
        ["started", undefined, undefined, undefined],
        ["progress", undefined, undefined, run_id],
        ["progress", "Checking rates", 40, run_id],
        ["completed", undefined, undefined, run_id],
      ],
    );
    const kept = h.records.flatMap(({ tools = [] }) => tools).at(-1);
    assert.deepEqual([kept?.source, kept?.run_id, kept?.result], ["app", run_id, '{"rate":120}']);
  });

  it("is spoken of while it runs where it is to be, not all the time and not over anybody", async () => {
    const { h, run } = await asked({ progress: "spoken" });
    run.tell({ text: "I begin." });
    await h.runUntil("agent_speech_done");
    assert.deepEqual(said(h), ["I look."], "the agent spoke");
    await h.run(10_000);
    run.tell({ text: "Half of them are checked." });
    run.tell({ text: "Two thirds of them are checked." });
    await h.runUntil("agent_speech_done", 2);
    await h.run(10_000);
    run.tell({ text: "Nearly there." });
    await h.runUntil("agent_speech_done", 3);
    assert.deepEqual(said(h), ["I look.", "Half of them are checked.", "Nearly there."]);
  });

  it("that the caller waits for is spoken of in place of fillers", async () => {
    const { h, run } = await asked({ long_running: false, progress: "spoken" });
    run.tell({ text: "I am checking the rates." });
    await h.runUntil("agent_speech_started");
    await h.run(3000);
    run.end({ rate: 120 });
    await h.runUntil("agent_speech_done");
    assert.match(said(h)[0] ?? "", /^I am checking the rates\. .*I look\.$/);
  });

  it("tells nothing where it is to tell nothing, and is cancelled by its task", async () => {
    const { h, run } = await asked({ progress: "none" });
    run.tell({ text: "Checking rates" });
    await h.runUntil("agent_speech_done");
    assert.ok(h.messages("tool_event").every(({ text }) => text === undefined));
    await h.command({ type: "hang_up" });
    assert.deepEqual(h.messages("tool_event").at(-1)?.phase, "cancelled");
  });
});
