import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VoiceAgentConfig } from "#contracts/voice_agent.ts";
import { SessionHarness } from "#test/kit/session_harness.ts";
import type { RemoteRequest, RemoteTools } from "./remote_tools.ts";
import { ToolError } from "./tool.ts";

const listed = (...names: string[]) => names.map((name) => ({ name, description: "", parameters: { type: "object" } }));

/** Servers that have these tools, and what was asked of them. */
function serversWith(toolsOf: (url: string) => unknown): RemoteTools & { asked: RemoteRequest[] } {
  const asked: RemoteRequest[] = [];
  return {
    asked,
    async ask(request) {
      asked.push(request);
      if (request.is === "mcp_list") return toolsOf(request.server.url);
      return "seven";
    },
  };
}

const configOf = (servers: VoiceAgentConfig["mcp_servers"], name = "free_rooms"): VoiceAgentConfig => ({
  llm: { provider: "scripted", options: { tool_calls: [{ turn: 1, name }], replies: ["There are seven."] } },
  tts: { provider: "scripted", options: { ms_per_char: 1 } },
  ...(servers && { mcp_servers: servers }),
});

async function answered(config: VoiceAgentConfig, remoteTools: RemoteTools): Promise<SessionHarness> {
  const h = new SessionHarness({ config, remoteTools });
  await h.run(200);
  await h.command({ type: "user_message", text: "How many?" });
  await h.runUntil("agent_speech_done");
  return h;
}

describe("tools of MCP servers", () => {
  it("are found as the call begins, and called with the server's headers", async () => {
    const remote = serversWith(() => listed("free_rooms"));
    const headers = [{ key: "X-Key", value: "k" }];
    const h = await answered(configOf([{ name: "pms", url: "https://pms.example/mcp", headers }]), remote);
    assert.deepEqual(
      h.messages("tool_event").map(({ source, phase }) => `${source} ${phase}`),
      ["mcp started", "mcp completed"],
    );
    const call = remote.asked.find(({ is }) => is === "mcp_call");
    assert.ok(call?.is === "mcp_call" && call.server.headers["x-key"] === "k" && call.name === "free_rooms");
    assert.deepEqual(h.messages("warning"), []);
  });

  it("are those that are allowed, under the server's name where another has theirs", async () => {
    const servers = [
      { name: "one", url: "https://one.example", allowed_tools: ["free_rooms"] },
      { name: "two", url: "https://two.example" },
    ];
    const remote = serversWith(() => listed("free_rooms", "burn_down"));
    const h = await answered(configOf(servers, "two__free_rooms"), remote);
    assert.equal(h.messages("tool_event").at(-1)?.phase, "completed");
    const call = remote.asked.find(({ is }) => is === "mcp_call");
    assert.ok(call?.is === "mcp_call" && call.server.url === "https://two.example");
  });

  it("that are not there, or too many, are warned of", async () => {
    const away = serversWith(() => {
      throw new ToolError("Cannot reach the MCP server at pms.example");
    });
    const alone = await answered(configOf([{ name: "pms", url: "https://pms.example" }]), away);
    assert.deepEqual(
      alone.messages("warning").map(({ code, ref }) => `${code} ${ref ?? ""}`),
      ["mcp_unavailable pms", `not_available ${alone.messages("tool_event")[0]?.tool_call_id}`],
    );
    const many = serversWith(() => listed("free_rooms", ...Array.from({ length: 99 }, (_, n) => `tool_${n}`)));
    const crowded = await answered(configOf([{ name: "pms", url: "https://pms.example" }]), many);
    assert.deepEqual(
      crowded.messages("warning").map(({ code }) => code),
      ["tools_cut"],
    );
  });
});
