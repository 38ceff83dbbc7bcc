/**
 * A conversation in the shape of Anthropic's Messages API: user and assistant in turn, the user first. The
 * results of tools stand first in the user's message after the call; what is neither said nor asked, such
 * as the client's context, goes into the next user's message. Pure.
 */
import type { MessageParam } from "@anthropic-ai/sdk/resources/messages";
import type { HistoryItem } from "../provider.ts";

type Block = Exclude<MessageParam["content"], string>[number];

/** The vendor wants the user to speak first; the agent may have. */
const beginning = "(the call begins)";

export function messagesOf(history: readonly HistoryItem[]): MessageParam[] {
  const messages: { role: "user" | "assistant"; content: Block[] }[] = [];
  const add = (role: "user" | "assistant", block: Block) => {
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(block);
    else messages.push({ role, content: [block] });
  };
  for (const item of history) {
    if (item.role === "agent") {
      if (messages.length === 0) add("user", { type: "text", text: beginning });
      if (item.text) add("assistant", { type: "text", text: item.text });
    } else if (item.role === "tool" && item.call) addCall(messages, item, item.call, add);
    else if (item.role === "context") add("user", { type: "text", text: `<context>${item.text}</context>` });
    else if (item.text) add("user", { type: "text", text: item.text });
  }
  for (const { role, content } of messages) if (role === "user") content.sort(resultsFirst);
  return messages;
}

type NewCall = NonNullable<HistoryItem["call"]>;

/** Calls that follow each other were made in one step: they stand in one message, and their results in the next. */
function addCall(
  messages: { role: string; content: Block[] }[],
  { text, isError }: HistoryItem,
  call: NewCall,
  add: (role: "user" | "assistant", block: Block) => void,
): void {
  const use: Block = { type: "tool_use", id: call.id, name: call.name, input: call.arguments };
  const result: Block = {
    type: "tool_result",
    tool_use_id: call.id,
    content: text,
    ...(isError && { is_error: true }),
  };
  const [asked, answered] = messages.slice(-2);
  const isSameStep =
    answered?.content.every(({ type }) => type === "tool_result") &&
    asked?.content.some(({ type }) => type === "tool_use");
  if (isSameStep) asked?.content.push(use);
  else {
    if (messages.length === 0) add("user", { type: "text", text: beginning });
    add("assistant", use);
  }
  add("user", result);
}

const resultsFirst = (a: Block, b: Block) => Number(b.type === "tool_result") - Number(a.type === "tool_result");
