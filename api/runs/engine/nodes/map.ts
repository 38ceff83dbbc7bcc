import { workflowLimits } from "#contracts/workflow.ts";
import { resolveValue } from "#workflows/references.ts";
import { graphOf } from "#workflows/workflow_graph.ts";
import { type ExecuteNode, NodeError } from "../node_kind.ts";

const concurrencyDefault = 5;

/**
 * Walks through `body` once for each item, some side by side. An item's output is what the body's
 * output nodes say. Output: `{items, errors}`, the items in their order, null for one that failed,
 * which stands in `errors` as `{index, error}` where `on_item_error` is `continue`.
 */
export const executeMap: ExecuteNode<"map"> = ({ config, context, budget }) => {
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
