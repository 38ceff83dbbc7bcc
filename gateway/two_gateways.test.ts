import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Bus } from "#bus/bus.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import { createRedisBus } from "#bus/redis_bus.ts";
import {
  CallClient,
  eventually,
  FakeApi,
  inBatches,
  startTestGateway,
  type TestGateway,
} from "#test/kit/gateway_fixture.ts";
import { type RedisForTests, redisMissing, startRedis } from "#test/kit/redis_fixture.ts";
import { bestTransport } from "#test/kit/transports.ts";

for (const kind of ["memory", "redis"] as const) {
  describe(`two gateways on one ${kind} bus, 8 slots each`, {
    skip: kind === "redis" ? redisMissing(process.env.TEST_REDIS_URL) : false,
  }, () => {
    let redis: RedisForTests | undefined;
    const buses: Bus[] = [];
    const gateways: TestGateway[] = [];
    const api = new FakeApi();

    before(async () => {
      let openBus = async (): Promise<Bus> => memory;
      const memory = createMemoryBus();
      if (kind === "redis") {
        redis = await startRedis(process.env.TEST_REDIS_URL);
        const { url } = redis;
        openBus = () => createRedisBus(url);
      }
      for (const transport of [bestTransport, "ws"] as const) {
        const bus = await openBus();
        buses.push(bus);
        gateways.push(await startTestGateway({ transport, slots: 8, api, bus }));
      }
    });
    after(async () => {
      for (const gateway of gateways) await gateway.stop();
      for (const bus of new Set(buses)) await bus.close();
      await redis?.stop();
    });

    const gatewayOf = (index: number): TestGateway => {
      const gateway = gateways[index % gateways.length];
      assert.ok(gateway);
      return gateway;
    };
    /** The same reservation's address at the gateway with this number. */
    const at = (index: number, url: string) => {
      const moved = new URL(url);
      moved.port = String(gatewayOf(index).gateway.port);
      return moved.href;
    };
    const slotsInUse = () => gateways.reduce((sum, { gateway }) => sum + gateway.slotsInUse(), 0);

    it("admit exactly 16 of 1,000 racing connects, and every refused reservation afterwards", async () => {
      const opensBefore = api.opens;
      const reservations = await inBatches(1000, () => gatewayOf(0).reserve());
      const results = await Promise.all(reservations.map(({ url }, index) => CallClient.connect(at(index, url))));
      const tally: Record<string, number> = {};
      for (const result of results) {
        const answer = result instanceof CallClient ? "admitted" : `${result.status} ${result.body}`;
        tally[answer] = (tally[answer] ?? 0) + 1;
      }
      assert.deepEqual(tally, { admitted: 16, '503 {"code":"capacity"}': 984 });
      const admitted = results.filter((result) => result instanceof CallClient);
      for (const { gateway } of gateways) assert.equal(gateway.slotsInUse(), 8);
      for (const client of admitted) client.ws.close();
      await eventually(() => slotsInUse() === 0, "all slots are free");

      const refused = reservations.filter((_, index) => !(results[index] instanceof CallClient));
      for (let from = 0; from < refused.length; from += 16) {
        // At the other gateway than the one that refused: any will do.
        const batch = refused.slice(from, from + 16);
        const clients = await Promise.all(batch.map(({ url }, index) => CallClient.call(at(index + 1, url))));
        for (const client of clients) client.ws.close();
        await eventually(() => slotsInUse() === 0, "all slots are free");
      }
      assert.equal(api.opens - opensBefore, 1000);
    });

    it("make one call of one reservation raced by 50 sockets", async () => {
      const opensBefore = api.opens;
      const { url } = await gatewayOf(0).reserve();
      const results = await Promise.all(Array.from({ length: 50 }, (_, index) => CallClient.connect(at(index, url))));
      const admitted = results.filter((result) => result instanceof CallClient);
      assert.equal(admitted.length, 1);
      assert.equal(api.opens - opensBefore, 1);
      for (const result of results) {
        if (result instanceof CallClient) continue;
        assert.ok(
          ["410 consumed", "503 capacity"].includes(
            `${result.status} ${(JSON.parse(result.body) as { code: string }).code}`,
          ),
        );
      }
      for (const client of admitted) client.ws.close();
      await eventually(() => slotsInUse() === 0, "all slots are free");
    });

    it("tell each other what room they have", async () => {
      const figures = [...((await buses[0]?.capacities()) ?? new Map()).values()];
      assert.ok(figures.filter(({ slots, draining }) => slots === 8 && !draining).length >= 2);
    });
  });
}
