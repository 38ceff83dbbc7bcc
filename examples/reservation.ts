/** Step one of every call: reserve it with a token, and get a URL that opens one WebSocket. */
import type { Bootstrap } from "./config.ts";

export interface Reservation {
  call_id: string;
  /** Works once, for two minutes; whoever has it can call, so hand it to the caller alone. */
  websocket_url: string;
  expires_at: string;
}

/** Reserves a call with `agentId`. `options` may name audio formats, variables, metadata and more. */
export async function reserveCall(
  { gateway_url, pat }: Bootstrap,
  agentId: string,
  options: Record<string, unknown>,
): Promise<Reservation> {
  const response = await fetch(`${gateway_url}/v1/agents/voice/agents/${agentId}/calls/websocket`, {
    method: "POST",
    headers: { authorization: `Bearer ${pat}`, "content-type": "application/json" },
    body: JSON.stringify(options),
  }).catch((cause: unknown) => {
    throw new Error(`Nothing answers at ${gateway_url}: start Frontdesk with "npm start" first.`, { cause });
  });
  if (!response.ok) {
    throw new Error(`Cannot reserve a call: the answer was ${response.status} ${await response.text()}`);
  }
  const { data } = (await response.json()) as { data: Reservation };
  return data;
}
