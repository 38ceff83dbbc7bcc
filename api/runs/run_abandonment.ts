/** The end of a run whose client is gone, where the run was for that client alone (`on_disconnect: cancel`). */
import type { Bus } from "#bus/bus.ts";
import type { Sql } from "#store/sql.ts";
import { cancelRuns } from "./run_cancel.ts";
import { publishCanceled } from "./run_news.ts";

/** A run that is over, or that is none, stays as it is. */
export async function abandonRun(deps: { sql: Sql; bus: Bus; now(): Date }, runId: string): Promise<void> {
  const by = { reason: "The client disconnected" };
  const canceled = await deps.sql.begin((transaction) =>
    cancelRuns(transaction, transaction`id = ${runId}`, by, deps.now()),
  );
  publishCanceled(deps.bus, canceled);
}
