/**
 * What a test run prints: Node's own spec report, then everything that was skipped with its reason,
 * the slowest files, the run's closing counts, one `# name count` a line, and at the very end what
 * failed, with the first lines of why. Also the verdict: a run without tests, or a file without any,
 * is a failure.
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

/** Lines of an error at the end of the run; the whole stands above, where the test failed. */
const errorLinesShown = 8;

/** Node's reason for a test that a name pattern leaves out. */
const unmatched = "test name does not match pattern";

/** A suite or test that failed only because of one inside or around it, which is told itself. */
const followsFromAnother = new Set(["subtestsFailed", "cancelledByParent"]);

type TestEnd = Extract<TestEvent, { type: "test:pass" | "test:fail" }>;
type Failure = Extract<TestEvent, { type: "test:fail" }>["data"];

/**
 * Prints the run's events to `out` as they come and resolves with the verdict at the end.
 *
 * @param root paths are shown relative to it
 * @param filesOf the test files that each process runs, by the file that it is started with
 */
export async function reportTests(
  events: AsyncIterable<TestEvent>,
  out: NodeJS.WritableStream,
  root: string,
  filesOf: ReadonlyMap<string, readonly string[]>,
): Promise<TestVerdict> {
  const report = new spec();
  report.pipe(out, { end: false });
  const run = new TestRun(root, filesOf);
  for await (const event of events) {
    if (run.note(event)) report.write(event);
  }
  report.end();
  await new Promise((resolve) => report.once("end", resolve));
  for (const line of run.summary()) out.write(`${line}\n`);
  return run.verdict();
}

/** What has happened so far. */
class TestRun {
  readonly #root: string;
  readonly #filesOf: ReadonlyMap<string, readonly string[]>;
  readonly #counts = new Map<string, number>();
  readonly #msOf = new Map<string, number>();
  readonly #skipped: string[] = [];
  readonly #skipReasons = new Set<string>();
  readonly #failed: string[] = [];
  readonly #tested = new Set<string>();
  /** Processes that Node counts as a test, because it found none in them or because they ended badly. */
  readonly #processesPassed = new Set<string>();
  readonly #processesFailed = new Set<string>();
  /** The names around the test that is told next, outermost first. */
  readonly #names: string[] = [];
  /** What began and has not ended, in the order of its begin, by file, place and name. */
  readonly #running = new Map<string, TestPlace>();

  constructor(root: string, filesOf: ReadonlyMap<string, readonly string[]>) {
    this.#root = root;
    this.#filesOf = filesOf;
  }

  /** @returns whether the event is to be shown: closing counts come at the end */
  note(event: TestEvent): boolean {
    if (event.type === "test:diagnostic" && event.data.nesting === 0) {
      const [name = "", count] = event.data.message.split(" ");
      if (countNames.has(name)) this.#counts.set(name, Number(count));
      return !countNames.has(name);
    }
    if (event.type === "test:dequeue") this.#running.set(placeKey(event.data), event.data);
    if (event.type === "test:complete") this.#running.delete(placeKey(event.data));
    if (event.type === "test:start") this.#names.splice(event.data.nesting, Number.POSITIVE_INFINITY, event.data.name);
    if (event.type === "test:pass" || event.type === "test:fail") this.#noteEnd(event);
    return true;
  }

