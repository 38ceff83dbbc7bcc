/** Two apis behind a balancer that asks for their readiness, restarted one after the other under load. */
import assert from "node:assert/strict";
import { Agent, createServer, request as httpRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { type RunningApi, startApi } from "#api/process/server.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import { silentLogger } from "#http/logger.ts";
import { appConfig } from "#test/kit/api_harness.ts";
import { createTestDatabase, type TestDatabase } from "#test/kit/database.ts";

const healthEveryMs = 20;

/** Passes requests on, in turn, to those that were ready when it last asked, over connections that it keeps. */
class Balancer {
  readonly #server: Server;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 8 });
  readonly #ready = new Map<number, boolean>();
  #turn = 0;
  #asking: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(ports: readonly number[]) {
    for (const port of ports) this.#ready.set(port, false);
    this.#server = createServer((req, res) => {
      const ready = [...this.#ready].filter(([, isReady]) => isReady).map(([port]) => port);
      const port = ready[this.#turn++ % ready.length];
      if (port === undefined) return void res.writeHead(503).end("nobody is ready");
      const { method, headers, url: path } = req;
      const onward = httpRequest({ port, host: "127.0.0.1", method, headers, path, agent: this.#agent }, (answer) => {
        res.writeHead(answer.statusCode ?? 502);
        answer.pipe(res);
      });
      onward.on("error", (error) => res.writeHead(502).end(error.message));
      req.pipe(onward);
    });
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const ask = async () => {
      await Promise.all(
        [...this.#ready.keys()].map(async (port) => {
          const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
          this.#ready.set(port, answer?.status === 200);
        }),
      );
      if (!this.#isClosed) this.#asking = setTimeout(ask, healthEveryMs);
    };
    await ask();
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  isReady(port: number): boolean {
    return this.#ready.get(port) ?? false;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#asking);
    this.#agent.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

describe("a rolling restart of two apis", () => {
  let database: TestDatabase;
  const bus = createMemoryBus();
  before(async () => {
    database = await createTestDatabase();
  });
  after(async () => {
    await bus.close();
    await database.drop();
  });

  const start = (apiPort: number) => {
    const config = { ...appConfig, bindAddress: "127.0.0.1", apiPort, shutdownDelayS: 1 };
    return startApi({ config, sql: database.sql, bus, logger: silentLogger });
  };

  it("is not seen by anybody who asks something meanwhile", async () => {
    const apis: RunningApi[] = [await start(0), await start(0)];
    const balancer = new Balancer(apis.map(({ port }) => port));
    const url = await balancer.listen();
    const statuses = new Set<string>();
    let isRolling = true;
    const ask = async () => {
      while (isRolling) {
        const answer = await fetch(`${url}/v1/jurisdictions?q=Rome`);
        const said = answer.status === 401 ? "refused as it should be" : `${answer.status} ${await answer.text()}`;
        await answer.body?.cancel().catch(() => undefined);
        statuses.add(said);
      }
    };
    const asking = Array.from({ length: 8 }, ask);
    for (const [index, api] of apis.entries()) {
      await api.close();
      const next = await start(api.port);
      apis[index] = next;
      while (!balancer.isReady(next.port)) await new Promise((resolve) => setImmediate(resolve));
    }
    isRolling = false;
    await Promise.all(asking);
    await balancer.close();
    await Promise.all(apis.map((api) => api.close()));
    assert.deepEqual([...statuses], ["refused as it should be"]);
  });
});
