/** What a session tells its client, until the call ends: messages, warnings, failures of a stage. */
import type { CallWarningCode, ProviderErrorKind } from "#contracts/codes.ts";
import type { ModelStage } from "#contracts/voice_agent.ts";
import { ProviderError } from "#providers/provider.ts";
import { StageTimeoutError } from "../answering/stage_limits.ts";
import type { SessionMessage, SessionSink } from "../media_host.ts";

export class Notices {
  readonly #sink: SessionSink;
  readonly #onFault: (cause: unknown) => void;
  #isClosed = false;

  /** `onFault` hears why a provider failed where the client is not told. */
  constructor(sink: SessionSink, onFault: (cause: unknown) => void) {
    this.#sink = sink;
    this.#onFault = onFault;
  }

  send(message: SessionMessage): void {
    if (!this.#isClosed) this.#sink.message(message);
  }

  warn(code: CallWarningCode, message: string, ref?: string): void {
    this.send({ type: "warning", code, message, fatal: false, ...(ref && { ref }) });
  }

  /** The client is told what our own providers say; the reason of anything else is for the log alone. */
  fail(stage: ModelStage, cause: unknown): void {
    if (this.#isClosed) return;
    const isOurs = cause instanceof ProviderError || cause instanceof StageTimeoutError;
    if (!isOurs) this.#onFault(cause);
    const message = isOurs ? cause.message : `The ${stage} provider failed; the call goes on`;
    this.send({ type: "error", code: `${stage}_failed`, message, fatal: false, stage, kind: kindOf(cause) });
  }

  /** Nothing is sent from now on. */
  close(): void {
    this.#isClosed = true;
  }
}

function kindOf(cause: unknown): ProviderErrorKind {
  if (cause instanceof StageTimeoutError) return "timeout";
  return cause instanceof ProviderError ? cause.kind : "failed";
}
