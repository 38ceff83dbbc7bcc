import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, it } from "node:test";
import type { TestEvent } from "node:test/reporters";
import { reportTests } from "./test_report.ts";

const processes = new Map([
  ["/tmp/tests_0.mjs", ["/house/a.test.ts", "/house/b.test.ts"]],
  ["/house/c.test.ts", ["/house/c.test.ts"]],
]);

/** What Node tells of a run, as far as the report reads it. */
function events(...told: [type: string, data: object][]): AsyncIterable<TestEvent> {
  const counts = ["tests 3", "fail 0", "cancelled 0", "skipped 0"];
  const closing = counts.map((message) => ["test:diagnostic", { nesting: 0, message }] as const);
  return (async function* () {
    for (const [type, data] of [...told, ...closing]) yield { type, data } as TestEvent;
  })();
}

const at = (file: string, name: string, nesting = 0) => ({ file: `/house/${file}.test.ts`, name, nesting });
const passed = (file: string) =>
  ["test:pass", { ...at(file, "passes"), testNumber: 1, details: { duration_ms: 1 } }] as [string, object];
const failed = (place: object, failureType: string, error: Error) =>
  [
    "test:fail",
    {
      ...place,
      testNumber: 1,
      details: { duration_ms: 1, error: Object.assign(new Error("wrapped", { cause: error }), { failureType }) },
    },
  ] as [string, object];

async function report(told: AsyncIterable<TestEvent>) {
  const out = new PassThrough();
  const printed = text(out);
  const verdict = await reportTests(told, out, "/house", processes);
  out.end();
  return { ...verdict, closing: (await printed).split("# skipped 0\n")[1] };
}

describe("the report of a test run", () => {
  it("passes when each file has a test that passed, and ends with the counts", async () => {
    const { passed: isGreen, closing } = await report(events(passed("a"), passed("b"), passed("c")));
    assert.deepEqual([isGreen, closing], [true, ""]);
  });

  it("fails for a file in which there is no test, also where others of its process have some", async () => {
    const one = await report(events(passed("a"), passed("c")));
    assert.deepEqual([one.passed, one.closing], [false, "\nWhat failed:\n  no test in b.test.ts\n"]);
    const whole: [string, object] = ["test:pass", { ...at("c", "/house/c.test.ts"), details: { duration_ms: 1 } }];
    assert.equal((await report(events(passed("a"), passed("b"), whole))).passed, false);
  });

  it("ends with each test that failed: its file, the names around it and what it threw; not what follows from it", async () => {
    const error = Object.assign(new Error(), {
      stack: Array.from({ length: 20 }, (_, i) => `line ${i}`).join("\n    at x (node:y)\n"),
    });
    const { passed: isGreen, closing = "" } = await report(
      events(
        ["test:start", at("a", "a refund")],
        ["test:start", at("a", "is whole", 1)],
        failed(at("a", "is whole", 1), "testCodeFailure", error),
        failed(at("a", "is late", 1), "cancelledByParent", error),
        failed(at("a", "a refund"), "subtestsFailed", error),
        passed("b"),
        passed("c"),
      ),
    );
    assert.equal(isGreen, false);
    const lines = Array.from({ length: 8 }, (_, i) => `      line ${i}\n`).join("");
    assert.equal(closing, `\nWhat failed:\n  a.test.ts: a refund › is whole\n${lines}`);
  });

  it("says what had begun and not ended in a process that was ended, and what it did not come to", async () => {
    const { closing = "" } = await report(
      events(
        ["test:dequeue", at("a", "a refund")],
        ["test:dequeue", at("a", "is whole", 1)],
        ["test:complete", { ...at("a", "is whole", 1), details: { duration_ms: 1 } }],
        ["test:dequeue", at("a", "never answers", 1)],
        failed({ name: "/tmp/tests_0.mjs", nesting: 0 }, "testTimeoutFailure", new Error("timed out")),
        passed("c"),
      ),
    );
    assert.match(closing, /^ {2}the process of a\.test\.ts, b\.test\.ts\n {6}Error: timed out\n/m);
    assert.deepEqual(closing.match(/^ *(had not ended|did not come to).*$/gm), [
      "      had not ended: a.test.ts: a refund",
      "      had not ended: a.test.ts: never answers",
      "      did not come to: b.test.ts",
    ]);
  });
});
