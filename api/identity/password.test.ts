import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hash } from "@node-rs/argon2";
import { hashPassword, needsRehash, verifyPassword } from "./password.ts";

describe("passwords", () => {
  it("are verified against their own hash, and against nobody's with the answer no", async () => {
    const own = await hashPassword("correct horse");
    assert.match(own, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    assert.equal(await verifyPassword(own, "correct horse"), true);
    assert.equal(await verifyPassword(own, "Correct horse"), false);
    assert.equal(await verifyPassword(undefined, "correct horse"), false);
    assert.equal(await verifyPassword(null, "correct horse"), false);
  });

  it("are hashed anew when their parameters are not today's", async () => {
    assert.equal(needsRehash(await hashPassword("correct horse")), false);
    assert.equal(needsRehash(await hash("correct horse", { memoryCost: 8192, timeCost: 1, parallelism: 1 })), true);
  });

  it("are computed a few at a time, and all in the end", async () => {
    const own = await hashPassword("correct horse");
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => verifyPassword(index % 3 === 0 ? undefined : own, "correct horse")),
    );
    assert.deepEqual(
      answers,
      answers.map((_, index) => index % 3 !== 0),
    );
  });
});
