/** All node kinds that are built: a new kind is a folder beside this file and two words here. */
import { TypeCompiler } from "@sinclair/typebox/compiler";
import type { WorkflowNode } from "#contracts/workflow.ts";
import { approval } from "./approval/node.ts";
import { condition } from "./condition/node.ts";
import { delay } from "./delay/node.ts";
import { feedback } from "./feedback/node.ts";
import { http } from "./http/node.ts";
import { input } from "./input/node.ts";
import { llm } from "./llm/node.ts";
import { map } from "./map/node.ts";
import type { NodeKind } from "./node_kind.ts";
import { output } from "./output/node.ts";
import { subworkflow } from "./subworkflow/node.ts";
import { template } from "./template/node.ts";
import { tool } from "./tool/node.ts";
import { transform } from "./transform/node.ts";

/** In the order in which documents and error messages name them. */
export const nodeKinds: readonly NodeKind[] = [
  input,
  output,
  llm,
  http,
  tool,
  template,
  transform,
  condition,
  approval,
  feedback,
  delay,
  map,
  subworkflow,
];

/** Known from the design, not built yet: refused at save with their name. */
export const laterNodeKinds: readonly string[] = ["knowledge_search", "code"];

const byKind = new Map(nodeKinds.map((kind) => [kind.kind, kind]));
const configChecks = new Map(nodeKinds.map(({ kind, config }) => [kind, TypeCompiler.Compile(config)]));

/** The kind of a node; undefined when there is no such kind. */
export function kindOf({ type }: Pick<WorkflowNode, "type">): NodeKind | undefined {
  return byKind.get(type);
}

/** Problems of a node's config by their path below it; empty when it fits the schema of its kind. */
export function configProblems({ type, config = {} }: WorkflowNode): { path: string; message: string }[] {
  return [...(configChecks.get(type)?.Errors(config) ?? [])].map(({ path, message }) => ({
    path: path.replaceAll("/", "."),
    message,
  }));
}

/** A node's config, where it fits the schema of its kind. */
export function fittingConfig({ type, config = {} }: WorkflowNode): object | undefined {
  return configChecks.get(type)?.Check(config) ? config : undefined;
}
