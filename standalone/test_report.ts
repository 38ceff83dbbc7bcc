/**
 * What a test run prints: Node's own spec report, then everything that was skipped with its reason,
 * then the run's closing counts, one `# name count` a line. Also the verdict: a run without tests, or
 * a file without any, is a failure.
 */
import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";
import { spec } from "node:test/reporters";

export interface TestVerdict {
  passed: boolean;
  /** Why tests were skipped, each reason once. */
  skipReasons: string[];
}

const countNames = new Set(["tests", "suites", "pass", "fail", "cancelled", "skipped", "todo", "duration_ms"]);

/** Files named at the end because they took longest: what a budget is spent on. */
const slowestShown = 15;

/** Node's reason for a test that a name pattern leaves out. */
const unmatched = "test name does not match pattern";

/** Prints the run's events to `out` as they come and resolves with the verdict at the end. */
export async function reportTests(
  events: AsyncIterable<TestEvent>,
  out: NodeJS.WritableStream,
  root: string,
): Promise<TestVerdict> {
  const report = new spec();
  report.pipe(out, { end: false });
  const skipped: string[] = [];
  const skipReasons = new Set<string>();
  const empty: string[] = [];
  const counts = new Map<string, number>();
  const msOf = new Map<string, number>();
  for await (const event of events) {
    if (event.type === "test:diagnostic" && event.data.nesting === 0) {
      const [name = "", count] = event.data.message.split(" ");
      if (countNames.has(name)) {
        counts.set(name, Number(count));
        continue;
      }
    }
    if ((event.type === "test:pass" || event.type === "test:fail") && event.data.nesting === 0 && event.data.file) {
      const { file, details } = event.data;
      msOf.set(file, (msOf.get(file) ?? 0) + details.duration_ms);
    }
    if (event.type === "test:pass") {
      const { name, file, skip } = event.data;
      const where = file ? relative(root, file) : "";
      if (skip !== undefined && skip !== false && skip !== unmatched) {
        const reason = typeof skip === "string" && skip ? skip : "no reason given";
        skipReasons.add(reason);
        skipped.push(`${where}: ${name}: ${reason}`);
      }
      // Node counts a file in which it found no test as one test that passed, named as the file.
      if (/\.test\.ts$/.test(name)) empty.push(relative(root, name));
    }
    report.write(event);
  }
  report.end();
  await new Promise((resolve) => report.once("end", resolve));

  for (const file of empty) out.write(`No test in ${file}\n`);
  if (skipped.length > 0) out.write(`\nSkipped, with the reason (${skipped.length}):\n`);
  for (const line of skipped) out.write(`  ${line}\n`);
  const slowest = [...msOf].sort(([, a], [, b]) => b - a).slice(0, slowestShown);
  if (msOf.size > slowestShown) out.write("\nThe slowest files, in seconds:\n");
  if (msOf.size > slowestShown)
    for (const [file, ms] of slowest) out.write(`${(ms / 1000).toFixed(1).padStart(7)} ${relative(root, file)}\n`);
  out.write("\n");
  for (const [name, count] of counts) out.write(`# ${name} ${count}\n`);

  const count = (name: string) => counts.get(name) ?? 0;
  const ran = count("tests") - count("skipped") - empty.length;
  const passed = ran > 0 && empty.length === 0 && count("fail") === 0 && count("cancelled") === 0;
  return { passed, skipReasons: [...skipReasons] };
}
