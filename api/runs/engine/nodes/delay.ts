import { defaultHandle } from "#contracts/workflow.ts";
import { resolveValue } from "#workflows/references.ts";
import { type ExecuteNode, NodeError } from "../node_kind.ts";

/** Waits for some seconds, or until a moment in RFC 3339; a moment in the past waits for nothing. */
export const executeDelay: ExecuteNode<"delay"> = ({ config, context, woken, deps, budget }) => {
  if (woken) return { is: "done", output: {}, handle: defaultHandle };
  const until =
    config.seconds === undefined
      ? Date.parse(String(resolveValue(config.until, context, budget)))
      : deps.now().getTime() + config.seconds * 1000;
  if (Number.isNaN(until)) throw new NodeError("bad_time", "Expected until to be a moment in RFC 3339");
  return { is: "sleeping", until: new Date(until) };
};
