/**
 * A twin stands in for a vendor in tests: it speaks the vendor's wire protocol on loopback, or is the
 * settings that make a built-in provider behave. It shares no code with the adapter that it proves.
 */
import type { ModelStage } from "./voice_agent.ts";

/**
 * What a twin can be made to do with the next requests:
 * - `answers`: as the vendor does when all is well
 * - `calls_tool`: the model calls the first tool that it is offered, with arguments
 * - `alternates`: the model calls that tool in every second turn, and then answers
 * - `silent`: takes the request and never answers
 * - `fails`: the vendor says that it cannot
 * - `rate_limited`: the vendor says that it was asked too often
 * - `garbage`: answers what the protocol does not know
 * - `drops`: begins to answer, then the connection breaks
 */
export const twinBehaviours = [
  "answers",
  "calls_tool",
  "alternates",
  "silent",
  "fails",
  "rate_limited",
  "garbage",
  "drops",
] as const;
export type TwinBehaviour = (typeof twinBehaviours)[number];

/** Settings under which a stage of the vendor behaves so. */
export interface TwinSettings {
  model?: string;
  voice?: string;
  options?: Record<string, unknown>;
}

/** How a twin takes its time over the next requests, as a vendor does. */
export interface TwinPace {
  /** Until its first sign: the final words, the first token, the first sound. */
  delayMs: number;
  /** Of so many requests one fails: 100 is one of a hundred; none unless given. */
  failsEach?: number;
}

/** What `twin.ts` in a vendor's folder starts: `startTwin(): Promise<VendorTwin>`. */
export interface VendorTwin {
  /** What the vendor's connection holds; none where it needs no connection. */
  readonly access?: { secret: string; baseUrl: string };
  /** Models of a stage that go over different wires: each is proven. */
  readonly models?: { readonly [S in ModelStage]?: readonly string[] };
  /** From now on `stage` behaves so. Undefined when the vendor has no such stage or cannot behave so. */
  play(stage: ModelStage, behaviour: TwinBehaviour): TwinSettings | undefined;
  /** From now on `stage` takes its time, where the twin can. */
  pace?(stage: ModelStage, pace: TwinPace): void;
  close(): Promise<void>;
}
