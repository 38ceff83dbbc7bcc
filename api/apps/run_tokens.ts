/**
 * Run tokens (`svc_run_…`): what starting a run without a key answers, and the capability to follow that
 * very run for a day. Nothing is stored. A token is the run's id, the second in which it ends and an
 * HMAC-SHA256 over both, under a key derived from `JWT_SECRET` with HKDF (RFC 5869).
 */
import { createHmac, hkdfSync, timingSafeEqual } from "node:crypto";
import { runLimits } from "#contracts/run_event.ts";
import { secretPrefixes } from "#contracts/secrets.ts";

const idBytes = 16;
const endBytes = 6;
const macBytes = 32;

export interface RunTokens {
  issue(runId: string): string;
  /** The run that a token is for; undefined for one that is over, or that was not issued here. */
  runOf(token: string): string | undefined;
}

export function createRunTokens({ jwtSecret, now }: { jwtSecret: string; now(): Date }): RunTokens {
  const key = Buffer.from(hkdfSync("sha256", jwtSecret, "", "frontdesk run tokens v1", 32));
  const macOf = (claim: Buffer) => createHmac("sha256", key).update(claim).digest();
  return {
    issue(runId) {
      const claim = Buffer.alloc(idBytes + endBytes);
      claim.write(runId.replaceAll("-", ""), "hex");
      claim.writeUIntBE(Math.floor(now().getTime() / 1000) + runLimits.runTokenHours * 3600, idBytes, endBytes);
      return secretPrefixes.runToken + Buffer.concat([claim, macOf(claim)]).toString("base64url");
    },
    runOf(token) {
      const bytes = Buffer.from(token.slice(secretPrefixes.runToken.length), "base64url");
      if (!token.startsWith(secretPrefixes.runToken) || bytes.length !== idBytes + endBytes + macBytes)
        return undefined;
      const claim = bytes.subarray(0, idBytes + endBytes);
      if (!timingSafeEqual(macOf(claim), bytes.subarray(idBytes + endBytes))) return undefined;
      if (claim.readUIntBE(idBytes, endBytes) * 1000 <= now().getTime()) return undefined;
      return claim.toString("hex", 0, idBytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    },
  };
}
