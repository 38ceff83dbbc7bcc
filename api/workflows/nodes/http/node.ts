import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";
import { defaultHandle } from "#contracts/workflow.ts";
import { resolveValue } from "../../references.ts";
import { renderTemplate, templateProblem } from "../../templates.ts";
import { config, optional, pairs, text } from "../config_schemas.ts";
import { sendForNode } from "../http_answer.ts";
import { defineNode, type ExecuteNode } from "../node_kind.ts";

const HttpConfig = config({
  method: optional(oneOf(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])),
  url: text(4096, 1),
  headers: optional(pairs(50)),
  query: optional(pairs(100)),
  body: optional(Type.Unknown()),
});

const execute: ExecuteNode<Static<typeof HttpConfig>> = async ({
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

/**
 * One HTTP request. URL, headers and query are Mustache templates over the node's inputs (values in
 * the URL percent-encoded), `body` is JSON with references. `Idempotency-Key` stays the same over
 * retries and crashes. Output: `{status, headers, body}`.
 */
export const http = defineNode({
  kind: "http",
  words: {
    name: "HTTP",
    icon: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M4 12h16M12 4c5 5 5 11 0 16M12 4c-5 5-5 11 0 16",
  },
  config: HttpConfig,
  check({ url }, { path, report }) {
    const problem = templateProblem(url);
    if (problem) report(`${path}.url`, problem);
  },
  references: ({ body }) => body,
  reachesOut: true,
  execute,
});