  #noteEnd(event: TestEnd): void {
    const { name, file = "", nesting, details } = event.data;
    if (this.#filesOf.has(name)) {
      if (event.type === "test:pass") this.#processesPassed.add(name);
      else this.#noteFailedProcess(event.data);
      return;
    }
    this.#tested.add(file);
    if (nesting === 0) this.#msOf.set(file, (this.#msOf.get(file) ?? 0) + details.duration_ms);
    if (event.type === "test:fail") this.#noteFailure(event.data);
    else if (event.data.skip !== undefined && event.data.skip !== false) this.#noteSkip(event.data);
  }

  #noteSkip({ name, file, skip }: TestEnd["data"]): void {
    if (skip === unmatched) return;
    const reason = typeof skip === "string" && skip ? skip : "no reason given";
    this.#skipReasons.add(reason);
    this.#skipped.push(`${this.#relative(file)}: ${name}: ${reason}`);
  }

  #noteFailure(test: Failure): void {
    if (followsFromAnother.has(failureType(test))) return;
    const name = [...this.#names.slice(0, test.nesting), test.name].join(" › ");
    this.#failed.push(`${this.#relative(test.file)}: ${name}`, ...firstLines(test.details.error));
  }

  #noteFailedProcess(test: Failure): void {
    const files = this.#filesOf.get(test.name) ?? [];
    this.#processesFailed.add(test.name);
    this.#failed.push(
      `the process of ${files.map((file) => this.#relative(file)).join(", ")}`,
      ...firstLines(test.details.error),
    );
    const running = [...this.#running.values()].filter(({ file = "", name }) => files.includes(file) && name !== file);
    for (const { file, name } of running) this.#failed.push(`    had not ended: ${this.#relative(file)}: ${name}`);
    const untold = files.filter((file) => !this.#tested.has(file) && running.every((test) => test.file !== file));
    if (untold.length > 0)
      this.#failed.push(`    did not come to: ${untold.map((file) => this.#relative(file)).join(", ")}`);
  }

  /** Files in which no test was found, though their process ended well. */
  #emptyFiles(): string[] {
    const ended = [...this.#filesOf].filter(([entry]) => !this.#processesFailed.has(entry));
    return ended.flatMap(([, files]) => files.filter((file) => !this.#tested.has(file)));
  }

  *summary(): Generator<string> {
    if (this.#skipped.length > 0) yield `\nSkipped, with the reason (${this.#skipped.length}):`;
    for (const line of this.#skipped) yield `  ${line}`;
    if (this.#msOf.size > slowestShown) {
      yield "\nThe slowest files, in seconds:";
      const slowest = [...this.#msOf].sort(([, a], [, b]) => b - a).slice(0, slowestShown);
      for (const [file, ms] of slowest) yield `${(ms / 1000).toFixed(1).padStart(7)} ${this.#relative(file)}`;
    }
    yield "";
    for (const [name, count] of this.#counts) yield `# ${name} ${count}`;
    const failed = [...this.#failed, ...this.#emptyFiles().map((file) => `no test in ${this.#relative(file)}`)];
    if (failed.length > 0) yield "\nWhat failed:";
    for (const line of failed) yield `  ${line}`;
  }

  verdict(): TestVerdict {
    const count = (name: string) => this.#counts.get(name) ?? 0;
    const ran = count("tests") - count("skipped") - this.#processesPassed.size;
    const hasFailed = count("fail") > 0 || count("cancelled") > 0 || this.#failed.length > 0;
    const passed = ran > 0 && this.#emptyFiles().length === 0 && !hasFailed;
    return { passed, skipReasons: [...this.#skipReasons] };
  }

  #relative(file: string | undefined): string {
    return file ? relative(this.#root, file) : "";
  }
}

interface TestPlace {
  name: string;
  nesting: number;
  file?: string;
  line?: number;
  column?: number;
}

function placeKey({ file, line, column, nesting, name }: TestPlace): string {
  return [file, line, column, nesting, name].join("\n");
}

function failureType({ details }: Failure): string {
  return "failureType" in details.error ? String(details.error.failureType) : "";
}

/** Of what a test threw, which Node wraps; without Node's own frames. */
function firstLines(error: Error): string[] {
  const cause = error.cause instanceof Error ? error.cause : error;
  const lines = (cause.stack || String(cause))
    .split("\n")
    .filter((line) => line.trim() !== "" && !/\(node:/.test(line));
  return lines.slice(0, errorLinesShown).map((line) => `    ${line}`);
}
