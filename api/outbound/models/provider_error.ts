/** A stage of a voice pipeline whose provider may fail. */
export type Stage = "stt" | "llm" | "tts";

/** A provider failed: the call speaks an apology or goes on, and the client sees `error` with the stage's code. */
export class ProviderError extends Error {
  readonly stage: Stage;
  constructor(stage: Stage, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ProviderError";
    this.stage = stage;
  }
}
