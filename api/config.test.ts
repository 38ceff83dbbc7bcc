import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ConfigError, readApiConfig } from "./config.ts";

const secret = "0123456789abcdef";
const environment = {
  DATABASE_URL: "postgres://u:p@db/frontdesk",
  REDIS_URL: "redis://cache",
  INTERNAL_SECRET: secret,
  ENCRYPTION_KEY: secret,
  JWT_SECRET: secret,
};

describe("the configuration of a separate role", () => {
  it("has defaults for what may be left out, and an empty variable is left out", () => {
    const config = readApiConfig({ ...environment, API_PORT: "", GATEWAY_PORT: "9000" });
    assert.deepEqual([config.apiPort, config.workerPort, config.bindAddress], [8081, 8082, "127.0.0.1"]);
    assert.equal(config.publicUrl, "http://127.0.0.1:9000");
    assert.ok(Object.isFrozen(config));
  });

  it("names every problem at once, and why a role needs Redis", () => {
    assert.throws(
      () => readApiConfig({ API_PORT: "eighty", JWT_SECRET: "short" }),
      (error: unknown) => {
        assert.ok(error instanceof ConfigError);
        for (const name of [
          "API_PORT",
          "DATABASE_URL",
          "REDIS_URL",
          "INTERNAL_SECRET",
          "ENCRYPTION_KEY",
          "JWT_SECRET",
        ]) {
          assert.match(error.message, new RegExp(`${name}: `));
        }
        assert.match(error.message, /REDIS_URL: .*share reservations/);
        assert.equal(error.message.includes("short"), false);
        return true;
      },
    );
  });
});
