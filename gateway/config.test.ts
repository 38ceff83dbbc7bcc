import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ConfigError, loadGatewayConfig } from "./config.ts";

describe("the gateway's configuration", () => {
  it("has a default for everything", () => {
    const config = loadGatewayConfig({});
    assert.equal(config.port, 8080);
    assert.equal(config.apiUrl, "http://127.0.0.1:8081");
    assert.equal(config.publicUrl, "http://127.0.0.1:8080");
    assert.equal(config.gatewayPublicUrl, config.publicUrl);
    assert.equal(config.callSlots, 64);
    assert.equal(config.transport, "auto");
    assert.notEqual(loadGatewayConfig({}).gatewayId, config.gatewayId);
    assert.ok(Object.isFrozen(config));
  });

  it("takes what is set", () => {
    const config = loadGatewayConfig({
      GATEWAY_PORT: "9000",
      CALL_SLOTS: "3",
      TRANSPORT: "ws",
      PUBLIC_URL: "https://desk.example",
      GATEWAY_PUBLIC_URL: "https://g1.desk.example",
      DRAIN_TIMEOUT_S: "0",
    });
    assert.deepEqual(
      [config.port, config.callSlots, config.transport, config.gatewayPublicUrl, config.drainTimeoutS],
      [9000, 3, "ws", "https://g1.desk.example", 0],
    );
  });

  it("names every problem at once", () => {
    assert.throws(
      () => loadGatewayConfig({ CALL_SLOTS: "many", TRANSPORT: "carrier-pigeon", PUBLIC_URL: "desk" }),
      (error: unknown) =>
        error instanceof ConfigError &&
        ["CALL_SLOTS", "TRANSPORT", "PUBLIC_URL"].every((name) => error.message.includes(name)),
    );
  });

  it("refuses a separate gateway without Redis and secret, and says why", () => {
    assert.throws(
      () => loadGatewayConfig({}, { separate: true }),
      (error: unknown) => error instanceof ConfigError && /REDIS_URL[\s\S]*INTERNAL_SECRET/.test(error.message),
    );
    const given = { REDIS_URL: "redis://127.0.0.1", INTERNAL_SECRET: "0123456789abcdef" };
    assert.equal(loadGatewayConfig(given, { separate: true }).redisUrl, "redis://127.0.0.1");
  });
});
