/**
 * The OpenAPI documents as an api serves them, kept in this folder so that a change of the interface
 * shows in a diff: `npm run protocol` writes them anew.
 */
import { createMemoryBus } from "#bus/memory_bus.ts";
import { silentLogger } from "#http/logger.ts";
import { openSql } from "#store/sql.ts";
import { createApp } from "../app.ts";

const appDomain = "apps.localhost";

/** Each file, and where an api serves it. */
const served = {
  "platform.json": "http://127.0.0.1/openapi.json",
  "app.json": `http://any.${appDomain}/openapi.json`,
  "collector.json": "http://127.0.0.1/-/collector/openapi.json",
  "tax.json": "http://127.0.0.1/openapi/tax.json",
};

/** Names (in this folder) and contents. No document needs a database: the client never connects. */
export async function publishedDocuments(): Promise<ReadonlyMap<string, string>> {
  const sql = openSql({ databaseUrl: "postgres://127.0.0.1:1/nowhere" });
  const bus = createMemoryBus();
  const secret = crypto.randomUUID();
  const app = await createApp({
    sql,
    bus,
    logger: silentLogger,
    now: () => new Date(),
    config: {
      publicUrl: "http://127.0.0.1:8080",
      internalSecret: secret,
      encryptionKey: secret,
      jwtSecret: secret,
      requireEmailVerification: false,
      appDomain,
      allowPrivateAddresses: false,
    },
  });
  const documents = Object.entries(served).map(async ([name, url]): Promise<[string, string]> => {
    const document = await (await app.fetch(new Request(url))).json();
    return [name, `${JSON.stringify(document, null, 2)}\n`];
  });
  const published = new Map(await Promise.all(documents));
  await app.close();
  await bus.close();
  await sql.end();
  return published;
}
