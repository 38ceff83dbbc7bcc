import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import type { Bus } from "#bus/bus.ts";
import { createMemoryBus } from "#bus/memory_bus.ts";
import {
  CallClient,
  eventually,
  ManualClock,
  type Refused,
  startTestGateway,
  type TestGateway,
} from "#test/kit/gateway_fixture.ts";
import { transports } from "#test/kit/transports.ts";

async function refusalOf(url: string, options?: Parameters<typeof CallClient.connect>[1]): Promise<Refused> {
  const refused = await CallClient.connect(url, options);
  assert.ok(!(refused instanceof CallClient), "the upgrade is refused");
  return refused;
}

for (const { transport, skip } of transports) {
  describe(`admission on ${transport}`, { skip }, () => {
    let test: TestGateway;
    before(async () => {
      test = await startTestGateway({ transport, slots: 16 });
    });
    after(() => test.stop());

    async function assertRefused(
      url: string,
      status: number,
      code: string,
      options?: { protocols?: string[]; origin?: string },
    ) {
      const refused = await refusalOf(url, options);
      assert.equal(refused.status, status);
      assert.deepEqual(JSON.parse(refused.body), { code });
      assert.equal(test.gateway.slotsInUse(), 0);
      return refused;
    }

    it("starts a call at once after the 101", async () => {
      const { callId, url } = await test.reserve();
      const client = await CallClient.call(url);
      const started = client.messages[0];
      assert.equal(started?.type, "call_started");
      assert.equal(started?.seq, 1);
      assert.equal(started?.type === "call_started" && started.call_id, callId);
      assert.equal(test.gateway.slotsInUse(), 1);
      client.ws.close(1000);
      await client.whenClosed();
      assert.equal((await test.api.closeOf(callId)).end.reason, "client_hangup");
      assert.equal(test.gateway.slotsInUse(), 0);
    });

    it("answers an unknown id, a malformed one and a wrong secret alike with 404", async () => {
      const { url } = await test.reserve();
      const base = url.slice(0, url.lastIndexOf("/"));
      const bodies = [
        await assertRefused(`${base}/${randomBytes(32).toString("base64url")}`, 404, "not_found"),
        await assertRefused(
          `${base.slice(0, -36)}${randomUUID()}/${randomBytes(32).toString("base64url")}`,
          404,
          "not_found",
        ),
        await assertRefused(`${base.slice(0, -36)}nobody/secret`, 404, "not_found"),
        await assertRefused(`ws://127.0.0.1:${test.gateway.port}/elsewhere`, 404, "not_found"),
      ].map(({ body }) => body);
      assert.equal(new Set(bodies).size, 1);
    });

    it("answers 410 expired for a URL that is out of time", async () => {
      const { url } = await test.reserve({ expires_at: new Date(Date.now() - 1000).toISOString() });
      await assertRefused(url, 410, "expired");
    });

    it("answers 410 consumed for a used URL", async () => {
      const { url } = await test.reserve();
      const client = await CallClient.call(url);
      client.ws.close();
      await client.whenClosed();
      await eventually(() => test.gateway.slotsInUse() === 0, "the slot is free");
      await assertRefused(url, 410, "consumed");
    });

    it("answers 410 gone when the agent was archived meanwhile", async () => {
      const { callId, url } = await test.reserve();
      test.api.archived.add(callId);
      await assertRefused(url, 410, "gone");
    });

    it("answers 400 for a subprotocol that is not ours, and takes ours", async () => {
      const { url } = await test.reserve();
      await assertRefused(url, 400, "bad_subprotocol", { protocols: ["voice.v9"] });
      const client = await CallClient.connect(url, { protocols: ["other", "voice.v1"] });
      assert.ok(client instanceof CallClient);
      assert.equal(client.ws.protocol, "voice.v1");
      client.ws.close();
      await eventually(() => test.gateway.slotsInUse() === 0, "the slot is free");
    });

    it("answers 403 for an origin that is not on the agent's list", async () => {
      const { url } = await test.reserve({ allowed_origins: ["https://hotel.example"] });
      await assertRefused(url, 403, "forbidden_origin", { origin: "https://elsewhere.example" });
      const client = await CallClient.connect(url, { origin: "https://hotel.example" });
      assert.ok(client instanceof CallClient);
      client.ws.close();
      await eventually(() => test.gateway.slotsInUse() === 0, "the slot is free");
    });

    it("answers 503 unavailable while the api is down, and the reservation still works afterwards", async () => {
      const { url } = await test.reserve();
      test.api.isDown = true;
      const refused = await assertRefused(url, 503, "unavailable");
      assert.match(String(refused.headers["retry-after"]), /^[1-5]$/);
      test.api.isDown = false;
      const client = await CallClient.call(url);
      client.ws.close();
      await eventually(() => test.gateway.slotsInUse() === 0, "the slot is free");
    });

    it("keeps a reservation for its caller when the bus takes it and does not say so, however long it is away", async () => {
      const clock = new ManualClock();
      const memory = createMemoryBus();
      let isAway = true;
      let returns = 0;
      let onAway: () => void = () => undefined;
      const bus: Bus = {
        ...memory,
        async takeReservation(...take) {
          const taken = await memory.takeReservation(...take);
          if (isAway) throw new Error("The connection broke before the answer came");
          return taken;
        },
        async restoreReservation(...take) {
          if (isAway) {
            onAway();
            throw new Error("The bus is away");
          }
          await memory.restoreReservation(...take);
          returns += 1;
        },
      };
      const house = await startTestGateway({ transport, bus, clock });
      try {
        const { url } = await house.reserve();
        assert.equal((await refusalOf(url)).status, 503);
        let tries = 0;
        onAway = () => {
          tries += 1;
        };
        const goOnUntil = (fact: () => boolean, what: string) =>
          eventually(() => {
            clock.advance(500);
            return fact();
          }, what);
        await goOnUntil(() => tries >= 3, "it is tried to give it back");
        isAway = false;
        await goOnUntil(() => returns > 0, "the reservation is given back");
        const client = await CallClient.call(url);
        clock.advance(10_000);
        assert.equal((await refusalOf(url)).status, 410);
        assert.equal(returns, 1);
        client.ws.close();
      } finally {
        await house.stop();
        await memory.close();
      }
    });

    it("asks the api when the bus has forgotten a reservation", async () => {
      const { url } = await test.reserve({ onBus: false });
      const client = await CallClient.call(url);
      client.ws.close();
      await eventually(() => test.gateway.slotsInUse() === 0, "the slot is free");
    });

    it("shows the state of a reservation to a GET without Upgrade", async () => {
      const { url } = await test.reserve();
      const address = url.replace("ws:", "http:");
      const preflight = async (at = address) => {
        const response = await fetch(at);
        return { status: response.status, body: (await response.json()) as unknown };
      };
      assert.deepEqual(await preflight(), { status: 200, body: { state: "reserved", capacity: true } });
      const client = await CallClient.call(url);
      assert.deepEqual(await preflight(), { status: 200, body: { state: "in_progress", capacity: true } });
      client.ws.close();
      await eventually(() => test.gateway.slotsInUse() === 0 && test.api.closes.length > 0, "the call is over");
      await eventually(
        () => [...test.api.calls.values()].every((call) => call.state !== "in_progress"),
        "it is recorded",
      );
      assert.deepEqual(await preflight(), { status: 200, body: { state: "ended", capacity: true } });
      assert.deepEqual(await preflight(`${address.slice(0, -4)}AAAA`), { status: 404, body: { code: "not_found" } });
    });

    it("gives the slot and the reservation back when the client goes away before the 101", async () => {
      const { callId, url } = await test.reserve();
      const { pathname } = new URL(url);
      let opening: () => void = () => {};
      const isOpening = new Promise<void>((resolve) => {
        opening = resolve;
      });
      let goOn: () => void = () => {};
      test.api.onOpen = () => {
        opening();
        return new Promise((resolve) => {
          goOn = resolve;
        });
      };
      const socket = connect(test.gateway.port, "127.0.0.1");
      socket.write(
        `GET ${pathname} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
      );
      await isOpening;
      assert.equal(test.gateway.slotsInUse(), 1);
      socket.destroy();
      // Two round trips later the server's event loop has seen that the other socket is gone.
      for (let i = 0; i < 2; i++) await (await fetch(`${test.gateway.url}/healthz`)).text();
      test.api.onOpen = async () => {};
      goOn();
      await eventually(() => test.gateway.slotsInUse() === 0, "the slot is free");
      assert.equal((await test.api.closeOf(callId)).end.reason, "client_hangup");
      assert.equal(test.media.sessions.has(callId), false);
    });
  });

  describe(`junk on ${transport}`, { skip }, () => {
    it("survives any bytes in place of a request, and any upgrade, and takes no slot for it", async () => {
      const test = await startTestGateway({ transport });
      try {
        const { url } = await test.reserve();
        const { pathname } = new URL(url);
        const line = fc.string({ maxLength: 80 });
        const request = fc.oneof(
          fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
          fc
            .record({
              path: fc.oneof(fc.constant(pathname.slice(0, -3)), fc.constant("/v1/voice/calls/"), fc.webPath()),
              query: fc.webQueryParameters(),
              version: fc.constantFrom("13", "8", "x", ""),
              key: fc.constantFrom("dGhlIHNhbXBsZSBub25jZQ==", "short", ""),
              protocol: line,
              origin: line,
            })
            .map(({ path, query, version, key, protocol, origin }) =>
              Buffer.from(
                `GET ${path}?${query} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
                  `Sec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: ${version}\r\n` +
                  `Sec-WebSocket-Protocol: ${protocol}\r\nOrigin: ${origin}\r\n\r\n`,
              ),
            ),
        );
        await fc.assert(
          fc.asyncProperty(request, async (bytes) => {
            const socket = connect(test.gateway.port, "127.0.0.1");
            socket.on("error", () => {});
            await new Promise((resolve) => socket.write(bytes, resolve));
            const answer = await fetch(`${test.gateway.url}/healthz`);
            assert.equal(answer.status, 200);
            await answer.text();
            socket.destroy();
          }),
          { numRuns: 400 },
        );
        assert.equal(test.gateway.slotsInUse(), 0);
        const client = await CallClient.call(url);
        client.ws.close();
        await eventually(() => test.gateway.slotsInUse() === 0, "the slot is free");
      } finally {
        await test.stop();
      }
    });
  });

  describe(`races on ${transport}`, { skip }, () => {
    it("admits exactly 16 of 1,000 racing connects on 16 slots, and every refused reservation afterwards", async () => {
      const test = await startTestGateway({ transport, slots: 16 });
      try {
        const reservations = await Promise.all(Array.from({ length: 1000 }, () => test.reserve()));
        const results = await Promise.all(reservations.map(({ url }) => CallClient.connect(url)));
        const admitted = results.filter((result) => result instanceof CallClient);
        assert.equal(admitted.length, 16);
        assert.equal(test.gateway.slotsInUse(), 16);
        for (const result of results) {
          if (result instanceof CallClient) continue;
          assert.equal(result.status, 503);
          assert.equal(result.body, '{"code":"capacity"}');
          assert.match(String(result.headers["retry-after"]), /^[1-5]$/);
        }
        for (const client of admitted) client.ws.close();
        await eventually(() => test.gateway.slotsInUse() === 0, "all slots are free");

        const refused = reservations.filter((_, index) => !(results[index] instanceof CallClient));
        for (let at = 0; at < refused.length; at += 16) {
          const clients = await Promise.all(refused.slice(at, at + 16).map(({ url }) => CallClient.call(url)));
          for (const client of clients) client.ws.close();
          await eventually(() => test.gateway.slotsInUse() === 0, "all slots are free");
        }
        assert.equal(test.api.opens, 1000);
      } finally {
        await test.stop();
      }
    });

    it("makes one call of one reservation raced by 50 sockets", async () => {
      const test = await startTestGateway({ transport, slots: 64 });
      try {
        const { url } = await test.reserve();
        const results = await Promise.all(Array.from({ length: 50 }, () => CallClient.connect(url)));
        assert.equal(results.filter((result) => result instanceof CallClient).length, 1);
        for (const result of results) {
          if (!(result instanceof CallClient))
            assert.deepEqual([result.status, result.body], [410, '{"code":"consumed"}']);
        }
        assert.equal(test.api.opens, 1);
        assert.equal(test.gateway.slotsInUse(), 1);
      } finally {
        await test.stop();
      }
    });
  });
}
