/** What the suites of all stages share: how they get at a vendor that behaves as they ask, and how a failure reads. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { TwinBehaviour } from "#contracts/vendor_twin.ts";
import type { ModelStage } from "#contracts/voice_agent.ts";
import { ProviderError } from "./provider_error.ts";

/** A stage of one vendor, and its twin. */
export interface Subject<Stage> {
  /** Whether the vendor has a way to behave so: a built-in provider answers no garbage. */
  can(behaviour: TwinBehaviour): boolean;
  /** Opens the stage; the twin behaves so from now on. */
  open(behaviour: TwinBehaviour): Promise<Stage>;
  /** What no error may show. */
  secret: string | undefined;
}

/** Failures that every vendor with a wire must tell apart, and whether a later attempt may succeed. */
const failures = [
  { behaviour: "fails", does: "cannot answer", kinds: ["failed", "unavailable"] },
  { behaviour: "rate_limited", does: "was asked too often", kinds: ["rate_limited"] },
  { behaviour: "garbage", does: "answers garbage", kinds: ["protocol"] },
  { behaviour: "drops", does: "breaks off in mid-answer", kinds: ["network"] },
] as const;

/** @param use asks the stage for one answer and reads it to its end */
export function failureContract<Stage>(
  stage: ModelStage,
  subject: Subject<Stage>,
  use: (stage: Stage) => Promise<unknown>,
): void {
  for (const { behaviour, does, kinds } of failures.filter(({ behaviour }) => subject.can(behaviour))) {
    it(`says with a typed error that the vendor ${does}, and names no secret`, async () => {
      const opened = await subject.open(behaviour);
      await assert.rejects(use(opened), (error) => {
        assert.ok(error instanceof ProviderError, String(error));
        assert.equal(error.stage, stage);
        assert.ok((kinds as readonly string[]).includes(error.kind), `kind ${error.kind}`);
        if (subject.secret) assert.ok(!error.message.includes(subject.secret), error.message);
        return true;
      });
    });
  }
}

/** Whether `promise` is open after what is due in this turn of the loop has run. */
export async function isPending(promise: Promise<unknown>): Promise<boolean> {
  const open = Symbol("open");
  const settled = promise.then(
    () => undefined,
    () => undefined,
  );
  return (await Promise.race([settled, new Promise((resolve) => setImmediate(resolve, open))])) === open;
}
