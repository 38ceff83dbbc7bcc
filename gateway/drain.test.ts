import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CallClient, eventually, startTestGateway, type TestGateway } from "#test/kit/gateway_fixture.ts";
import { transports } from "#test/kit/transports.ts";

for (const { transport, skip } of transports) {
  describe(`a drain on ${transport}`, { skip }, () => {
    const running = async (drainTimeoutS: number, use: (test: TestGateway) => Promise<void>) => {
      const test = await startTestGateway({ transport, config: { drainTimeoutS } });
      try {
        await use(test);
      } finally {
        await test.stop();
      }
    };

    it("admits nobody new, tells calls the deadline, lets them talk on, and ends with the last of them", async () => {
      await running(120, async (test) => {
        const { callId, url } = await test.reserve();
        const client = await CallClient.call(url);
        let isDrained = false;
        const drained = test.gateway.drain().then(() => {
          isDrained = true;
        });
        const draining = await client.message("draining");
        assert.equal(draining.resume, false);
        const leftMs = Date.parse(draining.deadline) - Date.now();
        assert.ok(leftMs > 100_000 && leftMs <= 120_000);

        const late = await test.reserve();
        const refused = await CallClient.connect(late.url);
        assert.ok(!(refused instanceof CallClient));
        assert.deepEqual([refused.status, refused.body], [503, '{"code":"capacity"}']);
        assert.equal(refused.headers["x-reason"], "draining");
        assert.match(String(refused.headers["retry-after"]), /^[1-5]$/);
        assert.equal((await fetch(`${test.gateway.url}/readyz`)).status, 503);
        assert.equal((await fetch(`${test.gateway.url}/healthz`)).status, 200);

        client.ws.send(new Uint8Array(640));
        await eventually(() => test.media.of(callId).heardBytes === 640, "the call goes on");
        assert.equal(isDrained, false);
        client.ws.close();
        await drained;
        assert.equal(test.gateway.slotsInUse(), 0);
        assert.equal(test.api.calls.get(late.callId)?.state, "reserved");
      });
    });

    it("waits for an upgrade that was under way, and tells that call the deadline too", async () => {
      await running(120, async (test) => {
        const { url } = await test.reserve();
        let goOn: () => void = () => {};
        const opening = new Promise<void>((isOpening) => {
          test.api.onOpen = () => {
            isOpening();
            return new Promise((resolve) => {
              goOn = resolve;
            });
          };
        });
        const connecting = CallClient.call(url);
        await opening;
        const drained = test.gateway.drain();
        goOn();
        const client = await connecting;
        await client.message("draining");
        client.ws.close();
        await drained;
        assert.equal(test.gateway.slotsInUse(), 0);
      });
    });

    it("ends the calls that are left at the deadline with drained and 1001", async () => {
      await running(0, async (test) => {
        const { callId, url } = await test.reserve();
        const client = await CallClient.call(url);
        await test.gateway.drain();
        assert.deepEqual(await client.whenClosed(), { code: 1001, reason: "drained" });
        const last = client.messages.at(-1);
        assert.equal(last?.type === "call_ended" && last.reason, "drained");
        assert.equal((await test.api.closeOf(callId)).end.reason, "drained");
      });
    });

    it("ends a call that loses its link, for there is nothing to come back to", async () => {
      await running(120, async (test) => {
        const { callId, url } = await test.reserve();
        const client = await CallClient.call(url);
        const drained = test.gateway.drain();
        await client.message("draining");
        client.socket.destroy();
        await drained;
        assert.equal((await test.api.closeOf(callId)).end.error_code, "link_lost");
      });
    });

    it("closes what is left with 1012 when the process stops at once, and reports it", async () => {
      const test = await startTestGateway({ transport });
      const { callId, url } = await test.reserve();
      const client = await CallClient.call(url);
      await test.stop();
      assert.equal((await client.whenClosed()).code, 1012);
      assert.equal(test.api.closes.filter((close) => close.callId === callId).length, 1);
    });
  });
}
