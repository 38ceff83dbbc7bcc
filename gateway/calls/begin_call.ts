/** Begins the session of a call that the api has opened, over whatever transport its caller comes. */
import type { OpenedCall } from "#contracts/internal_calls.ts";
import { MediaFullError } from "#media/media_host.ts";
import type { Log } from "../log.ts";
import { Call, type CallDeps } from "./call.ts";
import type { CallRegistry } from "./call_registry.ts";
import type { CallReporter } from "./call_reporter.ts";
import type { Slot } from "./call_slots.ts";

export interface BeginCallDeps {
  registry: CallRegistry;
  reporter: CallReporter;
  call: CallDeps;
  log: Log;
}

/** The call, registered; its record closed and undefined when no media thread can take it. The slot is the call's from here on. */
export function beginCall(opened: OpenedCall, slot: Slot, deps: BeginCallDeps): Call | undefined {
  const { log, registry, reporter } = deps;
  reporter.opened(opened.call_id);
  try {
    const call = new Call(opened, slot, deps.call);
    registry.add(call);
    return call;
  } catch (error) {
    const isFull = error instanceof MediaFullError;
    log.error({ err: error, call_id: opened.call_id }, "cannot begin a call");
    const error_code = isFull ? "media_full" : "internal";
    reporter.ended(opened.call_id, { reason: "error", duration_ms: 0, error_code });
    return undefined;
  }
}
