/** Databases of earlier days, with rows of everything, under all migrations since: what was there reads as before. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type App, createApp } from "#api/app.ts";
import { startWorker } from "#api/worker.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import { silentLogger } from "#http/logger.ts";
import { sealedFor } from "#runs/callbacks.ts";
import { createEncryption } from "#store/encryption.ts";
import { prepareJobs } from "#store/jobs.ts";
import { migrate, readMigrations } from "#store/migrations.ts";
import { workerMail } from "#test/kit/api_harness.ts";
import { eventually } from "#test/kit/app_client.ts";
import { createEmptyDatabase, type TestDatabase } from "#test/kit/database.ts";
import { readSnapshots, restoreSnapshot, type SnapshotRead } from "./snapshot.ts";

const snapshots = await readSnapshots();
const migrations = await readMigrations();

it("snapshots of earlier databases are there", () => assert.ok(snapshots.length > 0));

for (const kept of snapshots) {
  const { snapshot } = kept;

  describe(`the database of ${kept.name}`, () => {
    const bus = createMemoryBus();
    // Tokens and waiting runs of that day are still good.
    const now = () => new Date(new Date(snapshot.made_at).getTime() + 60_000);
    const credentials = { ...snapshot.credentials };
    let database: TestDatabase;
    let app: App;

    before(async () => {
      database = await createEmptyDatabase();
      await restoreSnapshot(database.sql, kept, migrations);
      await migrate(database.sql, migrations);
      await prepareJobs(database.url);
      const { INTERNAL_SECRET, ENCRYPTION_KEY, JWT_SECRET } = snapshot.secrets;
      app = await createApp({
        sql: database.sql,
        bus,
        logger: silentLogger,
        config: {
          publicUrl: snapshot.public_url,
          internalSecret: INTERNAL_SECRET,
          encryptionKey: ENCRYPTION_KEY,
          jwtSecret: JWT_SECRET,
          requireEmailVerification: false,
          appDomain: "apps.localhost",
          allowPrivateAddresses: true,
        },
        now,
      });
    });
    after(async () => {
      await app?.close();
      await bus.close();
      await database?.drop();
    });

    async function send(method: string, { path, as, host, headers }: Omit<SnapshotRead, "body">, body?: unknown) {
      const credential = as === undefined ? undefined : credentials[as];
      const authority = host ?? "api.test";
      const response = await app.fetch(
        new Request(`http://${authority}${path}`, {
          method,
          headers: {
            host: authority,
            "content-type": "application/json",
            ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
            ...headers,
          },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        }),
      );
      const text = await response.text();
      const answer = response.headers.get("content-type")?.includes("json") ? JSON.parse(text) : text;
      return { status: response.status, body: answer };
    }
    const expecting = async (status: number, ...request: Parameters<typeof send>) => {
      const answer = await send(...request);
      assert.equal(answer.status, status, `${request[0]} ${request[1].path}: ${JSON.stringify(answer.body)}`);
      return answer.body;
    };

    it("lets its people sign in with their passwords", async () => {
      for (const [name, person] of Object.entries(snapshot.sign_ins)) {
        credentials[name] = (await expecting(200, "POST", { path: "/v1/auth/login" }, person)).access_token;
      }
    });

    it("answers every read as it did then; there may be more fields now", async () => {
      for (const { body, ...read } of snapshot.reads) {
        const answer = await expecting(200, "GET", read);
        assert.equal(firstDifference(body, answer), undefined, `GET ${read.path}`);
      }
    });

    it("opens what was sealed then", async () => {
      const encryption = createEncryption(snapshot.secrets.ENCRYPTION_KEY);
      const connections = await database.sql<{ id: string; secret: Buffer }[]>`
        select id, secret_encrypted as secret from connection`;
      const callbacks = await database.sql<{ url: string; secret: Buffer }[]>`
        select url, token_encrypted as secret from callback`;
      assert.deepEqual(
        [
          ...connections.map(({ id, secret }) => encryption.open(secret, id)),
          ...callbacks.map(({ url, secret }) => encryption.open(secret, sealedFor(url))),
        ],
        ["sk-of-the-snapshot", "token-of-the-snapshot"],
      );
    });

    it("goes on with a run that waited for a person", async () => {
      const waiting = snapshot.reads.find(({ body }) => (body as { data?: Waiting }).data?.status === "awaiting_input");
      assert.ok(waiting?.host);
      const { host, path } = waiting;
      const run = { host, path, as: "access_key" };
      const [asked] = (waiting.body as { data: Waiting }).data.input_requests;
      const responses = [{ input_request_id: asked?.id, decision: "approve", params: { text: "At seven" } }];
      await expecting(200, "POST", { ...run, path: `${path}/resume` }, { responses });
      const { sql, url } = database;
      const encryptionKey = snapshot.secrets.ENCRYPTION_KEY;
      const address = { bindAddress: "127.0.0.1", workerPort: 0, databaseUrl: url, allowPrivateAddresses: true };
      const config = { ...workerMail, ...address, encryptionKey };
      const worker = await startWorker({ config, sql, bus, logger: silentLogger });
      try {
        await eventually(
          async () => (await expecting(200, "GET", run)).data.status === "succeeded",
          "the run that waited succeeds",
        );
        assert.deepEqual((await expecting(200, "GET", run)).data.output, { sent: "At seven" });
      } finally {
        await worker.close();
      }
    });
  });
}

interface Waiting {
  status: string;
  input_requests: { id: string }[];
}

/** The path of what `now` has lost or changed of `then`, with both; undefined when all of it is there. */
function firstDifference(then: unknown, now: unknown, path = ""): string | undefined {
  if (then === null || typeof then !== "object") {
    return then === now ? undefined : `${path}: was ${JSON.stringify(then)}, is ${JSON.stringify(now)}`;
  }
  if (now === null || typeof now !== "object" || Array.isArray(then) !== Array.isArray(now)) {
    return `${path}: was ${JSON.stringify(then)}, is ${JSON.stringify(now)}`;
  }
  if (Array.isArray(then) && Array.isArray(now) && then.length !== now.length) {
    return `${path}: was ${then.length} long, is ${now.length}`;
  }
  for (const [name, value] of Object.entries(then)) {
    const found = firstDifference(value, (now as Record<string, unknown>)[name], `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}
