import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { apiEnvironment, bootstrapEnvironment } from "#api/config.ts";
import { GatewayEnvironment } from "#gateway/config.ts";
import { readStandaloneConfig, StandaloneEnvironment } from "#standalone/config.ts";

/** Every variable of every process. */
const schemas = [GatewayEnvironment, apiEnvironment, bootstrapEnvironment, StandaloneEnvironment].map(
  ({ properties }) => properties,
);
const known = new Set(schemas.flatMap((properties) => Object.keys(properties)));
const example = readExample();

describe("the environment", () => {
  it("is listed in .env.example, whole and with nothing else", () => {
    assert.deepEqual([...example.keys()].sort(), [...known].sort());
  });

  it("is listed with the defaults that the processes use, the same in all of them", () => {
    for (const name of known) {
      const defaults = schemas.map(
        (properties) => (properties as Record<string, { default?: unknown }>)[name]?.default,
      );
      const given = new Set(defaults.filter((value) => value !== undefined).map(String));
      assert.deepEqual([...given], example.get(name) ? [example.get(name)] : [], name);
    }
  });

  it("is listed in the table of docs/environment.md", () => {
    const page = readFileSync(new URL("../../docs/environment.md", import.meta.url), "utf8");
    const rows = [...page.matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1]);
    assert.deepEqual(rows.sort(), [...known].sort());
  });

  it("is refused with all of its problems at once", () => {
    const wrong = { GATEWAY_PORT: "many", API_PORT: "99999", JWT_SECRET: "short", DATABASE_URL: "mysql://here" };
    assert.throws(
      () => readStandaloneConfig(wrong),
      (error: Error) => {
        for (const name of Object.keys(wrong)) assert.match(error.message, new RegExp(`^  ${name}: `, "m"));
        assert.doesNotMatch(error.message, /short|mysql/); // It may be a secret that is wrong.
        return true;
      },
    );
  });

  it("takes an empty variable for an unset one", () => {
    const config = readStandaloneConfig({ API_PORT: "", DATABASE_URL: "", JWT_SECRET: "" });
    assert.deepEqual(config.ports.API_PORT, { port: 8081, isGiven: false });
    assert.equal(config.databaseUrl, undefined);
    assert.deepEqual(config.givenSecrets, {});
  });
});

function readExample(): Map<string, string> {
  const text = readFileSync(new URL("../../.env.example", import.meta.url), "utf8");
  const lines = text.split("\n").filter((line) => line && !line.startsWith("#"));
  return new Map(lines.map((line) => line.split("=") as [string, string]));
}
