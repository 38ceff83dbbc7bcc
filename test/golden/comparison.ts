/**
 * How a call is compared with its golden transcript, and the rules that hold in every call.
 *
 * On the virtual clock everything is compared: order, words, and times within 60 ms, which leaves
 * room for a better-tuned voice detector. Over a real socket only what a client may rely on is:
 * the order of messages within each track, without partial transcripts and without times.
 */
import type { ServerMessageType } from "#contracts/voice_protocol.ts";
import type { Line } from "./golden_call.ts";

const toleranceMs = 60;

/** What differs, as sentences with the place; empty when nothing does. */
export function differences(expected: unknown, actual: unknown, path = ""): string[] {
  if (typeof expected === "number" && typeof actual === "number" && isTime(path)) {
    return Math.abs(expected - actual) <= toleranceMs ? [] : [`${path}: expected about ${expected}, got ${actual}`];
  }
  if (!isBranch(expected) || !isBranch(actual)) {
    return Object.is(expected, actual) ? [] : [`${path}: expected ${inShort(expected)}, got ${inShort(actual)}`];
  }
  const keys = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  return [...keys].flatMap((key) => differences(expected[key], actual[key], `${path}/${key}`));
}

function isBranch(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function isTime(path: string): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return name === "t" || name.endsWith("_ms");
}

function inShort(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 200) ?? "nothing";
}

/** `lines` with what is new in every call replaced: ids and secrets of the call. */
export function normalised(lines: readonly Line[]): Line[] {
  return lines.map((line) => {
    if (!("server" in line) || line.server.type !== "call_started") return line;
    const { server } = line;
    const resume = { ...server.resume, url: "(resume url)", token: "(token)" };
    return { ...line, server: { ...server, call_id: "(call id)", agent_id: "(agent id)", resume } };
  });
}

/** Messages of one track keep their order whatever the clock does. */
const tracks: Readonly<Record<string, readonly ServerMessageType[]>> = {
  call: ["call_started", "call_ended", "warning", "error"],
  state: ["state"],
  speech: [
    "user_speech_started",
    "user_speech_stopped",
    "agent_speech_started",
    "agent_speech_done",
    "clear",
    "mark",
    "truncated",
  ],
  words: ["transcript"],
  metrics: ["turn_metrics"],
};

/** What of `lines` a client may rely on, track by track. */
export function reliable(lines: readonly Line[]): Record<string, unknown[]> {
  const messages = normalised(lines).flatMap((line) => ("server" in line ? [line.server] : []));
  const stable = messages.filter((message) => message.type !== "transcript" || message.final);
  return Object.fromEntries(
    Object.entries(tracks).map(([track, types]) => [
      track,
      stable.filter(({ type }) => types.includes(type)).map(withoutMeasures),
    ]),
  );
}

const dropped = ["seq", "usage", "spoken_text"];

/** Without times, counters and the words that a cut depends on, at any depth. */
function withoutMeasures(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMeasures);
  if (!isBranch(value)) return value;
  const kept = Object.entries(value).filter(([name]) => !dropped.includes(name) && !isTime(name));
  return Object.fromEntries(kept.map(([name, inner]) => [name, withoutMeasures(inner)]));
}

/** Broken promises of the protocol in `lines`; empty when all are kept. */
export function brokenRules(lines: readonly Line[]): string[] {
  const broken: string[] = [];
  let seq = 0;
  let t = 0;
  let cleared: string | undefined;
  const cut = new Set<string>();
  for (const line of lines) {
    if ("server_audio_ms" in line && cleared) broken.push(`audio follows the clear of ${cleared}`);
    if (!("server" in line)) continue;
    const { server } = line;
    if (server.seq !== seq + 1) broken.push(`seq ${server.seq} follows ${seq}`);
    if (server.t < t) broken.push(`t goes back from ${t} to ${server.t}`);
    seq = server.seq;
    t = server.t;
    if (server.type === "clear") {
      cleared = server.utterance_id;
      cut.add(server.utterance_id);
    }
    if (server.type === "agent_speech_started") {
      cleared = undefined;
      if (cut.has(server.utterance_id)) broken.push(`${server.utterance_id} begins after its clear`);
    }
    if (server.type === "truncated" && !server.full_text.startsWith(server.spoken_text.replace(/\W+$/, ""))) {
      broken.push(`what was heard of ${server.utterance_id} is not its beginning`);
    }
  }
  const messages = lines.flatMap((line) => ("server" in line ? [line.server.type] : []));
  if (messages[0] !== "call_started") broken.push("call_started is not the first message");
  if (messages.at(-1) !== "call_ended") broken.push("call_ended is not the last message");
  return broken;
}
