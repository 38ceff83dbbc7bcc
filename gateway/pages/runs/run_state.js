/**
 * A run as its events tell it. Pure: `takeEvent` brings a state up to date with the next event;
 * types that it does not know change nothing.
 */

/**
 * @typedef {object} NodeState
 * @property {string} id
 * @property {"running" | "waiting" | "retrying" | "succeeded" | "skipped" | "failed"} is
 * @property {string[]} texts what it said, part by part
 * @property {Map<string, object>} tools calls by their id
 * @property {number} [startedMs]
 * @property {number} [endedMs]
 */

export function emptyRun() {
  return {
    id: undefined,
    status: undefined,
    input: undefined,
    createdMs: undefined,
    endedMs: undefined,
    attempt: 0,
    recovered: false,
    /** @type {Map<string, NodeState>} in the order in which they were first heard of */
    nodes: new Map(),
    /** Requests for input by their id; `resolved` once they are. */
    requests: new Map(),
    output: undefined,
    error: undefined,
    usage: undefined,
    durationMs: undefined,
    reason: undefined,
    lastEventId: 0,
  };
}

export function isOver(run) {
  return run.status === "succeeded" || run.status === "failed" || run.status === "canceled";
}

/** @param {ReturnType<typeof emptyRun>} run changed in place @param {object} event */
export function takeEvent(run, event) {
  const { type, data } = event;
  const atMs = Date.parse(event.created_at);
  run.lastEventId = event.id;
  if (type.startsWith("run.")) takeRunEvent(run, type, data, atMs);
  else if (event.node_id !== undefined || data.node_id !== undefined) {
    takeNodeEvent(run, nodeOf(run, event.node_id ?? data.node_id), event, atMs);
  }
  if (type === "input.resolved") {
    const request = run.requests.get(data.input_request_id);
    if (request) request.resolved = data;
  }
}

function takeRunEvent(run, type, data, atMs) {
  switch (type) {
    case "run.created":
      Object.assign(run, { id: data.id, status: data.status, input: data.input, createdMs: atMs });
      Object.assign(run, { sessionId: data.session_id, versionId: data.workflow_version_id, traceId: data.trace_id });
      break;
    case "run.started":
      Object.assign(run, {
        status: "running",
        attempt: data.attempt,
        recovered: run.recovered || data.recovered === true,
      });
      break;
    case "run.resumed":
      run.status = "running";
      break;
    case "run.awaiting_input":
      run.status = "awaiting_input";
      break;
    case "run.succeeded":
    case "run.failed":
    case "run.canceled":
      Object.assign(run, { status: type.slice("run.".length), endedMs: atMs, output: data.output, error: data.error });
      Object.assign(run, { usage: data.usage, durationMs: data.duration_ms, reason: data.reason });
      for (const node of run.nodes.values()) if (node.endedMs === undefined) node.endedMs = atMs;
      break;
  }
}

function nodeOf(run, id) {
  let node = run.nodes.get(id);
  if (!node) {
    node = { id, is: "running", texts: [], reasoning: "", tools: new Map() };
    run.nodes.set(id, node);
  }
  return node;
}

function takeNodeEvent(run, node, { type, data }, atMs) {
  switch (type) {
    case "node.started":
      // Also after a crash: what it had said belongs to the attempt that was lost.
      Object.assign(node, {
        is: "running",
        type: data.type,
        name: data.name,
        input: data.input,
        startedMs: node.startedMs ?? atMs,
      });
      forgetWords(node);
      break;
    case "node.progress":
      node.progress = data;
      break;
    case "content.delta":
      if (data.channel === "reasoning") node.reasoning += data.text ?? "";
      else node.texts[data.index] = (node.texts[data.index] ?? "") + (data.text ?? data.json_delta ?? "");
      break;
    case "content.completed":
      node.texts[data.index] = data.text;
      break;
    case "tool.called":
      node.tools.set(data.call_id, { name: data.name, arguments: data.arguments });
      break;
    case "tool.completed":
      node.tools.set(data.call_id, { ...node.tools.get(data.call_id), ...data, done: true });
      break;
    case "node.retrying":
      forgetWords(node);
      Object.assign(node, { is: "retrying", error: data.error, nextAttempt: data.next_attempt });
      break;
    case "node.completed":
      Object.assign(node, { is: "succeeded", endedMs: atMs, output: data.output, usage: data.usage, error: undefined });
      Object.assign(node, { handle: data.handle, durationMs: data.duration_ms });
      break;
    case "node.skipped":
      Object.assign(node, { is: "skipped", startedMs: atMs, endedMs: atMs, reason: data.reason });
      break;
    case "node.failed":
      Object.assign(node, { is: "failed", endedMs: atMs, error: data.error, handled: data.handled });
      break;
    case "input.requested":
      run.requests.set(data.id, data);
      Object.assign(node, { is: "waiting", askedMs: atMs, requestId: data.id });
      break;
    case "input.resolved":
      if (node.is === "waiting") Object.assign(node, { is: "running", answeredMs: atMs });
      break;
  }
}

function forgetWords(node) {
  node.texts = [];
  node.reasoning = "";
  node.tools = new Map();
}
