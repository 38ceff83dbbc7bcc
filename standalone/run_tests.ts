/**
 * `npm test`: starts what the tests need (a Postgres, and a Redis where the machine has one), runs
 * every `*.test.ts`, prints what was skipped and why, and ends what it started.
 *
 *     npm test                          everything
 *     npm test -- media gateway/calls   the files whose path contains one of these
 *     npm test -- --no-skips            a skipped test is a failure (CI)
 *     npm test -- --no-skips --may-skip REASON    but for this reason
 *     npm test -- --second-try          up to five files that failed run once more, alone, and are named
 */
import { randomBytes } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, sep } from "node:path";
import { run } from "node:test";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startEmbeddedPostgres } from "./embedded_postgres.ts";
import { startTestRedis } from "./test_redis.ts";
import { reportTests, type TestVerdict } from "./test_report.ts";

/** Files at a time; each is a process of its own. */
const concurrency = 2;
/** A file that hangs fails after this, instead of the run hanging with it: far above what any takes on a busy machine. */
const fileMsMax = 400_000;
/** More files than this fail for a reason, not by the load of their neighbours. */
const secondTriesMax = 5;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values: flags, positionals: filters } = parseArgs({
  allowPositionals: true,
  options: {
    "no-skips": { type: "boolean", default: false },
    "may-skip": { type: "string", multiple: true, default: [] },
    "second-try": { type: "boolean", default: false },
  },
});
const files = testFiles(filters);
if (files.length === 0) {
  console.error(`No test file matches ${filters.join(", ") || "**/*.test.ts"}.`);
  process.exit(1);
}

const dataDir = join(tmpdir(), `frontdesk-test-${randomBytes(6).toString("hex")}`);
const database = await startEmbeddedPostgres({ dataDir, durable: false });
const redis = await startTestRedis();
process.env.TEST_DATABASE_URL = database.url;
if (redis) process.env.TEST_REDIS_URL = redis.url;

const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => interrupted.abort());

try {
  const verdict = await runFiles(files, concurrency);
  const forbidden = flags["no-skips"]
    ? verdict.skipReasons.filter((reason) => !flags["may-skip"].includes(reason))
    : [];
  if (forbidden.length > 0) console.error(`Failed: nothing may be skipped here because of: ${forbidden.join("; ")}`);
  const passed = verdict.passed || (flags["second-try"] && (await passAlone(verdict)));
  process.exitCode = passed && forbidden.length === 0 && !interrupted.signal.aborted ? 0 : 1;
} finally {
  await redis?.stop();
  await database.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

/** The files run as this process was started: with tsx. */
function runFiles(files: string[], concurrency: number): Promise<TestVerdict> {
  const events = run({ files, concurrency, timeout: fileMsMax, signal: interrupted.signal });
  return reportTests(events, process.stdout, root);
}

/**
 * Whether the few files that failed pass when nothing runs beside them: tests of real sound and real
 * clocks share two cores with their neighbours. What fails alone has failed, and what passes is named.
 */
async function passAlone({ isWhole, failedFiles }: TestVerdict): Promise<boolean> {
  if (!isWhole || failedFiles.length === 0 || failedFiles.length > secondTriesMax || interrupted.signal.aborted) {
    return false;
  }
  const names = failedFiles.map((file) => relative(root, file)).join(", ");
  console.error(`\nFailed beside others, and now alone: ${names}\n`);
  const { passed } = await runFiles(failedFiles, 1);
  if (passed) console.error(`\nUnsteady: failed beside others, passed alone: ${names}`);
  return passed;
}

function testFiles(filters: readonly string[]): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".test.ts") && !/(^|[\\/])(node_modules|\.[^\\/]+)[\\/]/.test(path))
    .map((path) => path.split(sep).join("/"))
    .filter((path) => filters.length === 0 || filters.some((filter) => path.includes(filter)))
    .sort()
    .map((path) => join(root, path));
}
