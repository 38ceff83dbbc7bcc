import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Bootstrapped, bootstrap } from "#standalone/bootstrap.ts";
import { freePort } from "#standalone/ports.ts";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { type RoleProcess, sharedSecrets, startProcess } from "#test/kit/role_process.ts";

const redisUrl = process.env.TEST_REDIS_URL;
const skip = redisUrl ? false : "no TEST_REDIS_URL (no redis-server on this machine)";

describe("the api under Deno", { skip }, () => {
  let database: TestDatabase;
  let dataDir: string;
  let keys: Bootstrapped["file"];
  let deno: RoleProcess;
  let url: string;

  before(async () => {
    database = await createTestDatabase();
    dataDir = mkdtempSync(join(tmpdir(), "frontdesk-deno-"));
    url = `http://127.0.0.1:${await freePort()}`;
    ({ file: keys } = await bootstrap({ sql: database.sql, gatewayUrl: url, apiUrl: url, dataDir }));
    const { port } = new URL(url);
    const options = ["--allow-all", "--node-modules-dir=manual", "--no-lock", "--cached-only"];
    deno = startProcess(
      ["node_modules/deno/deno", "serve", ...options, "--host", "127.0.0.1", "--port", port, "api/deno.ts"],
      { ...sharedSecrets, DATABASE_URL: database.url, REDIS_URL: redisUrl ?? "", PUBLIC_URL: url },
    );
    await deno.until(/Listening on/);
  });
  after(async () => {
    await deno?.stop("SIGKILL"); // Deno itself waits for idle connections.
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const call = (method: string, path: string, body?: object) =>
    fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${keys.pat}`, "content-type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });

  it("creates a voice agent, reads it back and reserves a call", async () => {
    const created = await call("POST", "/v1/agents/voice/agents", {
      name: "Night porter",
      project_id: keys.project_id,
      config: { welcome_message: "Good evening." },
    });
    assert.equal(created.status, 201, await created.clone().text());
    const { data } = (await created.json()) as { data: { id: string } };

    const read = await call("GET", `/v1/agents/voice/agents/${data.id}`);
    assert.equal(read.status, 200);
    assert.deepEqual(((await read.json()) as { data: object }).data, data);

    const reserved = await call("POST", `/v1/agents/voice/agents/${data.id}/calls/websocket`, {});
    assert.equal(reserved.status, 201, await reserved.clone().text());
  });

  it("answers errors in the platform's envelope", async () => {
    const refused = await call("POST", "/v1/agents/voice/agents", { name: 7, project_id: keys.project_id, config: {} });
    assert.equal(refused.status, 400);
    const { error } = (await refused.json()) as { error: { code: string; details: object } };
    assert.equal(error.code, "bad_request");
    assert.ok("name" in error.details);
  });
});
