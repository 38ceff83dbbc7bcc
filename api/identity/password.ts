/** Password hashes: argon2id with the parameters that OWASP recommends (19 MiB, 2 passes, 1 lane). */
import { hash } from "@node-rs/argon2";

/** An encoded hash that carries its own salt and parameters. */
export function hashPassword(password: string): Promise<string> {
  return hash(password, { memoryCost: 19_456, timeCost: 2, parallelism: 1 });
}
