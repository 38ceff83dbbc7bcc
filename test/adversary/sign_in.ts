/** Guessing passwords: counted by account however it is written, answered alike for accounts that are none. */
import { randomBytes } from "node:crypto";
import type { Area } from "./attacked_house.ts";
import { needed } from "./crew.ts";

const guesses = 12;

export const signIn: Area = {
  name: "sign_in",
  async attack(house, report) {
    const email = `${randomBytes(8).toString("hex")}@adversary.example`;
    const password = randomBytes(16).toString("hex");
    needed(await house.ask("POST", "/v1/auth/signup", { body: { email, password } }));

    const unknown = await house.ask("POST", "/v1/auth/login", {
      body: { email: `no-${email}`, password: "wrong guess" },
    });
    const variants = [email, email.toUpperCase(), ` ${email}`, email.replace("adversary", "Adversary")];
    const statuses: number[] = [];
    for (let i = 0; i < guesses; i += 1) {
      const body = { email: variants[i % variants.length], password: `guess ${i}` };
      const told = await house.ask("POST", "/v1/auth/login", { body });
      statuses.push(told.status);
      if (i === 0 && (told.status !== unknown.status || told.text !== unknown.text)) {
        report(`an account that is none answers ${unknown.text}, another ${told.text}`);
      }
      if (told.status === 429 && !(Number(told.headers["retry-after"]) > 0)) report("429 without Retry-After");
      if (told.status >= 500) report(`a guess: ${told.status}`);
    }
    if (!statuses.includes(429)) report(`${guesses} guesses in a row: ${statuses.join(", ")}, never 429`);
    const tokens = [
      "",
      "a.b.c",
      `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from("{}").toString("base64url")}.`,
    ];
    for (const bearer of tokens) {
      const told = await house.ask("GET", "/v1/auth/me", { bearer });
      if (told.status !== 401) report(`the token ${JSON.stringify(bearer)}: ${told.status}`);
    }
    for (const body of [
      { email: { $ne: "" }, password: { $ne: "" } },
      { email: ["a"], password: 1 },
      { email: `${"a".repeat(10_000)}@x.example`, password },
    ]) {
      const told = await house.ask("POST", "/v1/auth/login", { body });
      if (![401, 422].includes(told.status))
        report(`signing in with ${JSON.stringify(body).slice(0, 80)}: ${told.status}`);
    }
  },
};
