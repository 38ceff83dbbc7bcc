/**
 * The spans of a run, made of its log: one for the run, one for each attempt of a node, for each request to a model
 * and for each tool. Pure: the same log makes the same spans, ids included.
 */
import type { RunError, RunEvent, RunUsage } from "#contracts/run_event.ts";
import { attributesOf, costIn, llmAttributes, ownSpan, toolAttributes } from "#traces/own_span.ts";
import type { Span, TraceSpans } from "#traces/span.ts";
import { spanIdOf } from "#traces/span_ids.ts";

/** A run that is over, as its row has it. */
export interface EndedRun {
  id: string;
  trace_id: string;
  organization_id: string;
  project_id: string;
  app_id: string;
  app_name: string;
  workflow_version_id: string;
  status: "succeeded" | "failed" | "canceled";
  input: Record<string, unknown>;
  output: Record<string, unknown> | null;
  error: RunError | null;
  usage: RunUsage | null;
  metadata: Record<string, unknown>;
  session_id: string | null;
  user_id: string | null;
  /** Trace id and span id of who asked for it, in hex. */
  caller_span: string | null;
  created_at: Date;
  ended_at: Date;
  active_ms: number;
}

type NodeEvent<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;

/** One attempt of a node, until its end is told. */
interface Attempt {
  span: Span;
  called: Map<string, NodeEvent<"tool.called">>;
  /** What the model said, by request. */
  texts: Map<number, string>;
}

export class RunSpans {
  readonly #run: EndedRun;
  readonly #rootId: string;
  readonly #spans: Span[] = [];
  /** The newest of each node run; its span's id stands for what is inside of it. */
  readonly #attempts = new Map<string, Attempt>();
  readonly #open = new Set<Attempt>();

  constructor(run: EndedRun) {
    this.#run = run;
    this.#rootId = rootSpanIdOf(run.id);
  }

