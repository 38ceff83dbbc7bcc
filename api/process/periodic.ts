/** Runs something again and again, never twice at once. */
export interface Periodic {
  /** Waits for the round under way; none follows. */
  stop(): Promise<void>;
}

/** The first round starts at once, each next one `intervalMs` after the last one ended. */
export function startPeriodic(options: {
  intervalMs: number;
  run(): Promise<void>;
  onError(error: unknown): void;
}): Periodic {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let round: Promise<void>;
  const next = () => {
    round = options
      .run()
      .catch(options.onError)
      .then(() => {
        if (!stopped) timer = setTimeout(next, options.intervalMs);
      });
  };
  next();
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await round;
    },
  };
}
