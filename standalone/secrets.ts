/**
 * The installation's own secrets: given by the environment, or made once and kept in
 * `DATA_DIR/secrets.json` (mode 0600), so that they are the same after a restart.
 */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const secretNames = ["INTERNAL_SECRET", "ENCRYPTION_KEY", "JWT_SECRET"] as const;
export type Secrets = Record<(typeof secretNames)[number], string>;

const secretBytes = 32;

/**
 * Every secret: the given one, else the kept one, else a new one, which is kept. The caller holds
 * the data folder.
 */
export function ensureSecrets(dataDir: string, given: Partial<Secrets>): Secrets {
  const file = join(dataDir, "secrets.json");
  const kept: Partial<Secrets> = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  const toKeep: Partial<Secrets> = { ...kept };
  const secrets = {} as Secrets;
  for (const name of secretNames) {
    if (!given[name]) toKeep[name] ??= randomBytes(secretBytes).toString("base64url");
    secrets[name] = given[name] || (toKeep[name] as string);
  }
  if (Object.keys(toKeep).length > Object.keys(kept).length) writeWhole(file, JSON.stringify(toKeep, null, 2));
  return secrets;
}

/** Under another name first: a start that is killed here leaves the old file or the new one, never half. */
function writeWhole(file: string, text: string): void {
  const partial = `${file}.partial`;
  writeFileSync(partial, `${text}\n`, { mode: 0o600 });
  renameSync(partial, file);
}
