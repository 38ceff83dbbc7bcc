import { defaultHandle } from "#contracts/workflow.ts";
import { resolveValue } from "#workflows/references.ts";
import type { ExecuteNode } from "../node_kind.ts";

/** An object of picked values: each field of `map` is a reference or a literal. No match is null. */
export const executeTransform: ExecuteNode<"transform"> = ({ config, context, inputs, budget }) => {
  const fields = Object.entries(config.map).map(([name, value]) => [
    name,
    resolveValue(value, context, budget) ?? null,
  ]);
  return { is: "done", output: { ...inputs, ...Object.fromEntries(fields) }, handle: defaultHandle };
};
