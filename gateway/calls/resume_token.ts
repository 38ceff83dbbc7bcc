/** The token that lets a client come back to its call: used once, a new one in each `call_started`. */
import { timingSafeEqual } from "node:crypto";
import { sha256 } from "./call_url.ts";

export class ResumeToken {
  private readonly newToken: () => string;
  private currentSha256: Buffer | undefined;

  constructor(newToken: () => string) {
    this.newToken = newToken;
  }

  next(): string {
    const token = this.newToken();
    this.currentSha256 = sha256(token);
    return token;
  }

  take(token: string): boolean {
    if (!this.currentSha256 || !timingSafeEqual(sha256(token), this.currentSha256)) return false;
    this.currentSha256 = undefined;
    return true;
  }
}
