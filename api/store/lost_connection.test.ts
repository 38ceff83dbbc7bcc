import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { survivesLostConnection } from "./lost_connection.ts";

describe("a rejection that nobody handles", () => {
  it("is reported when a connection to Postgres was lost", () => {
    const reported: unknown[] = [];
    const lost = Object.assign(new Error("write CONNECTION_CLOSED"), { code: "CONNECTION_CLOSED" });
    survivesLostConnection((error) => reported.push(error))(lost);
    assert.deepEqual(reported, [lost]);
  });

  it("ends the process when it is anything else", () => {
    const handle = survivesLostConnection(() => assert.fail("reported"));
    const mistake = new TypeError("undefined is not a function");
    assert.throws(() => handle(mistake), mistake);
    assert.throws(() => handle(undefined));
  });
});
