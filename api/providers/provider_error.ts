/** How a provider fails, in words that a caller of it can act on. */
import type { ModelStage } from "#contracts/voice_agent.ts";

/**
 * - `network`: nothing could be reached, or the connection broke
 * - `unavailable`: the vendor answered that it cannot work now (5xx)
 * - `rate_limited`, `auth`, `bad_request`: the vendor refused (429; 401 and 403; other 4xx)
 * - `timeout`: no answer within the provider's own time
 * - `protocol`: the answer is not what the vendor's protocol says
 * - `address_refused`: the address guard let no connection through
 * - `failed`: anything else
 */
export type ProviderErrorKind =
  | "network"
  | "unavailable"
  | "rate_limited"
  | "timeout"
  | "auth"
  | "bad_request"
  | "protocol"
  | "address_refused"
  | "failed";

const retryableKinds: ReadonlySet<ProviderErrorKind> = new Set([
  "network",
  "unavailable",
  "rate_limited",
  "timeout",
  "protocol",
]);

/** A provider failed. The message names no secret: clients see it beside the code of the stage. */
export class ProviderError extends Error {
  readonly stage: ModelStage;
  readonly kind: ProviderErrorKind;
  constructor(stage: ModelStage, message: string, options: ErrorOptions & { kind?: ProviderErrorKind } = {}) {
    super(message, options);
    this.name = "ProviderError";
    this.stage = stage;
    this.kind = options.kind ?? "failed";
  }

  /** A later attempt may succeed. */
  get retryable(): boolean {
    return retryableKinds.has(this.kind);
  }
}
