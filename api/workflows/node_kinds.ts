/** The kinds of nodes that workflows are made of, for who draws or writes a workflow. */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { type Route, route } from "#http/route.ts";
import type { ApiDeps } from "#identity/api_deps.ts";
import { nodeKinds } from "./nodes/catalogue.ts";

const NodeKindWords = named(
  "NodeKind",
  Type.Object({
    kind: Type.String({ description: "what a node's `type` says" }),
    name: Type.String(),
    icon: Type.String({ description: "an SVG path of strokes in a square of 24 by 24" }),
    config: Type.Unsafe<TSchema>({ type: "object", description: "JSON Schema of a node's `config`" }),
  }),
  {
    name: "what people call it",
  },
);
type NodeKindWords = Static<typeof NodeKindWords>;

const listed: NodeKindWords[] = nodeKinds.map(({ kind, words, config }) => ({ kind, ...words, config }));

export function nodeKindRoutes({ personalAccessToken: guard }: Pick<ApiDeps, "personalAccessToken">): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/workflow-node-kinds",
      summary: "List the kinds of nodes that a workflow may have",
      guard,
      reply: {
        status: 200,
        body: named("NodeKinds", Type.Object({ data: Type.Array(NodeKindWords) }), { data: "all that there are" }),
      },
      examples: { the_first_two: { answer: { data: listed.slice(0, 2) } } },
      handle: async () => ({ data: listed }),
    }),
  ];
}
