/**
 * A workflow's definition: a graph of nodes, immutable once it is a version. The schema checks the
 * form; `api/workflows/workflow_rules.ts` checks what a schema cannot (one input, no cycle, references to
 * ancestors only …) and names each offending node.
 */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { named } from "./named_schema.ts";
import { oneOf } from "./one_of.ts";

const closed = { additionalProperties: false } as const;
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const text = (maxLength: number, minLength = 0) => Type.String({ minLength, maxLength });

export const workflowLimits = {
  /** Those inside of maps counted. */
  nodesMax: 200,
  edgesMax: 1000,
  definitionBytesMax: 512 * 1024,
  mapItemsMax: 1000,
  mapConcurrencyMax: 20,
  /** How deep maps and subworkflows may stand in each other. */
  depthMax: 5,
  /** Versions inside of one, those inside of them counted. */
  subworkflowsMax: 100,
} as const;

export const schemaTypes = ["string", "number", "integer", "boolean", "object", "array", "any"] as const;

/** A schema node as the interface document has it: `required` stands on the child. */
export interface SchemaNode {
  type: (typeof schemaTypes)[number];
  description?: string;
  required?: boolean;
  enum?: unknown[];
  properties?: Record<string, SchemaNode>;
  items?: SchemaNode;
}
export const SchemaNode = Type.Recursive(
  (This) =>
    Type.Object(
      {
        type: { ...oneOf(schemaTypes), about: "what kind of value" },
        description: optional(Type.String({ maxLength: 2000, about: "what it is" })),
        required: optional(Type.Boolean({ about: "of a field: whether it has to be there; false unless given" })),
        enum: optional(Type.Array(Type.Unknown(), { maxItems: 1000, about: "the only values" })),
        properties: optional(Type.Record(text(200, 1), This, { about: "fields of an object" })),
        items: optional(This),
      },
      closed,
    ),
  { $id: "SchemaNode", description: "the form of a value, of one field, or of what is in an array" },
);

/** A JSONPath (RFC 9535) such as `$.input.question`, or a literal: anything that is not a string beginning with `$`. */
const reference = () => Type.Unknown({ description: "JSONPath beginning with $, or a literal" });

const headers = () => Type.Array(Type.Object({ key: text(200, 1), value: text(8192) }, closed), { maxItems: 50 });
const httpUrl = () => Type.String({ maxLength: 4096, pattern: "^https?://" });
const toolParam = Type.Object(
  {
    name: text(100, 1),
    type: optional(oneOf(["string", "number", "integer", "boolean", "object", "array"])),
    in: optional(oneOf(["path", "query", "body", "header"])),
    description: optional(text(2000)),
    required: optional(Type.Boolean()),
  },
  closed,
);

/** An HTTP tool, in the voice agent's shape. */
export const HttpTool = Type.Object(
  {
    name: Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_-]{0,63}$" }),
    description: optional(text(4000)),
    method: optional(oneOf(["GET", "POST", "PUT", "PATCH", "DELETE"])),
    url: httpUrl(),
    headers: optional(headers()),
    params: optional(Type.Array(toolParam, { maxItems: 100 })),
    timeout_s: optional(Type.Number({ minimum: 0.1, maximum: 120 })),
  },
  closed,
);
export type HttpTool = Static<typeof HttpTool>;

/** A tool of an MCP server. */
export const McpTool = Type.Object(
  {
    url: httpUrl(),
    tool: text(200, 1),
    connection_id: optional(Type.String({ format: "uuid" })),
    headers: optional(headers()),
  },
  closed,
);
export type McpTool = Static<typeof McpTool>;

const nodeId = () => Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_-]{0,63}$" });

/** `config` is checked by the node's kind in a second step, so that its errors name the node. */
export const WorkflowNode = named(
  "WorkflowNode",
  Type.Object(
    {
      id: nodeId(),
      type: Type.String(),
      name: optional(text(200)),
      config: optional(Type.Record(Type.String(), Type.Unknown())),
      inputs: optional(Type.Record(text(200, 1), reference())),
      retry: optional(
        Type.Object(
          {
            max_attempts: Type.Integer({ minimum: 1, maximum: 10, about: "the first one counted" }),
            backoff_ms: optional(
              Type.Integer({
                minimum: 0,
                maximum: 600_000,
                about: "wait before the second attempt; each further one waits twice as long",
              }),
            ),
          },
          closed,
        ),
      ),
      timeout_s: optional(Type.Number({ minimum: 0.1, maximum: 86_400 })),
      join: optional(oneOf(["all", "any"])),
    },
    closed,
  ),
  {
    id: "unique in its graph; references name it",
    type: "its kind: one of `/v1/workflow-node-kinds`",
    name: "what people call it",
    config: "what its kind is told",
    inputs: "what it is given, by name",
    retry: "tried again when it fails",
    timeout_s: "seconds until it fails",
    join: "waits for all edges that lead to it (default), or for the first",
  },
);
export type WorkflowNode = Static<typeof WorkflowNode>;

export const WorkflowEdge = named(
  "WorkflowEdge",
  Type.Object({ from: nodeId(), to: nodeId(), handle: optional(text(64, 1)) }, closed),
  {
    from: "the node that it leaves",
    to: "the node that it leads to",
    handle: "the branch of the node that it leaves by; `default` unless given, `error` where the node failed",
  },
);
export type WorkflowEdge = Static<typeof WorkflowEdge>;

export const WorkflowDefinition = named(
  "WorkflowDefinition",
  Type.Object(
    {
      schema_version: Type.Literal(1),
      input: optional(SchemaNode),
      nodes: Type.Array(WorkflowNode, { minItems: 1, maxItems: workflowLimits.nodesMax }),
      edges: Type.Array(WorkflowEdge, { maxItems: workflowLimits.edgesMax }),
    },
    closed,
  ),
  {
    schema_version: "always 1",
    input: "the form of what a run is started with",
    nodes: "its steps",
    edges: "their order",
  },
);
export type WorkflowDefinition = Static<typeof WorkflowDefinition>;

/** The handle of an edge that names none. */
export const defaultHandle = "default";
/** The handle that a failed node leaves by, where an edge takes it. */
export const errorHandle = "error";
