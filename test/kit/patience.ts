/** How long tests wait for what will come: only a failure waits that long, so it is far above what a busy machine needs. */
export const patienceMs = 120_000;

/** Tests that are long by nature run in a short form but for `WHOLE=1`, which `npm run verify:…` sets. */
export const isWhole = process.env.WHOLE === "1";
