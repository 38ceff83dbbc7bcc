/**
 * `npm run check`: everything that has to hold without a test, side by side. What a check prints is
 * shown when it ends; the first words of a failure are its name.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "./rooms.ts";

const bin = (name: string) => join(root, "node_modules", ".bin", name);
const script = (path: string, ...args: string[]) => [process.execPath, "--import", "tsx", path, ...args] as const;

const checks: Readonly<Record<string, readonly [string, ...string[]]>> = {
  types: [bin("tsc"), "--noEmit"],
  "format, lint, borders": [bin("biome"), "check", "--error-on-warnings", "."],
  "dead code": [bin("knip")],
  "OpenAPI documents": script("api/openapi/generate.ts", "--check"),
  packages: script("test/house/packages/check.ts"),
};

const failed = await Promise.all(Object.entries(checks).map(([name, command]) => run(name, command)));
process.exitCode = failed.some(Boolean) ? 1 : 0;

/** @returns whether the check failed */
function run(name: string, [command, ...args]: readonly [string, ...string[]]): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    const printed: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => printed.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => printed.push(chunk));
    child.on("error", (error) => printed.push(Buffer.from(`${error.message}\n`)));
    child.on("close", (status) => {
      if (status !== 0) process.stderr.write(`FAILED: ${name}\n`);
      process.stderr.write(Buffer.concat(printed));
      resolve(status !== 0);
    });
  });
}
