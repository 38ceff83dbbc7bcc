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

/** Before the gate, more than the kernel keeps for a reader that stalls; after it short events, as `speakingWorkflow`. */
export function heavyWorkflow(pace: { eventsPerS: number; seconds: number }): Definition {
  const { nodes, edges } = speakingWorkflow(pace);
  const heavy = Array.from({ length: heavyNodes }, (_, index) => `heavy_${index}`);
  return {
    nodes: [
      ...nodes,
      ...heavy.map((id) => ({
        id,
        type: "llm",
        config: { model: "echo", messages: [{ role: "user", template: "{{text}}" }] },
        inputs: { text: "$.input.text" },
      })),
    ],
    edges: [
      ...edges.filter(({ to }) => to !== "gate"),
      ...heavy.map((id) => ({ from: "in", to: id })),
      ...heavy.map((id) => ({ from: id, to: "gate" })),
    ],
  };
}

/** Each says the input two times: as a delta and as the whole. */
const heavyNodes = 100;
export const heavyInput = { text: "heavy ".repeat(2500) };

function parallel(count: number, config: (index: number) => Record<string, unknown>): Definition {
  const ids = Array.from({ length: count }, (_, index) => `node_${index}`);
  return {
    nodes: [
      { id: "in", type: "input" },
      { id: "gate", type: "approval", config: { prompt: "Begin?" }, inputs: {} },
      ...ids.map((id, index) => ({ id, type: "llm", config: config(index), inputs: {} })),
      { id: "out", type: "output", inputs: {} },
    ],
    edges: [
      { from: "in", to: "gate" },
      ...ids.map((id) => ({ from: "gate", to: id, handle: "approved" })),
      ...ids.map((id) => ({ from: id, to: "out" })),
    ],
  };
}
