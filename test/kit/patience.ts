/** How long tests wait for what will come: only a failure waits that long, so it is far above what a busy machine needs. */
export const patienceMs = 120_000;
