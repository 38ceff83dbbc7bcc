/** What a process does about a Postgres that goes away under statements which nobody waits for. */
import { isLostConnection } from "./sql.ts";

/**
 * For `unhandledRejection`: when a connection breaks, the clients' own code can reject a promise that
 * no caller was ever given (porsager/postgres#1208). Whoever waited for the work has been told by
 * another one, so the process goes on. Everything else ends it, as it should.
 * @throws the rejection's reason, unless it is a lost connection
 */
export function survivesLostConnection(report: (error: unknown) => void): (reason: unknown) => void {
  return (reason) => {
    if (!isLostConnection(reason)) throw reason;
    report(reason);
  };
}
