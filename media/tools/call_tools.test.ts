import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualClock } from "#test/kit/virtual_clock.ts";
import { CallTools, runningMax, type ToolListener } from "./call_tools.ts";
import { resultBytesMax, type Tool, type ToolCall, type ToolContext, ToolError, type ToolPolicy } from "./tool.ts";

const policy: ToolPolicy = { timeoutMs: 2000, longRunning: false, onInterrupt: "cancel" };

function toolOf(run: Tool["run"], over: Partial<ToolPolicy> = {}, name = "look_up"): Tool {
  return {
    spec: { name, description: "", parameters: {} },
    source: "http",
    policy: { ...policy, ...over },
    problemOf: ({ guests }) => (typeof guests === "string" ? "/guests must be integer" : undefined),
    run,
  };
}

const callOf = (id: string, given: Record<string, unknown> = {}, name = "look_up"): ToolCall => ({
  kind: "tool_call",
  id,
  name,
  arguments: given,
});

/** Tools of a call, and in short what was told of them. */
function toolsOf(...tools: Tool[]) {
  const clock = new VirtualClock();
  const told: string[] = [];
  const listener: ToolListener = {
    started: ({ call }) => told.push(`${call.id} started`),
    progress: ({ call }, { text }) => told.push(`${call.id} ${text}`),
    ended: ({ call, taskId }, { phase }) => told.push(`${taskId ?? call.id} ${phase}`),
    goesOn: ({ taskId }) => told.push(`${taskId} goes on`),
    tasks: (running) => told.push(`${running} tasks`),
    fault: () => told.push("fault"),
  };
  const desk = new CallTools(clock, listener);
  desk.add(tools);
  return { desk, clock, told };
}

const never = new AbortController().signal;
const hanging = () => new Promise<never>(() => {});

