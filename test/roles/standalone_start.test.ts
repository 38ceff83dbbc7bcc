import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { type RoleProcess, startRole } from "#test/kit/role_process.ts";

/** Nobody else gets the default ports meanwhile, whether we hold them or somebody else does. */
function holdDefaults(): Promise<Server[]> {
  return Promise.all(
    [8080, 8081, 8082, 8083].map(
      (port) =>
        new Promise<Server>((resolve) => {
          const server = createServer();
          server.once("error", () => resolve(server)).listen(port, "127.0.0.1", () => resolve(server));
        }),
    ),
  );
}

describe("npm start", () => {
  const dataDir = join(tmpdir(), `frontdesk-start-${randomBytes(6).toString("hex")}`);
  const ports = { GATEWAY_PORT: "0", API_PORT: "0", WORKER_PORT: "0", METRICS_PORT: "0" };
  const starts: RoleProcess[] = [];
  after(async () => {
    await Promise.all(starts.map((start) => start.stop("SIGINT")));
    rmSync(dataDir, { recursive: true, force: true });
  });

  function begin(environment: Record<string, string> = {}): RoleProcess {
    const start = startRole("standalone/main.ts", { DATA_DIR: dataDir, MEDIA_THREADS: "1", ...ports, ...environment });
    starts.push(start);
    return start;
  }
  async function up(): Promise<RoleProcess> {
    const start = begin();
    await start.until(/Ctrl-C stops it/);
    return start;
  }
  const ended = (start: RoleProcess) => new Promise((resolve) => start.child.once("close", resolve));
  const bootstrapFile = () => JSON.parse(readFileSync(join(dataDir, "bootstrap.json"), "utf8"));

  it("serves, prints no secret but the one-time link, and stops on Ctrl-C", async () => {
    const start = await up();
    const file = bootstrapFile();
    assert.equal(statSync(join(dataDir, "bootstrap.json")).mode & 0o777, 0o600);
    const agent = await fetch(`${file.gateway_url}/v1/agents/voice/agents/${file.voice_agent_id}`, {
      headers: { authorization: `Bearer ${file.pat}` },
    });
    assert.equal(agent.status, 200);
    for (const secret of [file.pat, file.access_key, file.password, file.admin_password]) {
      assert.ok(!start.said().includes(secret));
    }

    const [, metricsPort] = await start.until(/"port":(\d+)[^\n]*"msg":"metrics are served"/);
    const figures = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    for (const role of ["gateway", "api", "worker"]) {
      assert.match(figures, new RegExp(`^process_resident_memory_bytes{role="${role}"} \\d+$`, "m"));
    }
    assert.equal(figures.match(/^# TYPE process_resident_memory_bytes /gm)?.length, 1);
    assert.equal((await fetch(`${file.gateway_url}/metrics`)).status, 404);

    const [, code] = await start.until(/\/talk#code=(\S+)/);
    const redeem = () =>
      fetch(`${file.gateway_url}/v1/sign-in-links/redeem`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ code }),
      });
    assert.equal((await redeem()).status, 200);
    assert.equal((await redeem()).status, 410);
    assert.equal(await start.stop("SIGINT"), 0, start.said());
  });

  it("comes back after kill -9 with the same credentials, and refuses a second start meanwhile", async () => {
    const killed = await up();
    const before = bootstrapFile();
    const second = begin();
    assert.equal(await ended(second), 1);
    assert.match(second.said(), new RegExp(`in use by process ${killed.child.pid}`));
    await killed.stop("SIGKILL");

    const start = await up();
    const { pat } = bootstrapFile();
    assert.equal(pat, before.pat);
    const agents = await fetch(`${bootstrapFile().gateway_url}/v1/agents/voice/agents`, {
      headers: { authorization: `Bearer ${pat}` },
    });
    assert.equal(agents.status, 200);
    assert.equal(await start.stop("SIGTERM"), 0, start.said());
  });

  it("takes other ports by itself where its own are busy, says so, and two at once never take the same", async () => {
    const others = ["-a", "-b"].map((end) => dataDir + end);
    const held = await holdDefaults();
    // No port is named: neither in the environment of these starts, nor anywhere else.
    const unnamed = { GATEWAY_PORT: "", API_PORT: "", WORKER_PORT: "", METRICS_PORT: "" };
    const both = others.map((DATA_DIR) => begin({ DATA_DIR, ...unnamed }));
    const urls: string[] = [];
    for (const start of both) {
      await start.until(/Ctrl-C stops it/);
      for (const [port, name] of [
        [8080, "GATEWAY_PORT"],
        [8081, "API_PORT"],
        [8082, "WORKER_PORT"],
        [8083, "METRICS_PORT"],
      ]) {
        assert.match(start.said(), new RegExp(`Port ${port} is in use, so \\d+ is taken. Set ${name} to choose one.`));
      }
      const [, gateway = "", api = ""] = await start.until(/Gateway +(\S+)[\s\S]*API +(\S+)/);
      for (const url of [gateway, api]) assert.equal((await fetch(`${url}/readyz`)).status, 200);
      urls.push(gateway, api);
    }
    assert.equal(new Set(urls).size, 4, urls.join());
    for (const start of both) assert.equal(await start.stop("SIGINT"), 0, start.said());
    for (const folder of others) rmSync(folder, { recursive: true, force: true });
    for (const server of held) server.close();
  });

  it("names the variable of every port that is taken", async () => {
    const first = await up();
    const { port } = new URL(bootstrapFile().gateway_url);
    const other = `${dataDir}-other`;
    const second = begin({ DATA_DIR: other, GATEWAY_PORT: port, API_PORT: port });
    assert.equal(await ended(second), 1);
    assert.match(second.said(), new RegExp(`GATEWAY_PORT: port ${port} is already in use[^]*API_PORT: port ${port}`));
    rmSync(other, { recursive: true, force: true });
    assert.equal(await first.stop("SIGINT"), 0, first.said());
  });
});
