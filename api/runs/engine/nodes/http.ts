import { defaultHandle } from "#contracts/workflow.ts";
import { resolveValue } from "#workflows/references.ts";
import { renderTemplate } from "#workflows/templates.ts";
import { sendForNode } from "../http_answer.ts";
import type { ExecuteNode } from "../node_kind.ts";

/**
 * One HTTP request. URL, headers and query are Mustache templates over the node's inputs (values in
 * the URL percent-encoded), `body` is JSON with references. `Idempotency-Key` stays the same over
 * retries and crashes. Output: `{status, headers, body}`.
 */
export const executeHttp: ExecuteNode<"http"> = async ({
  config,
  inputs,
  context,
  budget,
  nodeRunId,
  deps,
  signal,
}) => {
  const query = new URLSearchParams(
    (config.query ?? []).map(({ key, value }): [string, string] => [key, renderTemplate(value, inputs, budget)]),
  ).toString();
  const url = renderTemplate(config.url, inputs, budget, encodeURIComponent);
  const body = config.body === undefined ? undefined : JSON.stringify(resolveValue(config.body, context, budget));
  const headers = Object.fromEntries(
    (config.headers ?? []).map(({ key, value }) => [key.toLowerCase(), renderTemplate(value, inputs, budget)]),
  );
  const answer = await sendForNode(deps.http, query ? `${url}${url.includes("?") ? "&" : "?"}${query}` : url, {
    method: config.method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      "idempotency-key": nodeRunId,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body }),
    signal,
  });
  return { is: "done", output: answer, handle: defaultHandle };
};
