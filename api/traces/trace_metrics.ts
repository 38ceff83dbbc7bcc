/** What became of traces, for Prometheus and the log. */
import { Counter, type Registry } from "prom-client";
import type { Logger } from "#http/logger.ts";
import type { TraceHead } from "./span.ts";

/** A line of the log for what was dropped, at most so often. */
const toldEveryMs = 60_000;

export interface TraceMetrics {
  written(traces: number): void;
  dropped(of: TraceHead, spans: number): void;
}

export function createTraceMetrics(registry: Registry, logger: Logger, nowMs = () => performance.now()): TraceMetrics {
  const registers = [registry];
  const written = new Counter({
    name: "frontdesk_traces_written_total",
    help: "Traces made of runs and calls that were over",
    registers,
  });
  const dropped = new Counter({
    name: "frontdesk_trace_spans_dropped_total",
    help: "Spans left out of traces that had too many",
    registers,
  });
  let untold = 0;
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return {
    written: (traces) => written.inc(traces),
    dropped({ id, source, source_id }, spans) {
      dropped.inc(spans);
      untold += spans;
      if (nowMs() - toldAtMs < toldEveryMs) return;
      toldAtMs = nowMs();
      logger.warn({ dropped: untold, trace_id: id, source, source_id }, "traces had more spans than are kept");
      untold = 0;
    },
  };
}
