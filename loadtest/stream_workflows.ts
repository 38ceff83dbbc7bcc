/** Workflows of the streams test: they wait for an approval, so that everybody can attach, and then speak for a while. */

interface Definition extends Record<string, unknown> {
  nodes: Record<string, unknown>[];
  edges: Record<string, unknown>[];
}

/** What one node says without its words being joined: a commit takes less than the time between two. */
const wordsPerNodeSecond = 40;
/** Of one reply of the scripted model. */
const replyCharsMax = 20_000;

/** Short events at a steady pace: each node says one word after the other. */
export function speakingWorkflow({ eventsPerS, seconds }: { eventsPerS: number; seconds: number }): Definition {
  const speakers = Math.min(100, Math.ceil(eventsPerS / wordsPerNodeSecond));
  const tokensPerS = eventsPerS / speakers;
  const words = Array.from({ length: Math.ceil(tokensPerS * seconds) }, (_, i) => `w${i}`);
  const reply = words.join(" ").slice(0, replyCharsMax);
  return parallel(speakers, () => ({
    model: "scripted",
    options: { replies: [reply], tokens_per_s: tokensPerS },
    messages: [{ role: "user", template: "Speak" }],
  }));
}

const longNodes = 100;

/** Events of `textChars` characters, more than the kernel keeps for a reader that stalls: each node says the run's input, two times. */
export function longWorkflow({ seconds }: { seconds: number }): Definition {
  return parallel(longNodes, (index) => ({
    model: "echo",
    options: { delay_ms: Math.round((index * seconds * 1000) / longNodes) },
    messages: [{ role: "user", template: "{{text}}" }],
  }));
}

export const longInput = { text: "long ".repeat(2400) };

function parallel(count: number, config: (index: number) => Record<string, unknown>): Definition {
  const ids = Array.from({ length: count }, (_, index) => `node_${index}`);
  return {
    nodes: [
      { id: "in", type: "input" },
      { id: "gate", type: "approval", config: { prompt: "Begin?" }, inputs: {} },
      ...ids.map((id, index) => ({ id, type: "llm", config: config(index), inputs: { text: "$.input.text" } })),
      { id: "out", type: "output", inputs: {} },
    ],
    edges: [
      { from: "in", to: "gate" },
      ...ids.map((id) => ({ from: "gate", to: id, handle: "approved" })),
      ...ids.map((id) => ({ from: id, to: "out" })),
    ],
  };
}
