/**
 * Server-sent events as bytes (WHATWG HTML, section 9.2). A run's event carries its id; comments and
 * control frames carry none, so that a client's cursor never stands on them.
 */
import type { LoggedEvent } from "#contracts/internal_runs.ts";

/** A run's event, formatted once for all its readers. */
export interface EventFrame {
  id: number;
  type: string;
  bytes: Uint8Array;
}

export function eventFrame({ id, type, json }: LoggedEvent): EventFrame {
  return { id, type, bytes: Buffer.from(`id: ${id}\nevent: ${type}\ndata: ${json}\n\n`) };
}

/** First bytes of a stream: when to come back, and a comment that makes proxies flush. */
export const openingBytes: Uint8Array = Buffer.from("retry: 2000\n\n: connected\n\n");
export const heartbeatBytes: Uint8Array = Buffer.from(": heartbeat\n\n");

export type ClosingReason = "drain" | "max_age" | "slow_consumer";

/** The client is to come back soon, with its cursor. */
export function closingBytes(reason: ClosingReason): Uint8Array {
  return Buffer.from(`retry: 500\n\nevent: stream.closing\ndata: ${JSON.stringify({ reason })}\n\n`);
}

/** The run is not to be had any more: deleted while it was streamed. */
export const goneBytes: Uint8Array = Buffer.from('event: stream.closing\ndata: {"reason":"gone"}\n\n');

/** Frames one behind the other. */
export function joined(frames: readonly EventFrame[]): Uint8Array {
  const [first] = frames;
  return frames.length === 1 && first ? first.bytes : Buffer.concat(frames.map(({ bytes }) => bytes));
}
