import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { serve } from "@hono/node-server";
import { loadRuleset } from "#tax/rules/rule_files.ts";
import { type ApiHarness, openApiHarness } from "#test/kit/api_harness.ts";
import { withCoverage } from "#test/kit/tax/coverage_table.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const page = read("docs/tax.md");

describe("docs/tax.md", () => {
  let api: ApiHarness;
  let server: ReturnType<typeof serve>;
  let env: NodeJS.ProcessEnv;
  const folder = mkdtempSync(join(tmpdir(), "frontdesk-docs-"));

  before(async () => {
    api = await openApiHarness();
    const signedUp = await api.call("POST", "/v1/auth/signup", {
      body: { email: "you@inn.example", password: "a long enough one" },
    });
    server = serve({ fetch: api.app.fetch, hostname: "127.0.0.1", port: 0 });
    if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    env = { ...process.env, API: `http://127.0.0.1:${port}`, TOKEN: signedUp.body.access_token };
  });
  after(async () => {
    server.close();
    await api.close();
    rmSync(folder, { recursive: true });
  });

  it("shows what its commands print", async () => {
    const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
    assert.ok(blocks.length >= 5);
    for (const block of blocks) {
      const shown = [...block.matchAll(/^# (.*)$/gm)].map(([, line = ""]) => line);
      const { status, output } = await run(block);
      assert.equal(status, 0, `${block}\n${output}`);
      const printed = output.split(/\r?\n/).map((line) => line.trim());
      for (const line of shown) assert.ok(printed.includes(line), `${line}\n  of\n${block}\n  which prints\n${output}`);
    }
  });

  it("says with the README how much is known, as it is: npm run tax:coverage", () => {
    const readme = read("README.md");
    assert.deepEqual(withCoverage(loadRuleset(), { readme, page }), { readme, page });
    assert.match(readme, /most visited destinations \d+ answer/);
    assert.match(page, /^\| 100 \| \d{4}-\d{2}-\d{2} \| \d+ \| \d+ \| \d+ \|$/m);
  });

  /** As a reader would: the server is in this process, so that nothing may block it. */
  function run(script: string): Promise<{ status: number | null; output: string }> {
    const shell = spawn("bash", ["-ec", `set -o pipefail\n${script}`], { cwd: folder, env });
    let output = "";
    for (const stream of [shell.stdout, shell.stderr]) stream.on("data", (chunk) => (output += chunk));
    return new Promise((resolve) => shell.on("close", (status) => resolve({ status, output })));
  }
});