describe("the tools of a call", () => {
  it("answer with a result, and tell of it", async () => {
    const { desk, told } = toolsOf(toolOf(async ({ day }) => ({ text: `sunny on ${day}`, isError: false })));
    assert.deepEqual(await desk.run(callOf("c1", { day: 1 }), never), { text: "sunny on 1", isError: false });
    assert.deepEqual(told, ["c1 started", "c1 completed"]);
  });

  it("fail in words for the model, and not in ours", async () => {
    const { desk, told } = toolsOf(
      toolOf(async ({ own }) => {
        throw own ? new ToolError("No such stay") : new Error("at /home/us/secret.ts");
      }),
    );
    assert.deepEqual(await desk.run(callOf("c1", { own: true }), never), { text: "No such stay", isError: true });
    assert.deepEqual(await desk.run(callOf("c2"), never), { text: "The tool failed", isError: true });
    assert.deepEqual(told, ["c1 started", "c1 failed", "c2 started", "fault", "c2 failed"]);
  });

  it("tell the model of arguments that do not fit or could not be read, and run nothing", async () => {
    let runs = 0;
    const { desk } = toolsOf(toolOf(async () => ({ text: String(++runs), isError: false })));
    const misfit = await desk.run(callOf("c1", { guests: "two" }), never);
    assert.deepEqual(misfit, { text: "invalid_arguments: /guests must be integer", isError: true });
    const unread = await desk.run({ ...callOf("c2"), problem: "expected a JSON object as arguments" }, never);
    assert.deepEqual(unread, { text: "invalid_arguments: expected a JSON object as arguments", isError: true });
    assert.match((await desk.run(callOf("c3", {}, "fly"), never)).text, /fly is not available/);
    assert.equal(runs, 0);
  });

  it("are given up when they hang, their signal aborted", async () => {
    let reason: unknown;
    const { desk, clock, told } = toolsOf(
      toolOf((_, { signal }) => {
        signal.addEventListener("abort", () => (reason = signal.reason));
        return hanging();
      }),
    );
    const result = desk.run(callOf("c1"), never);
    await clock.advance(2100);
    assert.deepEqual(await result, { text: '{"error":"timeout"}', isError: true });
    assert.equal(reason, "timeout");
    assert.deepEqual(told, ["c1 started", "c1 timeout"]);
  });

  it("cut a result that is too large", async () => {
    const { desk } = toolsOf(toolOf(async () => ({ text: "ä".repeat(5 * 1024 * 1024), isError: false })));
    const { text } = await desk.run(callOf("c1"), never);
    assert.ok(Buffer.byteLength(text) <= resultBytesMax);
    assert.match(text, /^ä+… \(cut\)$/);
  });

  it("are aborted by an interruption where they may be, and run to their end where not", async () => {
    for (const onInterrupt of ["cancel", "finish"] as const) {
      let finish = () => {};
      const { desk, told, clock } = toolsOf(
        toolOf(() => new Promise((resolve) => (finish = () => resolve({ text: "booked", isError: false }))), {
          onInterrupt,
        }),
      );
      const answer = new AbortController();
      const waiting = desk.run(callOf("c1"), answer.signal);
      await clock.advance(100);
      answer.abort();
      assert.equal((await waiting).text, '{"error":"cancelled"}');
      finish();
      await clock.advance(0);
      assert.deepEqual(told, ["c1 started", onInterrupt === "cancel" ? "c1 cancelled" : "c1 completed"]);
    }
  });

  it("run once for equal calls until an answer was heard, whatever the order of their keys", async () => {
    let runs = 0;
    const { desk, clock } = toolsOf(
      toolOf(
        async () => {
          runs += 1;
          return { text: `run ${runs}`, isError: false };
        },
        { onInterrupt: "finish" },
      ),
    );
    const [first, second] = await Promise.all([
      desk.run(callOf("c1", { a: 1, b: { c: 2, d: 3 } }), never),
      desk.run(callOf("c2", { b: { d: 3, c: 2 }, a: 1 }), never),
    ]);
    assert.equal(runs, 1);
    assert.deepEqual(second, first);
    assert.equal((await desk.run(callOf("c3", { a: 1, b: { c: 2, d: 3 } }), never)).text, "run 1");
    desk.answerHeard();
    await clock.advance(0);
    assert.equal((await desk.run(callOf("c4", { a: 1, b: { c: 2, d: 3 } }), never)).text, "run 2");
  });

  it("run again for equal calls where they are to, side by side too", async () => {
    let runs = 0;
    const { desk } = toolsOf(toolOf(async () => ({ text: `run ${++runs}`, isError: false }), { runsAgain: true }));
    const results = await Promise.all([desk.run(callOf("c1"), never), desk.run(callOf("c2"), never)]);
    results.push(await desk.run(callOf("c3"), never));
    assert.deepEqual(
      results.map(({ text }) => text),
      ["run 1", "run 2", "run 3"],
    );
  });

  it("are told apart where the model's server numbers the calls of each answer anew", async () => {
    const asked: string[] = [];
    const { desk, told } = toolsOf(
      toolOf(async (_, { toolCallId }) => {
        asked.push(toolCallId);
        return { text: "fine", isError: false };
      }),
    );
    for (const n of [1, 2, 3]) await desk.run(callOf("call_0", { n }), never);
    assert.deepEqual(asked, ["call_0", "call_0_2", "call_0_3"]);
    assert.equal(told.at(-1), "call_0_3 completed");
  });

  it("may be called again after a failure", async () => {
    let runs = 0;
    const { desk } = toolsOf(
      toolOf(async () => {
        runs += 1;
        if (runs === 1) throw new ToolError("busy");
        return { text: "fine", isError: false };
      }),
    );
    assert.equal((await desk.run(callOf("c1"), never)).text, "busy");
    assert.equal((await desk.run(callOf("c2"), never)).text, "fine");
  });

  it("run eight at a time; the others wait their turn", async () => {
    let running = 0;
    let most = 0;
    const finish: (() => void)[] = [];
    const { desk, clock } = toolsOf(
      toolOf(async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise<void>((resolve) => finish.push(resolve));
        running -= 1;
        return { text: "", isError: false };
      }),
    );
    const all = Array.from({ length: 12 }, (_, n) => desk.run(callOf(`c${n}`, { n }), never));
    for (let left = 12; left > 0; left -= 1) {
      await clock.advance(0);
      finish.shift()?.();
    }
    await Promise.all(all);
    assert.equal(most, runningMax);
  });

  it("go on by themselves where they take long: the model is answered at once, and can be told of them", async () => {
    let context: ToolContext | undefined;
    let finish = (_: string) => {};
    const { desk, told, clock } = toolsOf(
      toolOf(
        (_, given) => {
          context = given;
          return new Promise((resolve) => (finish = (text) => resolve({ text, isError: false })));
        },
        { longRunning: true, timeoutMs: 600_000 },
      ),
    );
    const started = await desk.run(callOf("c1"), never);
    assert.deepEqual(started, { text: '{"status":"started","task_id":"task_1"}', isError: false });
    assert.deepEqual(
      desk.tasks.map(({ id, name }) => `${id} ${name}`),
      ["task_1 look_up"],
    );
    assert.equal((await desk.run(callOf("c2"), never)).text, started.text, "the same again is the same task");
    context?.progress({ text: "half" });
    await clock.advance(5000);
    finish("done");
    await clock.advance(0);
    assert.deepEqual(told, [
      "c1 started",
      "task_1 goes on",
      "1 tasks",
      "c2 started",
      "c2 completed",
      "c1 half",
      "task_1 completed",
      "0 tasks",
    ]);
    assert.equal(desk.cancelTask("task_1"), false);
  });

  it("that go on can be cancelled, and end with the call", async () => {
    const reasons: unknown[] = [];
    const { desk, told, clock } = toolsOf(
      toolOf(
        (_, { signal }) => {
          signal.addEventListener("abort", () => reasons.push(signal.reason));
          return hanging();
        },
        { longRunning: true, timeoutMs: 600_000 },
      ),
    );
    await desk.run(callOf("c1", { n: 1 }), never);
    await desk.run(callOf("c2", { n: 2 }), never);
    assert.equal(desk.cancelTask("task_1"), true);
    await clock.advance(0);
    desk.close();
    assert.equal(told.at(-2), "task_2 cancelled", "told before the call is over");
    assert.deepEqual(reasons, ["interrupted", "call_ended"]);
    assert.deepEqual(
      told.filter((line) => line.endsWith("cancelled")),
      ["task_1 cancelled", "task_2 cancelled"],
    );
  });
});
