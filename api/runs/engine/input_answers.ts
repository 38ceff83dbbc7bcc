/** Requests for input as a run meets them: what it asks, what was answered, and what its events say of both. */
import type { RunEventData } from "#contracts/run_event.ts";
import type { Sql } from "#store/sql.ts";
import type { InputAnswer, InputQuestion } from "#workflows/nodes/node_kind.ts";

export interface AskedInput {
  id: string;
  nodeRunId: string;
  nodeId: string;
  question: InputQuestion;
  onTimeout: string;
  expiresAt: Date | undefined;
}

/** A request of a node that has not finished. */
export interface InputRequestRow {
  id: string;
  node_run_id: string;
  status: "pending" | "resolved" | "expired";
  /** The run has gone on with the answer before, and says so no second time. */
  taken: boolean;
  params: Record<string, unknown>;
  response: {
    decision?: "approve" | "reject" | "respond";
    params?: Record<string, unknown>;
    feedback?: unknown;
    comment?: string;
    responded_by?: string;
  } | null;
}

export async function openInputRequests(sql: Sql, runId: string): Promise<InputRequestRow[]> {
  return sql<InputRequestRow[]>`
    select request.id, request.node_run_id, request.status, request.taken, request.params, request.response
    from input_request request join node_run on node_run.id = request.node_run_id
    where request.run_id = ${runId} and request.status in ('pending', 'resolved', 'expired')
      and node_run.status in ('running', 'waiting')
    order by request.resolved_at, request.id`;
}

export function requestedData({ id, nodeId, question, expiresAt }: AskedInput): RunEventData["input.requested"] {
  const { type, prompt, params, editable_params, audience, response_schema } = question;
  return {
    id,
    type,
    prompt,
    params,
    editable_params,
    ...(audience && { audience }),
    node_id: nodeId,
    allowed_decisions: type === "approval_request" ? ["approve", "reject"] : ["respond"],
    ...(expiresAt && { expires_at: expiresAt.toISOString() }),
    ...(response_schema && { response_schema }),
  };
}

export function answerOf({ status, params, response }: InputRequestRow): InputAnswer {
  const { feedback, comment, responded_by } = response ?? {};
  return {
    decision: status === "expired" ? "expired" : (response?.decision ?? "approve"),
    params: { ...params, ...response?.params },
    ...(feedback !== undefined && { feedback }),
    ...(comment !== undefined && { comment }),
    ...(responded_by !== undefined && { responded_by }),
  };
}

export function resolvedData(request: InputRequestRow): RunEventData["input.resolved"] {
  const { decision, comment, responded_by } = answerOf(request);
  return {
    input_request_id: request.id,
    decision,
    changed_params: Object.keys(request.response?.params ?? {}),
    ...(responded_by !== undefined && { responded_by }),
    ...(comment !== undefined && { comment }),
  };
}
