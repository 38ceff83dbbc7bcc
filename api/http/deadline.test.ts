import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ApiError } from "#contracts/errors.ts";
import { Deadline } from "./deadline.ts";

const isUnavailable = (error: unknown) =>
  error instanceof ApiError && error.code === "unavailable" && error.retryAfterS !== undefined;

describe("a request's deadline", () => {
  it("ends the wait for what never settles, and for every part after it", async () => {
    const deadline = new Deadline(20);
    const never = new Promise<never>(() => undefined);
    await assert.rejects(deadline.within(never), isUnavailable);
    await assert.rejects(deadline.within(never), isUnavailable);
  });

  it("hands on what settles in time", async () => {
    const deadline = new Deadline(60_000);
    assert.equal(await deadline.within(Promise.resolve("done")), "done");
    await assert.rejects(deadline.within(Promise.reject(new Error("broken"))), /broken/);
  });
});
