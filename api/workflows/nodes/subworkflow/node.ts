import type { Static } from "@sinclair/typebox";
import { schemaProblems } from "../../schema_node.ts";
import { graphOf } from "../../workflow_graph.ts";
import { config, uuid } from "../config_schemas.ts";
import { defineNode, type ExecuteNode, NodeError } from "../node_kind.ts";

const SubworkflowConfig = config({ workflow_id: uuid(), version_id: uuid() });
export type SubworkflowConfig = Static<typeof SubworkflowConfig>;

const execute: ExecuteNode<SubworkflowConfig> = async ({ config, inputs, context, budget, deps }) => {
  const definition = await deps.definitionOf(config.version_id);
  if (!definition) {
    throw new NodeError("unknown_version", `The run's project has no workflow version ${config.version_id}`);
  }
  const [problem] = definition.input ? Object.entries(schemaProblems(definition.input, inputs, "inputs", budget)) : [];
  if (problem) throw new NodeError("bad_input", `${problem[0]}: ${problem[1]}`);
  return {
    is: "nesting",
    nesting: {
      graph: graphOf(definition),
      iterations: 1,
      concurrency: 1,
      counts: false,
      toleratesErrors: false,
      contextOf: () => ({ input: inputs, nodes: {}, run: context.run }),
      outputOf: ([outcome]) => (outcome && "output" in outcome ? outcome.output : {}),
      errorOf: (_, error) => error,
    },
  };
};

/**
 * Walks through a version of another workflow of the project. Its input is the node's inputs, its
 * output the node's; it sees nothing else of the run that it is part of.
 */
export const subworkflow = defineNode({
  kind: "subworkflow",
  words: { name: "Workflow", icon: "M4 5h16v14H4zM7 10h3v4H7zM14 10h3v4h-3zM10 12h4" },
  config: SubworkflowConfig,
  isContainer: true,
  execute,
});
