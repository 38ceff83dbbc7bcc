/**
 * An api as a process of its own that is killed at a step of its work: a trigger of the test's own holds
 * the statement there until the process is gone.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createTestDatabase } from "./database.ts";
import { type RoleProcess, sharedSecrets, startRole } from "./role_process.ts";

/** Any constant: the lock that the trigger waits for. Locks are a database's own, though `pg_locks` lists all. */
const holdKey = 7_305_011;

/** Where requests come by: the trigger's time and table. A deferred one holds the commit. */
export interface CrashStep {
  what: string;
  trigger: string;
  deferred?: boolean;
}

export type CrashingApi = Awaited<ReturnType<typeof openCrashingApi>>;

/** Starts the api on an empty database and signs somebody up, for whom `request` asks. */
export async function openCrashingApi(redisUrl: string) {
  const database = await createTestDatabase();
  const { sql } = database;
  const dataDir = mkdtempSync(join(tmpdir(), "frontdesk-crash-"));
  let api: RoleProcess;
  let url: string;
  let token: string | undefined;

  async function startApi(): Promise<void> {
    const environment = { DATABASE_URL: database.url, REDIS_URL: redisUrl, DATA_DIR: dataDir, API_PORT: "0" };
    api = startRole("api/process/main.ts", { ...sharedSecrets, ...environment });
    const [line = ""] = await api.until(/^.*"msg":"api listens".*$/m);
    ({ url } = JSON.parse(line));
  }

  /** A POST with a body, a GET without. */
  async function request(path: string, body?: object) {
    const response = await fetch(`${url}${path}`, {
      method: body ? "POST" : "GET",
      headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: a test reads bodies as a client in JavaScript does
    return { status: response.status, body: (await response.json()) as any };
  }

  /** Runs `work` with all that comes by the step held there; lets go of it when `work` is done. */
  async function holding({ trigger, deferred }: CrashStep, work: () => Promise<void>): Promise<void> {
    const timing = deferred
      ? `constraint trigger hold_here ${trigger} deferrable initially deferred`
      : `trigger hold_here ${trigger}`;
    await sql.unsafe(`create ${timing} for each row execute function hold()`);
    const holder = await sql.reserve();
    try {
      await holder`select pg_advisory_lock(${holdKey})`;
      await work();
      await holder`select pg_advisory_unlock(${holdKey})`;
    } finally {
      holder.release();
    }
    // Waits for the statements that were held, and so for the end of what the killed process began.
    await sql.unsafe(`drop trigger hold_here on ${trigger.split(" ").at(-1) ?? ""}`);
  }

  async function untilHeld(count: number): Promise<void> {
    for (;;) {
      const rows = await sql`
        select 1 from pg_locks
        where locktype = 'advisory' and objid = ${holdKey} and not granted
          and database = (select oid from pg_database where datname = current_database())`;
      if (rows.length >= count) return;
      await delay(5);
    }
  }

  /** Sends the requests, kills the api once all stand at the step, and starts it again. */
  async function killAt(step: CrashStep, send: () => Promise<unknown>[]): Promise<void> {
    await holding(step, async () => {
      const cutOff = send().map((answer) => assert.rejects(answer));
      // The request log writes one entry at a time.
      await untilHeld(step.trigger.endsWith("request_log") ? 1 : cutOff.length);
      await api.stop("SIGKILL");
      await Promise.all(cutOff);
    });
    await startApi();
  }

  await sql.unsafe(`
    create function hold() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(${holdKey});
      return new;
    end $$`);
  await startApi();
  const signedUp = await request("/v1/auth/signup", { email: "inn@example.com", password: "correct horse battery" });
  assert.equal(signedUp.status, 201);
  token = signedUp.body.access_token;

  return {
    sql,
    request,
    killAt,
    async close(): Promise<void> {
      await api.stop();
      await database.drop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
