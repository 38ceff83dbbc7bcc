import { defaultHandle } from "#contracts/workflow.ts";
import { resolveValue } from "../../references.ts";
import { config, longTimeoutS, optional, reference } from "../config_schemas.ts";
import { defineNode, NodeError } from "../node_kind.ts";

/** Waits for some seconds, or until a moment in RFC 3339; a moment in the past waits for nothing. */
export const delay = defineNode({
  kind: "delay",
  words: { name: "Delay", icon: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4l3 2" },
  config: config({ seconds: optional(longTimeoutS(0)), until: optional(reference()) }),
  check({ seconds, until }, { path, report }) {
    if ((seconds === undefined) === (until === undefined)) report(path, "Expected either seconds or until");
  },
  references: ({ until }) => until,
  execute({ config, context, woken, deps, budget }) {
    if (woken) return { is: "done", output: {}, handle: defaultHandle };
    const until =
      config.seconds === undefined
        ? Date.parse(String(resolveValue(config.until, context, budget)))
        : deps.now().getTime() + config.seconds * 1000;
    if (Number.isNaN(until)) throw new NodeError("bad_time", "Expected until to be a moment in RFC 3339");
    return { is: "sleeping", until: new Date(until) };
  },
});
