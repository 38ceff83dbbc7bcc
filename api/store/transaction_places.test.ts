import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ApiError } from "#contracts/errors.ts";
import { createTransactionPlaces } from "./transaction_places.ts";

describe("places for transactions", () => {
  const held = () => {
    let end: (value: string) => void = () => undefined;
    const work = new Promise<string>((resolve) => {
      end = resolve;
    });
    return { end, work: () => work };
  };

  it("are given in the order in which they were asked for", async () => {
    const places = createTransactionPlaces({ places: 1, waitMsMax: 60_000 });
    const order: string[] = [];
    const first = held();
    const begun = places.within(async () => order.push(await first.work()));
    const later = ["b", "c"].map((name) => places.within(async () => order.push(name)));
    first.end("a");
    await Promise.all([begun, ...later]);
    assert.deepEqual(order, ["a", "b", "c"]);
  });

  it("are refused as unavailable, with when to come again, after a bounded wait", async () => {
    const places = createTransactionPlaces({ places: 1, waitMsMax: 20 });
    const first = held();
    const begun = places.within(first.work);
    await assert.rejects(
      places.within(async () => "too late"),
      (error) => error instanceof ApiError && error.code === "unavailable" && error.retryAfterS !== undefined,
    );
    first.end("done");
    assert.equal(await begun, "done");
    assert.equal(await places.within(async () => "free again"), "free again");
  });

  it("are free again after work that fails", async () => {
    const places = createTransactionPlaces({ places: 1, waitMsMax: 20 });
    const fails = () => places.within(() => Promise.reject(new Error("broken")));
    await assert.rejects(fails(), /broken/);
    await assert.rejects(fails(), /broken/);
  });
});
