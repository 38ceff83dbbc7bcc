import { Type } from "@sinclair/typebox";
import { defaultHandle } from "#contracts/workflow.ts";
import { resolveValue } from "../../references.ts";
import { config, reference, text } from "../config_schemas.ts";
import { defineNode } from "../node_kind.ts";

/** An object of picked values: each field of `map` is a reference or a literal. No match is null. */
export const transform = defineNode({
  kind: "transform",
  words: { name: "Transform", icon: "M4 8h12l-3-3m3 3-3 3M20 16H8l3-3m-3 3 3 3" },
  config: config({ map: Type.Record(text(200, 1), reference()) }),
  references: ({ map }) => map,
  execute({ config, context, inputs, budget }) {
    const fields = Object.entries(config.map).map(([name, value]) => [
      name,
      resolveValue(value, context, budget) ?? null,
    ]);
    return { is: "done", output: { ...inputs, ...Object.fromEntries(fields) }, handle: defaultHandle };
  },
});
