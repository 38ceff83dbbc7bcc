/** What a command says: results on stdout, where it is on stderr. */
import { availableParallelism, cpus } from "node:os";

/** One line that the next one overwrites on a terminal. */
export function progress(line: string): void {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${line}` : `${line}\n`);
}

export function print(text: string): void {
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  process.stdout.write(`${text}\n\n`);
}

/** What figures depend on first of all. */
export function machine(): { cpu: string; cores: number; node: string } {
  return { cpu: cpus()[0]?.model ?? "unknown", cores: availableParallelism(), node: process.version };
}
