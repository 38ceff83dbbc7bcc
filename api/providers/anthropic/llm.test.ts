import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { HistoryItem } from "../provider.ts";
import { messagesOf } from "./messages.ts";

type Block = { type: string; id?: string; tool_use_id?: string };

const call = (id: string) => ({ id, name: "look_up", arguments: { id } });

describe("a conversation as Anthropic has it", () => {
  it("begins with the user, and keeps the calls of one step and their results together", () => {
    const history: HistoryItem[] = [
      { role: "agent", text: "Good evening." },
      { role: "user", text: "Two rooms." },
      { role: "tool", text: "7", call: call("a") },
      { role: "tool", text: "broken", isError: true, call: call("b") },
      { role: "context", text: "The guest is on page 2." },
      { role: "agent", text: "One is free." },
      { role: "user", text: "Well." },
      { role: "user", text: "Yes." },
    ];
    assert.deepEqual(messagesOf(history), [
      { role: "user", content: [{ type: "text", text: "(the call begins)" }] },
      { role: "assistant", content: [{ type: "text", text: "Good evening." }] },
      { role: "user", content: [{ type: "text", text: "Two rooms." }] },
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: "a", name: "look_up", input: { id: "a" } },
          { type: "tool_use", id: "b", name: "look_up", input: { id: "b" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: "7" },
          { type: "tool_result", tool_use_id: "b", content: "broken", is_error: true },
          { type: "text", text: "<context>The guest is on page 2.</context>" },
        ],
      },
      { role: "assistant", content: [{ type: "text", text: "One is free." }] },
      {
        role: "user",
        content: [
          { type: "text", text: "Well." },
          { type: "text", text: "Yes." },
        ],
      },
    ]);
  });

  it("takes turns, and answers each call in the next message, whatever was said", () => {
    const role = fc.constantFrom("user", "agent", "context", "tool");
    fc.assert(
      fc.property(fc.array(role, { minLength: 1, maxLength: 30 }), (roles) => {
        const history = roles.map((role, index): HistoryItem => {
          const text = `${index}`;
          return role === "tool" ? { role, text, call: call(text) } : { role: role as "user", text };
        });
        const messages = messagesOf(history).map(({ role, content }) => ({ role, blocks: content as Block[] }));
        for (const [index, { role, blocks }] of messages.entries()) {
          assert.equal(role, index % 2 === 0 ? "user" : "assistant");
          const asked = blocks.flatMap(({ type, id }) => (type === "tool_use" ? [id] : []));
          const next = messages[index + 1]?.blocks.slice(0, asked.length) ?? [];
          assert.ok(blocks.length > 0);
          assert.deepEqual(
            next.map(({ tool_use_id }) => tool_use_id),
            asked,
          );
        }
        const results = messages.flatMap(({ blocks }) => blocks).filter(({ type }) => type === "tool_result");
        assert.equal(results.length, roles.filter((role) => role === "tool").length);
      }),
    );
  });
});
