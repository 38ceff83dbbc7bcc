import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Bootstrapped, bootstrap } from "#standalone/bootstrap.ts";
import { freePort } from "#standalone/ports.ts";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";
import { type RoleProcess, sharedSecrets, startProcess, startRole } from "#test/kit/role_process.ts";

const redisUrl = process.env.TEST_REDIS_URL;
const skip = redisUrl ? false : "no TEST_REDIS_URL (no redis-server on this machine)";

describe("gateway, api and worker as separate processes", { skip }, () => {
  let database: TestDatabase;
  let dataDir: string;
  let environment: Record<string, string>;
  let keys: Bootstrapped["file"];
  const roles: RoleProcess[] = [];

  before(async () => {
    database = await createTestDatabase();
    dataDir = mkdtempSync(join(tmpdir(), "frontdesk-roles-"));
    const [gatewayPort, apiPort, workerPort] = [await freePort(), await freePort(), await freePort()];
    environment = {
      ...sharedSecrets,
      DATABASE_URL: database.url,
      REDIS_URL: redisUrl ?? "",
      DATA_DIR: dataDir,
      GATEWAY_PORT: String(gatewayPort),
      API_PORT: String(apiPort),
      WORKER_PORT: String(workerPort),
      METRICS_PORT: "0",
      MEDIA_THREADS: "1",
    };
    const gatewayUrl = `http://127.0.0.1:${gatewayPort}`;
    const apiUrl = `http://127.0.0.1:${apiPort}`;
    ({ file: keys } = await bootstrap({ sql: database.productSql, gatewayUrl, apiUrl, dataDir }));
    // The gateway gets no DATABASE_URL: it holds no credentials of the store.
    const { DATABASE_URL: _, ...withoutDatabase } = environment;
    roles.push(startRole("api/process/main.ts", environment), startRole("api/process/worker_main.ts", environment));
    roles.push(startRole("gateway/main.ts", withoutDatabase));
    await Promise.all(roles.map((role) => role.until(/"msg":"(api listens|worker runs|gateway listens)"/)));
    await untilReady(`${gatewayUrl}/readyz`);
  });
  after(async () => {
    await Promise.all(roles.map((role) => role.stop()));
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it("carry one call to the echo agent, from the reservation to its record", async () => {
    const example = startProcess(
      [process.execPath, "--import", "tsx", "examples/echo_call.ts", "examples/hello.wav", join(dataDir, "answer.wav")],
      { DATA_DIR: dataDir },
    );
    const code = await new Promise((resolve) => example.child.once("close", resolve));
    assert.equal(code, 0, example.said());

    const call = await untilRecorded();
    assert.equal(call.state, "ended");
    assert.equal(call.end_reason, "client_hangup");
  });

  it("answer health and readiness each, and tell their figures on a port of their own alone", async () => {
    for (const name of ["GATEWAY_PORT", "API_PORT", "WORKER_PORT"]) {
      for (const [path, status] of [
        ["/healthz", 200],
        ["/readyz", 200],
        ["/metrics", 404],
      ] as const) {
        const response = await fetch(`http://127.0.0.1:${environment[name]}${path}`);
        assert.equal(response.status, status, `${name} ${path}`);
        assert.ok((await response.text()).length > 0);
      }
    }
    const own = [/^frontdesk_api_request_duration/m, /^frontdesk_runs_running /m, /^frontdesk_call_slots /m];
    for (const [index, role] of roles.entries()) {
      const [, port] = await role.until(/"port":(\d+)[^\n]*"msg":"metrics are served"/);
      assert.match(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(), own[index] ?? /./);
      assert.equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 404);
    }
  });

  it("say no more than LOG_LEVEL lets them, a gateway too", async () => {
    const { DATABASE_URL: _, ...shared } = environment;
    const port = await freePort();
    const gateway = startRole("gateway/main.ts", { ...shared, LOG_LEVEL: "error", GATEWAY_PORT: String(port) });
    await untilReady(`http://127.0.0.1:${port}/readyz`);
    assert.equal(await gateway.stop(), 0, gateway.said());
    assert.equal(gateway.said(), "");
  });

  it("keep /internal behind the gateway, and refuse it without the secret", async () => {
    const path = "/internal/calls/00000000-0000-4000-8000-000000000000";
    assert.equal((await fetch(`${keys.gateway_url}${path}`)).status, 404);
    assert.equal((await fetch(`${keys.api_url}${path}`)).status, 401);
  });

  it("refuse to start without what they must share, and say what", async () => {
    for (const [file, needed] of [
      ["api/process/main.ts", ["DATABASE_URL", "REDIS_URL", "INTERNAL_SECRET", "ENCRYPTION_KEY", "JWT_SECRET"]],
      ["api/process/worker_main.ts", ["DATABASE_URL", "REDIS_URL", "INTERNAL_SECRET"]],
      ["gateway/main.ts", ["REDIS_URL", "INTERNAL_SECRET"]],
    ] as const) {
      const role = startRole(file, {});
      const code = await new Promise((resolve) => role.child.once("close", resolve));
      assert.equal(code, 1, file);
      for (const name of needed) assert.match(role.said(), new RegExp(`^ +${name}: `, "m"), file);
    }
  });

  /** The close of a call reaches the record a moment after the caller has gone. */
  async function untilRecorded(): Promise<{ state: string; end_reason: string }> {
    for (;;) {
      const response = await fetch(`${keys.gateway_url}/v1/agents/voice/calls`, {
        headers: { authorization: `Bearer ${keys.pat}` },
      });
      assert.equal(response.status, 200, await response.clone().text());
      const { data } = (await response.json()) as { data: { state: string; end_reason: string }[] };
      assert.equal(data.length, 1);
      const [call] = data;
      if (call && call.state !== "in_progress") return call;
      await delay(50);
    }
  }
});

async function untilReady(url: string): Promise<void> {
  while ((await fetch(url).catch(() => undefined))?.status !== 200) await delay(50);
}
