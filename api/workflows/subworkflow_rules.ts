/**
 * What a definition says of other workflows, checked against them when it is saved: versions never
 * change, so what holds then holds for ever.
 */
import type { ErrorDetails } from "#contracts/errors.ts";
import { type WorkflowDefinition, workflowLimits } from "#contracts/workflow.ts";
import type { AnySql } from "#store/sql.ts";
import { nodesIn, type PlacedNode } from "./nested_nodes.ts";
import type { SubworkflowConfig } from "./nodes/subworkflow/node.ts";

export interface UsedVersion {
  id: string;
  workflow_id: string;
  definition: WorkflowDefinition;
}

/** The versions that a definition has as subworkflows, those of its subworkflows not among them. */
export function usedVersionIds(definition: WorkflowDefinition): string[] {
  return [...new Set(subworkflowsIn(definition).map(({ node }) => configOf(node).version_id))];
}

/**
 * Problems by path, as `workflowProblems` has them; for a definition that has none of those.
 * @param workflowId the workflow that gets the definition; undefined for one that is made with it
 */
export function subworkflowProblems(
  definition: WorkflowDefinition,
  workflowId: string | undefined,
  versions: ReadonlyMap<string, UsedVersion>,
): ErrorDetails {
  const problems: Record<string, string> = {};
  if (versions.size > workflowLimits.subworkflowsMax) {
    problems.nodes = `Expected at most ${workflowLimits.subworkflowsMax} versions of workflows inside of one`;
    return problems;
  }
  for (const { node, path, depth } of subworkflowsIn(definition)) {
    const { workflow_id, version_id } = configOf(node);
    const version = versions.get(version_id);
    if (!version) {
      problems[`${path}.config.version_id`] = "Expected a version of a workflow of this project";
      continue;
    }
    if (version.workflow_id !== workflow_id) {
      problems[`${path}.config.workflow_id`] = "Expected the workflow that the version is of";
    }
    if (workflowId !== undefined && contains(version, workflowId, versions)) {
      problems[`${path}.config.workflow_id`] = "Expected no cycle: the workflow would be inside of itself";
    }
    if (depth + 1 + depthOf(version, versions) > workflowLimits.depthMax) {
      problems[`${path}.config.version_id`] =
        `Expected at most ${workflowLimits.depthMax} maps and subworkflows in each other`;
    }
    const missing = Object.entries(version.definition.input?.properties ?? {})
      .filter(([name, { required }]) => required && !(name in (node.inputs ?? {})))
      .map(([name]) => name);
    if (missing.length > 0) {
      problems[`${path}.inputs`] = `Expected inputs that the workflow requires: ${missing.join(", ")}`;
    }
  }
  return problems;
}

/** What a definition uses, and what that uses in turn, as far as it is the project's. */
export async function loadUsedVersions(
  sql: AnySql,
  definition: WorkflowDefinition,
  projectId: string,
): Promise<ReadonlyMap<string, UsedVersion>> {
  const versions = new Map<string, UsedVersion>();
  let wanted = usedVersionIds(definition);
  while (wanted.length > 0 && versions.size <= workflowLimits.subworkflowsMax) {
    const rows = await sql<UsedVersion[]>`
      select version.id, version.workflow_id, version.definition
      from workflow_version version join workflow on workflow.id = version.workflow_id
      where version.id = any (${wanted}::uuid[]) and workflow.project_id = ${projectId}
      limit ${workflowLimits.subworkflowsMax + 1}`;
    for (const row of rows) versions.set(row.id, row);
    wanted = [...new Set(rows.flatMap((row) => usedVersionIds(row.definition)))].filter((id) => !versions.has(id));
  }
  return versions;
}

function subworkflowsIn(definition: WorkflowDefinition): PlacedNode[] {
  return [...nodesIn(definition)].filter(({ node }) => node.type === "subworkflow");
}

const configOf = (node: PlacedNode["node"]) => node.config as SubworkflowConfig;

/** Of any of its versions: one that is older is a cycle all the same, and nobody's intention. */
function contains(version: UsedVersion, workflowId: string, versions: ReadonlyMap<string, UsedVersion>): boolean {
  if (version.workflow_id === workflowId) return true;
  return usedIn(version, versions).some((used) => contains(used, workflowId, versions));
}

/** Maps and subworkflows in each other inside of a version. It was checked when it was saved, so this ends. */
function depthOf(version: UsedVersion, versions: ReadonlyMap<string, UsedVersion>): number {
  const depths = [...nodesIn(version.definition)].map(({ node, depth }) => {
    if (node.type === "map") return depth + 1;
    const used = node.type === "subworkflow" ? versions.get(configOf(node).version_id) : undefined;
    return used ? depth + 1 + depthOf(used, versions) : depth;
  });
  return Math.max(0, ...depths);
}

function usedIn(version: UsedVersion, versions: ReadonlyMap<string, UsedVersion>): UsedVersion[] {
  return usedVersionIds(version.definition).flatMap((id) => versions.get(id) ?? []);
}
