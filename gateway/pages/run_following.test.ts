/** How the page of runs follows a stream, without a browser: its parser, its cursor, its state, its drawing. */
import assert from "node:assert/strict";
import { afterEach, before, beforeEach, describe, it, mock } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { layOut } from "./runs/graph_layout.js";
import { emptyRun, takeEvent } from "./runs/run_state.js";
import { RunStream } from "./runs/run_stream.js";
import { SseParser } from "./runs/sse_parser.js";

interface Event {
  id: number;
  type: string;
  created_at: string;
  node_id?: string;
  data: Record<string, unknown>;
}

const at = "2026-01-01T00:00:00.000Z";
const eventOf = (id: number, last: number): Event => ({
  id,
  type: id === last ? "run.succeeded" : "content.delta",
  created_at: at,
  data: {},
});
const frameOf = (event: Event) => `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

describe("the page's parser of server-sent events", () => {
  it("reads the same messages however the stream is cut, and whatever ends its lines", () => {
    const lines = [
      "retry: 2000",
      "",
      ": connected",
      "",
      "id: 1",
      "event: a",
      "data: x: y",
      "",
      "data:one",
      "data: two",
      "unknown: 1",
      "",
      "id: 7",
      "data",
      "",
      "event: lost",
    ];
    const expected = [
      { id: "1", event: "a", data: "x: y" },
      { id: "", event: "message", data: "one\ntwo" },
      { id: "7", event: "message", data: "" },
    ];
    const cuts = fc.array(fc.nat(200), { maxLength: 30 });
    fc.assert(
      fc.property(cuts, fc.constantFrom("\n", "\r\n", "\r"), (positions, end) => {
        const text = `${lines.join(end)}${end}`;
        const parser = new SseParser();
        const places = [0, ...positions.filter((one) => one < text.length).sort((a, b) => a - b), text.length];
        const messages = places.slice(1).flatMap((to, i) => parser.push(text.slice(places[i], to)));
        assert.deepEqual(messages, expected);
        assert.equal(parser.retryMs, 2000);
      }),
    );
  });
});

describe("the page's stream of a run", () => {
  before(() => {
    const page = new EventTarget();
    Object.assign(globalThis, {
      addEventListener: page.addEventListener.bind(page),
      removeEventListener: page.removeEventListener.bind(page),
      document: Object.assign(new EventTarget(), { visibilityState: "visible" }),
    });
  });
  beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
  afterEach(() => mock.timers.reset());

  /** A stream that says `text` and then ends, or stays open. */
  function saying(text: string, { open = false, signal }: { open?: boolean; signal?: AbortSignal } = {}): Response {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        if (text) controller.enqueue(new TextEncoder().encode(text));
        if (!open) controller.close();
        signal?.addEventListener("abort", () => controller.error(new Error("aborted")));
      },
    });
    return new Response(body, { status: 200 });
  }

  /** Follows until it is over, moving the clock whenever it waits. */
  async function follow(open: (cursor: number, signal: AbortSignal) => Response | Promise<Response>, from = 0) {
    const ids: number[] = [];
    const waits: number[] = [];
    let refused: Error | undefined;
    let over = false;
    const stream = new RunStream(async (cursor: number, signal: AbortSignal) => open(cursor, signal), from, {
      event: (event: Event) => ids.push(event.id),
      link: (link: { is: string; retryInMs?: number }) => {
        over ||= link.is === "over";
        if (link.is === "waiting") waits.push(link.retryInMs ?? 0);
      },
      refused: (error: Error) => {
        refused = error;
      },
    });
    for (let turns = 0; !over && !refused; turns += 1) {
      assert.ok(turns < 20_000, "it comes to an end");
      await turn();
      mock.timers.tick(100);
    }
    stream.close();
    return { ids, waits, refused };
  }

  it("hands on every event once and in order, whatever is repeated, missing, cut or broken", async () => {
    const last = 12;
    const mishap = fc.record({
      back: fc.nat(3),
      skip: fc.nat(2),
      count: fc.nat(6),
      cut: fc.nat(40),
      is: fc.constantFrom("stream", "stream", "503", "closing", "throws"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(mishap, { maxLength: 8 }), async (mishaps) => {
        const left = [...mishaps];
        const { ids } = await follow((cursor) => {
          const next = left.shift();
          const all = Array.from({ length: last }, (_, i) => eventOf(i + 1, last));
          if (!next)
            return cursor === last
              ? new Response(null, { status: 204 })
              : saying(all.slice(cursor).map(frameOf).join(""));
          if (next.is === "503") return Response.json({ error: { message: "later" } }, { status: 503 });
          if (next.is === "throws") throw new TypeError("network");
          const first = Math.max(0, cursor - next.back + next.skip);
          const text = all
            .slice(first, first + next.count)
            .map(frameOf)
            .join("");
          if (next.is === "closing") return saying(`${text}event: stream.closing\ndata: {"reason":"drain"}\n\n`);
          return saying(text.slice(0, Math.max(0, text.length - next.cut)));
        });
        assert.deepEqual(
          ids,
          Array.from({ length: last }, (_, i) => i + 1),
        );
      }),
      { numRuns: 60 },
    );
  });

  it("waits longer with each failure in a row, up to 30 s, and no longer once events come again", async () => {
    let asked = 0;
    const { waits } = await follow((cursor) => {
      asked += 1;
      if (asked <= 8) return new Response("", { status: 502 });
      return cursor === 0 ? saying(frameOf(eventOf(1, 2))) : saying(frameOf(eventOf(2, 2)));
    });
    assert.equal(waits.length, 9);
    for (const [i, wait] of waits.slice(0, 8).entries()) {
      const full = Math.min(30_000, 2000 * 2 ** i);
      assert.ok(wait >= full / 2 && wait <= full, `wait ${i}: ${wait}`);
    }
    assert.ok((waits[8] ?? 0) <= 2000);
  });

  it("takes 45 s of silence for a dead connection", async () => {
    let asked = 0;
    const { ids } = await follow((cursor, signal) => {
      asked += 1;
      return asked === 1
        ? saying(frameOf(eventOf(1, 2)), { open: true, signal })
        : saying(frameOf(eventOf(cursor + 1, 2)));
    });
    assert.deepEqual(ids, [1, 2]);
    assert.equal(asked, 2);
  });

  it("ends at 204 without an event, and at an answer that says no", async () => {
    assert.deepEqual((await follow(() => new Response(null, { status: 204 }), 5)).ids, []);
    const { refused } = await follow(() => Response.json({ error: { message: "Not Found" } }, { status: 404 }));
    assert.equal(refused?.message, "Not Found");
  });
});

describe("the page's state of a run", () => {
  const run = (...events: Omit<Event, "id" | "created_at">[]) => {
    const state = emptyRun();
    for (const [i, event] of events.entries()) takeEvent(state, { id: i + 1, created_at: at, ...event });
    return state;
  };
  const delta = (text: string) => ({
    type: "content.delta",
    node_id: "n",
    data: { index: 0, text, channel: "output" },
  });

  it("drops a node's words when it tries again, and takes the whole text where it comes", () => {
    const started = { type: "node.started", node_id: "n", data: { type: "llm" } };
    const retrying = {
      type: "node.retrying",
      node_id: "n",
      data: { error: { message: "!" }, next_attempt: 2, delay_ms: 1 },
    };
    assert.deepEqual(run(started, delta("half"), retrying).nodes.get("n").texts, []);
    assert.deepEqual(run(started, delta("half"), retrying, started, delta("wh"), delta("ole")).nodes.get("n").texts, [
      "whole",
    ]);
    const completed = { type: "content.completed", node_id: "n", data: { index: 0, text: "all of it" } };
    assert.deepEqual(run(started, delta("all"), completed).nodes.get("n").texts, ["all of it"]);
    // Taken over after a crash: the node begins anew.
    assert.deepEqual(run(started, delta("lost"), started).nodes.get("n").texts, []);
  });

  it("ignores types that it does not know", () => {
    const state = run(
      { type: "run.paused", data: {} },
      { type: "moon.rose", data: {} },
      { type: "node.danced", node_id: "n", data: {} },
    );
    assert.equal(state.lastEventId, 3);
    assert.equal(state.status, undefined);
  });
});

describe("the page's drawing of a workflow", () => {
  it("puts every node behind those that lead to it, and no two in one place", () => {
    const graphs = fc.integer({ min: 1, max: 25 }).chain((count) =>
      fc.record({
        nodes: fc.constant(Array.from({ length: count }, (_, i) => ({ id: `n${i}` }))),
        pairs: fc.array(fc.tuple(fc.nat(count - 1), fc.nat(count - 1)), { maxLength: 60 }),
      }),
    );
    fc.assert(
      fc.property(graphs, ({ nodes, pairs }) => {
        const edges = pairs.filter(([a, b]) => a < b).map(([a, b]) => ({ from: `n${a}`, to: `n${b}` }));
        const { places, lanes } = layOut({ nodes, edges });
        assert.equal(places.size, nodes.length);
        for (const { from, to } of edges) assert.ok(places.get(from).rank < places.get(to).rank);
        const all = [...places.values()] as { rank: number; lane: number }[];
        for (const [i, one] of all.entries()) {
          assert.ok(one.lane >= 0 && one.lane <= lanes - 1 + 1e-9);
          for (const other of all.slice(i + 1)) {
            if (one.rank === other.rank) assert.ok(Math.abs(one.lane - other.lane) >= 1 - 1e-9);
          }
        }
      }),
    );
  });
});
