/** Whether a folder of ours can be written to: on a full disk close records are lost with the process. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "./calls/clock.ts";

/** So often at most a write is tried. */
const everyMs = 5000;
/** More than a file system may keep beside a file's name. */
const probe = new Uint8Array(4096);

/** Never throws. Who asks at once shares one try. */
export function createWriteProbe(folder: string, clock: Clock): () => Promise<boolean> {
  const file = join(folder, "write_probe");
  let triedMs = Number.NEGATIVE_INFINITY;
  let tried: Promise<boolean> = Promise.resolve(false);
  const write = async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(file, probe, { mode: 0o600, flush: true });
    await rm(file);
  };
  return () => {
    const nowMs = clock.nowMs();
    if (nowMs - triedMs >= everyMs) {
      triedMs = nowMs;
      tried = write().then(
        () => true,
        () => false,
      );
    }
    return tried;
  };
}
