/**
 * Going away without cutting anyone off: nobody new is admitted, calls are told the deadline and go
 * on until then; those that are left end with `drained` (1001).
 */
import type { CallRegistry } from "./calls/call_registry.ts";

/** How long ended calls may take to say goodbye after the deadline. */
const goodbyeMsMax = 6000;

export interface Drain {
  readonly isDraining: boolean;
  /** Resolves when no call is left. Asked again it answers with the same drain. */
  begin(): Promise<void>;
}

export interface DrainDeps {
  registry: CallRegistry;
  timeoutMs: number;
  onBegin(): void;
  /** Resolves when nobody is on the way to a call any more who was promised one, at the latest at `deadline`. */
  settled(deadline: Date): Promise<void>;
}

export function createDrain(deps: DrainDeps): Drain {
  let running: Promise<void> | undefined;

  async function drain(): Promise<void> {
    const { registry, timeoutMs } = deps;
    deps.onBegin();
    const deadline = new Date(Date.now() + timeoutMs);
    registry.drain(deadline);
    await deps.settled(deadline);
    if (await isEmptyWithin(registry, deadline.getTime() - Date.now())) return;
    registry.endAll("drained");
    await isEmptyWithin(registry, goodbyeMsMax);
  }

  return {
    get isDraining() {
      return running !== undefined;
    },
    begin() {
      running ??= drain();
      return running;
    },
  };
}

async function isEmptyWithin(registry: CallRegistry, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const isEmpty = await Promise.race([registry.whenEmpty().then(() => true), late]);
  clearTimeout(timer);
  return isEmpty;
}
