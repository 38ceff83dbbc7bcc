/** The header that a tool's connection opens its server with. */
import type { Credentials } from "#contracts/internal_calls.ts";
import { ToolError } from "./tool.ts";

/** @throws ToolError where the project no longer has the connection: without it the server is not asked */
export function bearerOf(connectionId: string | undefined, credentials: Credentials): { authorization?: string } {
  if (connectionId === undefined) return {};
  const credential = credentials[connectionId];
  if (!credential) throw new ToolError("The connection that has its credential is gone");
  return { authorization: `Bearer ${credential.secret}` };
}