  /** Events in the order of their ids; deltas and progress are not needed. */
  take(event: RunEvent): void {
    if (event.type === "node.started") {
      this.#start(event);
      return;
    }
    const attempt = this.#attempts.get(event.node_run_id ?? "");
    if (!attempt || !this.#open.has(attempt)) return;
    switch (event.type) {
      case "content.completed":
        attempt.texts.set(event.data.index, event.data.text);
        break;
      case "model.completed":
        this.#spans.push(this.#modelSpan(attempt, event));
        break;
      case "tool.called":
        attempt.called.set(event.data.call_id, event);
        break;
      case "tool.completed":
        this.#endTool(attempt, event);
        break;
      case "input.requested":
      case "input.resolved":
        attempt.span.events.push({ name: event.type, at: event.created_at, attributes: event.data });
        break;
      case "node.retrying":
        this.#end(attempt, event.created_at, "failed", event.data.error);
        break;
      case "node.failed":
        this.#end(attempt, event.created_at, "failed", event.data.error);
        break;
      case "node.completed":
        attempt.span.output = event.data.output ?? null;
        this.#end(attempt, event.created_at, "succeeded");
        break;
    }
  }

  /** After the last event. */
  trace(): TraceSpans {
    const { id, trace_id, organization_id, project_id, app_id, session_id, user_id, metadata } = this.#run;
    // Whatever was not told to have ended ended with the run.
    for (const attempt of this.#open) this.#end(attempt, this.#run.ended_at.toISOString(), "canceled");
    const spans = this.#spans.sort((a, b) => a.started_at.getTime() - b.started_at.getTime());
    return {
      trace: {
        id: trace_id,
        organization_id,
        project_id,
        app_id,
        source: "run",
        source_id: id,
        session_id,
        user_id,
        metadata,
      },
      spans: [this.#rootSpan(), ...spans],
    };
  }

  #rootSpan(): Span {
    const run = this.#run;
    return ownSpan({
      span_id: this.#rootId,
      kind: "run",
      name: `invoke_workflow ${run.app_name}`,
      status: run.status,
      status_message: run.error?.message ?? null,
      started_at: run.created_at,
      duration_ms: between(run.created_at, run.ended_at),
      prompt_tokens: run.usage?.prompt_tokens ?? null,
      completion_tokens: run.usage?.completion_tokens ?? null,
      cached_tokens: run.usage?.cached_tokens ?? null,
      input: run.input,
      output: run.output,
      links: linksOf(run.caller_span),
      attributes: attributesOf({
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": run.app_name,
        "gen_ai.conversation.id": run.session_id,
        "user.id": run.user_id,
        "error.type": run.error?.code,
        "frontdesk.run.id": run.id,
        "frontdesk.app.id": run.app_id,
        "frontdesk.workflow_version.id": run.workflow_version_id,
        "frontdesk.run.active_ms": run.active_ms,
      }),
    });
  }

  #start(event: NodeEvent<"node.started">): void {
    const { node_id = "", node_run_id = "", parent_node_run_id, iteration, attempt = 1, data } = event;
    const before = this.#attempts.get(node_run_id);
    // Its worker died over it, and another one begins again.
    if (before && this.#open.has(before)) {
      this.#end(before, event.created_at, "failed", { code: "worker_lost", message: "The worker was lost" });
    }
    const parent = parent_node_run_id === undefined ? undefined : this.#attempts.get(parent_node_run_id);
    const started: Attempt = {
      called: new Map(),
      texts: new Map(),
      span: ownSpan({
        span_id: spanIdOf("node", node_run_id, event.id),
        parent_span_id: parent?.span.span_id ?? this.#rootId,
        kind: data.type === "http" ? "http" : "node",
        name: data.name ?? node_id,
        started_at: new Date(event.created_at),
        duration_ms: 0,
        input: data.input ?? null,
        attributes: attributesOf({
          "frontdesk.node.id": node_id,
          "frontdesk.node.type": data.type,
          "frontdesk.node_run.id": node_run_id,
          "frontdesk.node.attempt": attempt,
          "frontdesk.node.iteration": iteration,
        }),
      }),
    };
    this.#attempts.set(node_run_id, started);
    this.#open.add(started);
  }

  #end(attempt: Attempt, at: string, status: Span["status"], error?: RunError): void {
    const { span } = attempt;
    for (const [callId, called] of attempt.called) {
      this.#spans.push(
        this.#toolSpan(attempt, called, {
          durationMs: between(new Date(called.created_at), new Date(at)),
          status: "canceled",
        }),
      );
      attempt.called.delete(callId);
    }
    span.status = status;
    span.duration_ms = between(span.started_at, new Date(at));
    if (error) {
      span.status_message = error.message;
      span.attributes["error.type"] = error.code;
    }
    this.#open.delete(attempt);
    this.#spans.push(span);
  }

  #modelSpan({ span, texts }: Attempt, { id, created_at, data }: NodeEvent<"model.completed">): Span {
    const { provider, model, usage, cost, currency, error, first_token_ms, duration_ms, index } = data;
    const text = texts.get(index);
    return ownSpan({
      span_id: spanIdOf("model", this.#run.id, id),
      parent_span_id: span.span_id,
      kind: "llm",
      name: `chat ${model}`,
      status: error === undefined ? "succeeded" : "failed",
      status_message: error ?? null,
      started_at: new Date(Date.parse(created_at) - duration_ms),
      duration_ms,
      model,
      provider,
      prompt_tokens: usage.prompt_tokens,
      completion_tokens: usage.completion_tokens,
      cached_tokens: usage.cached_tokens ?? null,
      output: text ?? null,
      ...costIn(currency, cost),
      attributes: llmAttributes({
        cost,
        currency,
        provider,
        model,
        promptTokens: usage.prompt_tokens,
        completionTokens: usage.completion_tokens,
        cachedTokens: usage.cached_tokens,
        firstTokenMs: first_token_ms,
        sessionId: this.#run.session_id,
      }),
    });
  }

  #endTool(attempt: Attempt, { data }: NodeEvent<"tool.completed">): void {
    const called = attempt.called.get(data.call_id);
    if (!called) return;
    attempt.called.delete(data.call_id);
    const { result, error, duration_ms: durationMs } = data;
    this.#spans.push(
      this.#toolSpan(attempt, called, {
        durationMs,
        status: error === undefined ? "succeeded" : "failed",
        ...(error !== undefined && { error }),
        result,
      }),
    );
  }

  #toolSpan(
    { span }: Attempt,
    { id, created_at, data }: NodeEvent<"tool.called">,
    ended: { durationMs: number; status: Span["status"]; error?: string; result?: unknown },
  ): Span {
    return ownSpan({
      span_id: spanIdOf("tool", this.#run.id, id),
      parent_span_id: span.span_id,
      kind: "tool",
      name: `execute_tool ${data.name}`,
      tool_name: data.name,
      status: ended.status,
      status_message: ended.error ?? null,
      started_at: new Date(created_at),
      duration_ms: ended.durationMs,
      input: data.arguments,
      output: ended.result ?? null,
      attributes: toolAttributes({ name: data.name, callId: data.call_id }),
    });
  }
}

function linksOf(callerSpan: string | null): Span["links"] {
  const [trace_id, span_id] = callerSpan?.split("-") ?? [];
  return trace_id && span_id ? [{ trace_id, span_id, attributes: {} }] : [];
}

/** The span that stands for a run as a whole. */
export const rootSpanIdOf = (runId: string) => spanIdOf("run", runId);

/** Milliseconds; processes' clocks may differ by a little. */
const between = (from: Date, to: Date) => Math.max(0, to.getTime() - from.getTime());
