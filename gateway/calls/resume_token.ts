/** The token that lets a client come back to its call: used once, a new one in each `call_started`. */
import { sha256 } from "./call_url.ts";

/** `gone`: it was this call's once, and is used up or too late. */
export type TokenResult = "taken" | "gone" | "unknown";

/** Tokens of a call that stay known as used. */
const issuedMax = 64;

export class ResumeToken {
  readonly #newToken: () => string;
  /** SHA-256 of every token given out; the lookup's time tells nothing about a token's characters. */
  readonly #issued = new Set<string>();
  #current: string | undefined;

  constructor(newToken: () => string) {
    this.#newToken = newToken;
  }

  next(): string {
    const token = this.#newToken();
    this.#current = sha256(token).toString("hex");
    this.#issued.add(this.#current);
    if (this.#issued.size > issuedMax) for (const oldest of [...this.#issued].slice(0, 1)) this.#issued.delete(oldest);
    return token;
  }

  take(token: string): TokenResult {
    if (sha256(token).toString("hex") !== this.#current) return this.peek(token);
    this.#current = undefined;
    return "taken";
  }

  /** Undoes `take`, unless a newer one was given out meanwhile. */
  giveBack(token: string): void {
    this.#current ??= sha256(token).toString("hex");
  }

  peek(token: string): "gone" | "unknown" {
    return this.#issued.has(sha256(token).toString("hex")) ? "gone" : "unknown";
  }
}
