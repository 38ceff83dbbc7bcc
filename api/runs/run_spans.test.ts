import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NewRunEvent, RunEvent } from "#contracts/run_event.ts";
import { boundedTrace } from "#traces/own_span.ts";
import { traceLimits } from "#traces/span.ts";
import { type EndedRun, RunSpans } from "./run_spans.ts";

const at = (ms: number) => new Date(Date.UTC(2026, 10, 22, 10) + ms);
const run: EndedRun = {
  id: "00000000-0000-4000-8000-000000000001",
  trace_id: "00000000-0000-4000-8000-000000000002",
  organization_id: "o",
  project_id: "p",
  app_id: "a",
  app_name: "Desk",
  workflow_version_id: "v",
  status: "succeeded",
  input: {},
  output: {},
  error: null,
  usage: null,
  metadata: {},
  session_id: null,
  user_id: null,
  caller_span: null,
  created_at: at(0),
  ended_at: at(1000),
  active_ms: 900,
};
type Told = [ms: number, event: NewRunEvent];

function spansOf(told: readonly Told[], changes: Partial<EndedRun> = {}) {
  const made = new RunSpans({ ...run, ...changes });
  for (const [i, [ms, event]] of told.entries()) {
    made.take({ ...event, id: i + 2, run_id: run.id, created_at: at(ms).toISOString() } as RunEvent);
  }
  return made.trace().spans;
}
const started = (node: string, more: Partial<NewRunEvent> = {}) =>
  ({ type: "node.started", node_id: node, node_run_id: node, ...more, data: { type: "llm" } }) as NewRunEvent;
const completed = (node: string) =>
  ({ type: "node.completed", node_id: node, node_run_id: node, data: { duration_ms: 1 } }) as NewRunEvent;
const called = (node: string, call_id: string) =>
  ({ type: "tool.called", node_run_id: node, data: { call_id, name: "find", arguments: {} } }) as NewRunEvent;

describe("the spans of a run", () => {
  it("nest as its nodes do, each attempt on its own", () => {
    const spans = spansOf([
      [100, started("each")],
      [110, started("inner", { parent_node_run_id: "each", iteration: 1 })],
      [
        150,
        {
          type: "node.retrying",
          node_run_id: "inner",
          data: { error: { code: "model_failed", message: "busy" }, next_attempt: 2, delay_ms: 10 },
        },
      ],
      [160, started("inner", { parent_node_run_id: "each", iteration: 1, attempt: 2 })],
      [170, called("inner", "c1")],
      [190, { type: "tool.completed", node_run_id: "inner", data: { call_id: "c1", result: 9, duration_ms: 20 } }],
      [200, completed("inner")],
      [210, completed("each")],
    ]);
    const nameOf = (id: string | null) => spans.find(({ span_id }) => span_id === id)?.name ?? null;
    assert.deepEqual(
      spans.map((span) => [span.name, nameOf(span.parent_span_id), span.status, span.duration_ms]),
      [
        ["invoke_workflow Desk", null, "succeeded", 1000],
        ["each", "invoke_workflow Desk", "succeeded", 110],
        ["inner", "each", "failed", 40],
        ["inner", "each", "succeeded", 40],
        ["execute_tool find", "inner", "succeeded", 20],
      ],
    );
    const tool = spans.at(-1);
    assert.equal(tool?.parent_span_id, spans[3]?.span_id, "of the attempt that called it");
    assert.equal(new Set(spans.map(({ span_id }) => span_id)).size, spans.length);
  });

  it("tell of an attempt that a crash cut off, and of what nobody ended", () => {
    const spans = spansOf(
      [
        [100, started("ask")],
        [120, called("ask", "c1")],
        [500, { type: "run.started", data: { attempt: 2, worker: "w2", recovered: true } }],
        [510, started("ask", { attempt: 2 })],
      ],
      { status: "canceled" },
    );
    assert.deepEqual(
      spans.map((span) => [span.name, span.status, span.duration_ms]),
      [
        ["invoke_workflow Desk", "canceled", 1000],
        ["ask", "failed", 410],
        ["execute_tool find", "canceled", 390],
        ["ask", "canceled", 490],
      ],
    );
    assert.equal(spans[1]?.attributes["error.type"], "worker_lost");
  });

  it("are bounded, and what is left out is counted and said", () => {
    const told = Array.from({ length: traceLimits.spansMax + 4 }, (_, i): Told => [i % 900, started(`n${i}`)]);
    const made = new RunSpans(run);
    for (const [i, [ms, event]] of told.entries()) {
      made.take({ ...event, id: i + 2, run_id: run.id, created_at: at(ms).toISOString() } as RunEvent);
    }
    const { trace, dropped } = boundedTrace(made.trace());
    assert.deepEqual([dropped, trace.spans.length], [5, traceLimits.spansMax]);
    assert.equal(trace.spans[0]?.attributes["frontdesk.dropped_spans"], 5);
    const large = "x".repeat(1024 * 1024);
    const spans = spansOf([]).flatMap((root) => Array.from({ length: 20 }, () => ({ ...root, input: large })));
    const cut = boundedTrace({ trace: trace.trace, spans }).trace.spans;
    assert.equal(cut.filter(({ input }) => input !== null).length, 7);
    assert.deepEqual(cut.at(-1)?.truncated, ["input", "output"]);
  });
});
