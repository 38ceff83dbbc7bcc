/** How a provider fails, in words that a caller of it can act on. */
import type { ProviderErrorKind } from "#contracts/codes.ts";
import type { ModelStage } from "#contracts/voice_agent.ts";

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

/** What an HTTP status that is no success says. */
export function kindOfStatus(status: number): ProviderErrorKind {
  if (status === 408) return "timeout";
  if (status === 429) return "rate_limited";
  if (status === 401 || status === 403) return "auth";
  if (status === 402) return "quota";
  return status >= 500 ? "unavailable" : "bad_request";
}

const vendorWordsMax = 300;

/** What a vendor said, in one line of bounded length in which its key does not stand. */
export function vendorWords(words: string, secret: string): string {
  return words.replaceAll(secret, "…").replace(/\s+/g, " ").trim().slice(0, vendorWordsMax);
}
