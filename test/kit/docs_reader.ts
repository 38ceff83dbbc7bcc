/** Does what a page of `docs/` shows, as its reader would, with an api that runs in this process. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve } from "@hono/node-server";
import type { ApiHarness } from "./api_harness.ts";

/** A file of the repository. */
export const readProjectFile = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

export interface DocsReader {
  /** `http://127.0.0.1:…` of the api. */
  url: string;
  /**
   * Runs each `sh` block of a page in a shell of its own. None may fail, and what
   * the page shows as printed (`# …`) is printed.
   * @returns how many blocks there were
   */
  follow(page: string, environment: Readonly<Record<string, string>>): Promise<number>;
  close(): void;
}

export async function openDocsReader(api: ApiHarness): Promise<DocsReader> {
  const folder = mkdtempSync(join(tmpdir(), "frontdesk-docs-"));
  const server = serve({ fetch: api.app.fetch, hostname: "127.0.0.1", port: 0 });
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));

  function run(block: string, environment: Readonly<Record<string, string>>) {
    const script = `set -o pipefail\n${block}`;
    // Not waited for in place: the server is in this process.
    const shell = spawn("bash", ["-ec", script], { cwd: folder, env: { ...process.env, ...environment } });
    let output = "";
    for (const stream of [shell.stdout, shell.stderr]) stream.on("data", (chunk) => (output += chunk));
    return new Promise<{ status: number | null; output: string }>((resolve) =>
      shell.on("close", (status) => resolve({ status, output })),
    );
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async follow(page, environment) {
      const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
      for (const block of blocks) {
        const shown = [...block.matchAll(/^# (.*)$/gm)].map(([, line = ""]) => line);
        const { status, output } = await run(block, environment);
        assert.equal(status, 0, `${block}\n${output}`);
        const printed = output.split(/\r?\n/).map((line) => line.trim());
        for (const line of shown)
          assert.ok(printed.includes(line), `${line}\n  of\n${block}\n  which prints\n${output}`);
      }
      return blocks.length;
    },
    close() {
      server.close();
      rmSync(folder, { recursive: true });
    },
  };
}
