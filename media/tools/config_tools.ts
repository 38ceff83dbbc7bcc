/** The tools that a call has by its configuration. */
import type { CallConfig } from "#contracts/voice_agent.ts";
import { appToolOf } from "./app_tools.ts";
import { type BuiltinHost, builtinTools } from "./builtin_tools.ts";
import type { ClientTools } from "./client_tools.ts";
import { type HttpToolHost, httpToolOf } from "./http_tools.ts";
import type { Tool } from "./tool.ts";

export interface ConfigToolsHost extends BuiltinHost, HttpToolHost {
  clientTools: ClientTools;
}

export function configuredTools(config: CallConfig, host: ConfigToolsHost): Tool[] {
  return [
    ...builtinTools(config, host),
    ...config.tools.map((tool) => httpToolOf(tool, host)),
    ...config.app_tools.map((tool) => appToolOf(tool, host)),
    ...config.client_tools.map((tool) => host.clientTools.of(tool)),
  ];
}

/** What tools have of their own to say while the caller waits, by name. */
export function fillersOf({ tools, client_tools, app_tools }: CallConfig): ReadonlyMap<string, string> {
  const own = [...tools, ...client_tools, ...app_tools].flatMap(({ name, filler }): [string, string][] =>
    filler === undefined ? [] : [[name, filler]],
  );
  return new Map(own);
}
