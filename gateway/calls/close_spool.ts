/**
 * Close records that the api has not taken yet, one file each, so that a restart sends them.
 * Bounded: above `recordsMax` the oldest in memory goes and the sweeper closes that call as `error`.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { CloseCallRequest } from "#contracts/internal_calls.ts";
import { isUuid } from "#contracts/secrets.ts";

const isCloseRequest = TypeCompiler.Compile(CloseCallRequest);

export interface CloseSpool {
  /** Records left by an earlier process; unreadable files are left out. */
  load(): Promise<ReadonlyMap<string, CloseCallRequest>>;
  keep(callId: string, request: CloseCallRequest): Promise<void>;
  remove(callId: string): Promise<void>;
}

/** @param folder made when it is first needed */
export function createCloseSpool(folder: string): CloseSpool {
  const fileOf = (callId: string) => join(folder, `${callId}.json`);
  return {
    async load() {
      const names = await readdir(folder).catch(() => []);
      const records = new Map<string, CloseCallRequest>();
      for (const name of names) {
        const callId = name.replace(/\.json$/, "");
        if (!isUuid(callId)) continue;
        try {
          const request: unknown = JSON.parse(await readFile(fileOf(callId), "utf8"));
          if (isCloseRequest.Check(request)) records.set(callId, request);
        } catch {
          // Half a file from a process that was killed while writing: the sweeper closes that call.
        }
      }
      return records;
    },
    async keep(callId, request) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const partial = `${fileOf(callId)}.part`;
      await writeFile(partial, JSON.stringify(request), { mode: 0o600 });
      await rename(partial, fileOf(callId));
    },
    remove: (callId) => rm(fileOf(callId), { force: true }),
  };
}
