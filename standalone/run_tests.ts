/**
 * `npm test`: starts what the tests need (a Postgres, and a Redis where the machine has one, and the
 * roles made ready to be started), runs every `*.test.ts`, prints what was skipped and why, and ends what it started.
 *
 *     npm test                          everything
 *     npm test -- media gateway/calls   the files whose path contains one of these
 *     npm test -- -t "a refund"         the tests whose name matches, a regular expression
 *     npm test -- --watch media         again whenever one of the files, or what it imports, changes
 *     npm test -- --no-skips            a skipped test is a failure (CI)
 *     npm test -- --no-skips --may-skip REASON    but for this reason
 */
import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, sep } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { startEmbeddedPostgres } from "./embedded_postgres.ts";
import { bundleRoles } from "./role_bundle.ts";
import { planProcesses } from "./test_plan.ts";
import { startTestRedis } from "./test_redis.ts";
import { reportTests } from "./test_report.ts";

/** Test processes at a time: one more than cores, for one of them mostly waits. Postgres has connections for four. */
const concurrency = Math.min(4, availableParallelism() + 1);
/** A process that hangs fails after this, instead of the run hanging with it: five times what the slowest takes. */
const processMsMax = 300_000;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values: flags, positionals: filters } = parseArgs({
  allowPositionals: true,
  options: {
    "no-skips": { type: "boolean", default: false },
    "may-skip": { type: "string", multiple: true, default: [] },
    name: { type: "string", short: "t", multiple: true, default: [] },
    watch: { type: "boolean", default: false },
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
// Where a role cannot be made, the tests that start it say so; others need none.
const roles = await bundleRoles(root).catch(() => undefined);
const filesOf = writeEntries(planProcesses(files), dataDir);
process.env.TEST_DATABASE_URL = database.url;
if (roles) process.env.TEST_ROLES = roles.folder;
if (redis) process.env.TEST_REDIS_URL = redis.url;

const interrupted = new AbortController();
// Each process listens.
setMaxListeners(0, interrupted.signal);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => interrupted.abort());

try {
  // Processes start as this one was started: with tsx.
  const names = flags.name.length > 0 && { testNamePatterns: flags.name };
  const entries = flags.watch ? files.map((file) => join(root, file)) : [...filesOf.keys()];
  const events = run({ files: entries, concurrency, signal: interrupted.signal, ...names, ...howLong() });
  if (flags.watch) await untilInterrupted(events);
  else process.exitCode = (await passes(events)) ? 0 : 1;
} finally {
  roles?.remove();
  await redis?.stop();
  await database.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

/** Who watches goes on until Ctrl-C. */
function howLong() {
  return flags.watch ? { watch: true } : { timeout: processMsMax };
}

async function untilInterrupted(events: ReturnType<typeof run>): Promise<void> {
  events.compose(new spec()).pipe(process.stdout);
  await new Promise((stopped) => interrupted.signal.addEventListener("abort", stopped, { once: true }));
}

async function passes(events: ReturnType<typeof run>): Promise<boolean> {
  const { passed, skipReasons } = await reportTests(events, process.stdout, root, filesOf);
  const forbidden = flags["no-skips"] ? skipReasons.filter((reason) => !flags["may-skip"].includes(reason)) : [];
  if (forbidden.length > 0)
    console.log(`\nWhat failed:\n  nothing may be skipped here because of: ${forbidden.join("; ")}`);
  return passed && forbidden.length === 0 && !interrupted.signal.aborted;
}

function testFiles(filters: readonly string[]): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".test.ts") && !/(^|[\\/])(node_modules|\.[^\\/]+)[\\/]/.test(path))
    .map((path) => path.split(sep).join("/"))
    .filter((path) => filters.length === 0 || filters.some((filter) => path.includes(filter)))
    .sort();
}

/** The files that each process runs, by the file that it is started with: a list of imports where they are several. */
function writeEntries(processes: readonly string[][], folder: string): Map<string, string[]> {
  return new Map(
    processes.map((files, index) => {
      const paths = files.map((file) => join(root, file));
      const [only = "", ...others] = paths;
      if (others.length === 0) return [only, paths];
      const entry = join(folder, `tests_${index}.mjs`);
      writeFileSync(entry, paths.map((path) => `import ${JSON.stringify(pathToFileURL(path).href)};\n`).join(""));
      return [entry, paths];
    }),
  );
}
