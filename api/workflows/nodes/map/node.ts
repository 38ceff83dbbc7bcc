import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";
import { WorkflowEdge, WorkflowNode, workflowLimits } from "#contracts/workflow.ts";
import { resolveValue } from "../../references.ts";
import { graphOf } from "../../workflow_graph.ts";
import { config, optional, reference } from "../config_schemas.ts";
import { defineNode, type ExecuteNode, NodeError } from "../node_kind.ts";

const MapConfig = config({
  items: reference(),
  /** A graph of its own, without an input node: it begins at every node that nothing leads to. */
  body: config({
    nodes: Type.Array(WorkflowNode, { minItems: 1, maxItems: workflowLimits.nodesMax }),
    edges: Type.Array(WorkflowEdge, { maxItems: workflowLimits.edgesMax }),
  }),
  concurrency: optional(Type.Integer({ minimum: 1, maximum: workflowLimits.mapConcurrencyMax })),
  max_items: optional(Type.Integer({ minimum: 1, maximum: workflowLimits.mapItemsMax })),
  on_item_error: optional(oneOf(["fail", "continue"])),
});

const concurrencyDefault = 5;

const execute: ExecuteNode<Static<typeof MapConfig>> = ({ config, context, budget }) => {
  const items = resolveValue(config.items, context, budget);
  const itemsMax = config.max_items ?? workflowLimits.mapItemsMax;
  if (!Array.isArray(items)) throw new NodeError("bad_items", "Expected items to be an array");
  if (items.length > itemsMax) {
    throw new NodeError("too_many_items", `Expected at most ${itemsMax} items, got ${items.length}`);
  }
  return {
    is: "nesting",
    nesting: {
      graph: graphOf(config.body),
      iterations: items.length,
      concurrency: config.concurrency ?? concurrencyDefault,
      counts: true,
      toleratesErrors: config.on_item_error === "continue",
      contextOf: (index) => ({ ...context, nodes: { ...context.nodes }, item: items[index], index }),
      outputOf: (outcomes) => ({
        items: outcomes.map((outcome) => ("output" in outcome ? outcome.output : null)),
        errors: outcomes.flatMap((outcome, index) => ("error" in outcome ? [{ index, error: outcome.error }] : [])),
      }),
      errorOf: (index, { code, message, node_id }) => ({
        code,
        message: `Item ${index}: ${message}`,
        ...(node_id !== undefined && { node_id }),
      }),
    },
  };
};

/**
 * Walks through `body` once for each item, some side by side. An item's output is what the body's
 * output nodes say. Output: `{items, errors}`, the items in their order, null for one that failed,
 * which stands in `errors` as `{index, error}` where `on_item_error` is `continue`.
 */
export const map = defineNode({
  kind: "map",
  words: { name: "Map", icon: "M4 5h6v5H4zM14 5h6v5h-6zM4 14h6v5H4zM14 14h6v5h-6z" },
  config: MapConfig,
  references: ({ items }) => items,
  isContainer: true,
  body: ({ body }) => body,
  execute,
});
