/** How a tool behaves by its configuration, whatever kind it is. */
import type { ToolPolicy } from "./tool.ts";

export function mannersOf(config: {
  on_duplicate?: "reuse" | "run";
  confirm?: boolean;
  sensitive?: boolean;
}): Pick<ToolPolicy, "runsAgain" | "needsYes" | "isSensitive"> {
  return {
    ...(config.on_duplicate === "run" && { runsAgain: true }),
    ...(config.confirm && { needsYes: true }),
    ...(config.sensitive && { isSensitive: true }),
  };
}
