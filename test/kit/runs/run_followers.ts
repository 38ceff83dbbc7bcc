/**
 * Clients of a run's stream as they ought to be: each keeps a cursor and nothing else, is cut off again
 * and again, and comes back with `Last-Event-ID` until it has seen the end.
 */
import assert from "node:assert/strict";
import { setMaxListeners } from "node:events";
import http from "node:http";
import { setTimeout as wait } from "node:timers/promises";

export interface SeenEvent {
  id: number;
  type: string;
  /** The node that it tells of, where it does. */
  nodeId: string | undefined;
  atMs: number;
}

export interface AppAddress {
  /** Of the gateway, on this machine. */
  port: number;
  /** The app's own. */
  host: string;
  accessKey: string;
}

/** A request to an app's host, on a connection of its own. */
export function askApp(
  { port, host, accessKey }: AppAddress,
  method: string,
  path: string,
  { headers = {}, body, signal }: { headers?: Record<string, string>; body?: object; signal?: AbortSignal } = {},
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const common = { host, authorization: `Bearer ${accessKey}`, "content-type": "application/json" };
    const to = { host: "127.0.0.1", port, method, path, agent: false };
    http
      .request({ ...to, headers: { ...common, ...headers }, ...(signal && { signal }) }, resolve)
      .on("error", reject)
      .end(body && JSON.stringify(body));
  });
}

export async function jsonOf(response: http.IncomingMessage): Promise<{ status: number; data: { id: string } }> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk;
  return { status: response.statusCode ?? 0, data: JSON.parse(text).data };
}

/** As a client does that finds nobody: it asks again a moment later. */
const retryMs = 200;

/**
 * Follows a run to its end. After each event for which `isCut` holds the connection is destroyed, with
 * whatever else it may have brought.
 * @returns what it saw, in the order in which it saw it. @throws the signal's reason
 */
export async function followRun(
  app: AppAddress,
  runId: string,
  { isCut, onEvent, signal }: { isCut(id: number): boolean; onEvent?(event: SeenEvent): void; signal: AbortSignal },
): Promise<SeenEvent[]> {
  const seen: SeenEvent[] = [];
  while (!/^run\.(succeeded|failed|canceled)$/.test(seen.at(-1)?.type ?? "")) {
    const last = seen.at(-1);
    signal.throwIfAborted();
    try {
      const headers: Record<string, string> = last ? { "last-event-id": String(last.id) } : {};
      const response = await askApp(app, "GET", `/v1/runs/${runId}/stream`, { headers, signal });
      if (response.statusCode !== 200) {
        response.destroy();
        throw new Error(`the stream answered ${response.statusCode}`);
      }
      assert.equal(response.headers["run-replayed-from"], String(last?.id ?? 0));
      for await (const event of eventsOf(response)) {
        seen.push(event);
        onEvent?.(event);
        if (isCut(event.id)) break;
      }
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      await wait(retryMs);
    }
  }
  return seen;
}

/**
 * One client that is never cut, and tells of what it sees as soon as it can; and `count` that are cut in turn:
 * of any `count` events that follow each other, each of these is cut after one.
 * @returns what each saw, the first one's first
 */
export async function followTogether(
  app: AppAddress,
  runId: string,
  { count, onEvent, signal }: { count: number; onEvent(event: SeenEvent): void; signal: AbortSignal },
): Promise<SeenEvent[][]> {
  const failed = new AbortController();
  const any = AbortSignal.any([signal, failed.signal]);
  setMaxListeners(2 * count, any);
  const watching = followRun(app, runId, { isCut: () => false, onEvent, signal: any });
  const cut = Array.from({ length: count }, (_, client) =>
    followRun(app, runId, { isCut: (id) => id % count === client, signal: any }),
  );
  return Promise.all([watching, ...cut]).finally(() => failed.abort());
}

/** Every event once, in order, none left out. */
export function assertWhole(seen: readonly SeenEvent[]): void {
  assert.deepEqual(
    seen.map(({ id }) => id),
    seen.map((_, i) => i + 1),
  );
}

/** Leaving the loop destroys the connection. */
async function* eventsOf(response: http.IncomingMessage): AsyncGenerator<SeenEvent> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const match = /^id: (\d+)\nevent: (\S+)\ndata: (.*)$/.exec(text.slice(0, end));
      text = text.slice(end + 2);
      if (!match) continue;
      const { node_id } = JSON.parse(match[3] ?? "{}") as { node_id?: string };
      yield { id: Number(match[1]), type: match[2] ?? "", nodeId: node_id, atMs: performance.now() };
    }
  }
}
