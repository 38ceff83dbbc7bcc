/** Client messages that reach a call over the bus: `POST …/calls/{call_id}/control` at the api. */

import type { Log } from "../log.ts";
import type { CallRegistry } from "./call_registry.ts";
import { parseInbound } from "./inbound_message.ts";

/** @param payload JSON `{call_id, message}`; what is malformed is logged and dropped */
export function injectControl(registry: CallRegistry, payload: string, log: Log): void {
  let control: { call_id?: unknown; message?: unknown } | null;
  try {
    control = JSON.parse(payload) as typeof control;
  } catch {
    control = null;
  }
  const inbound = parseInbound(JSON.stringify(control?.message ?? null));
  if (typeof control?.call_id !== "string" || inbound.kind !== "message") {
    log.warn({}, "a control message is malformed; it is dropped");
    return;
  }
  registry.get(control.call_id)?.control(inbound.message);
}
