/**
 * The tools of one call, and those that run. Calls of one step run side by side; each has a time-out,
 * a bound on its result and an end with the call. Equal calls share one run, until the caller has heard
 * an answer: a model that was interrupted asks again.
 */
import { setMaxListeners } from "node:events";
import type { ToolSpec } from "#providers/provider.ts";
import type { Scheduler } from "../threads/scheduler.ts";
import { unlessAborted } from "../threads/unless_aborted.ts";
import {
  type AbortReason,
  boundedText,
  type Tool,
  type ToolCall,
  ToolError,
  type ToolPolicy,
  type ToolProgress,
  type ToolResult,
  type ToolSource,
} from "./tool.ts";

/** How a run ended, as `tool_event` names it. */
export type ToolPhase = "completed" | "failed" | "timeout" | "cancelled";

export interface ToolOutcome {
  phase: ToolPhase;
  result: ToolResult;
  durationMs: number;
}

/** Who asked for what, and when. `taskId` once it goes on by itself. */
export interface AskedTool {
  call: ToolCall;
  source: ToolSource;
  startedMs: number;
  /** Undefined where there is no such tool. */
  policy?: ToolPolicy;
  taskId?: string;
  /** Of an app, once it runs. */
  runId?: string;
}

/** Hears of every call of a tool, in order; `ended` once for each `started`. */
export interface ToolListener {
  started(asked: AskedTool): void;
  progress(asked: AskedTool, update: ToolProgress): void;
  ended(asked: AskedTool, outcome: ToolOutcome): void;
  /** The model was answered that it goes on by itself; `ended` follows. */
  goesOn(asked: AskedTool, result: ToolResult): void;
  /** How many go on by themselves now. */
  tasks(running: number): void;
  /** It failed in a way that is no `ToolError`: for the log. */
  fault(cause: unknown): void;
}

/** What an answer needs of the tools. */
export interface ToolDesk {
  readonly specs: readonly ToolSpec[];
  /** Answers the model's call. A failure is a result; it gives up waiting when `signal` is aborted. */
  run(call: ToolCall, signal: AbortSignal): Promise<ToolResult>;
}

export interface Task {
  id: string;
  name: string;
  startedMs: number;
}

interface Run {
  readonly tool: Tool;
  readonly abort: AbortController;
  readonly outcome: Promise<ToolOutcome>;
  /** Tells how it ended, once. */
  end(ended: Omit<ToolOutcome, "durationMs">): ToolOutcome;
  isOver: boolean;
  task?: Task;
}

/** More wait for their turn. */
export const runningMax = 8;
/** More are refused. */
export const tasksMax = 8;
const unconfirmed =
  "not_confirmed: tell the caller what would be done and ask for a yes; call this again when the caller has said it";
/** Runs whose answers nobody has heard yet. */
const keptRunsMax = 64;

export class CallTools implements ToolDesk {
  readonly #tools = new Map<string, Tool>();
  readonly #runs = new Map<string, Run>();
  readonly #tasks = new Map<string, Run>();
  readonly #live = new Set<Run>();
  readonly #waiting: (() => void)[] = [];
  readonly #ids = new Set<string>();
  readonly #scheduler: Scheduler;
  readonly #listener: ToolListener;
  readonly #hasYes: () => boolean;
  #running = 0;
  #taskCount = 0;
  #isClosed = false;

  /** `hasYes`: whether the caller's last turn was a yes, and nobody has spoken since. */
  constructor(scheduler: Scheduler, listener: ToolListener, hasYes: () => boolean = () => false) {
    this.#scheduler = scheduler;
    this.#listener = listener;
    this.#hasYes = hasYes;
  }

  /** Offers more tools, from the next request to the model on. A name that is taken is not replaced. */
  add(tools: readonly Tool[]): void {
    for (const tool of tools) if (!this.#tools.has(tool.spec.name)) this.#tools.set(tool.spec.name, tool);
  }

  has(name: string): boolean {
    return this.#tools.has(name);
  }

  get size(): number {
    return this.#tools.size;
  }

  get specs(): readonly ToolSpec[] {
    return [...this.#tools.values()].map(({ spec }) => spec);
  }

  get tasks(): readonly Task[] {
    return [...this.#tasks.values()].flatMap(({ task }) => task ?? []);
  }

  /** @returns false where no such task runs */
  cancelTask(taskId: string): boolean {
    const run = this.#tasks.get(taskId);
    run?.abort.abort("interrupted" satisfies AbortReason);
    return run !== undefined;
  }

  async run(asks: ToolCall, signal: AbortSignal): Promise<ToolResult> {
    const call = { ...asks, id: this.#freshId(asks.id) };
    const tool = this.#tools.get(call.name);
    const asked = this.#asked(call, tool);
    if (!tool)
      return this.#refuse(asked, { text: `Tool ${call.name} is not available`, isError: true, isMissing: true });
    const problem = call.problem ?? tool.problemOf?.(call.arguments);
    if (problem) return this.#refuse(asked, { text: `invalid_arguments: ${problem}`, isError: true });
    const key = `${call.name} ${canonical(call.arguments)}`;
    const equal = tool.policy.runsAgain ? undefined : this.#runs.get(key);
    if (equal) return this.#follow(asked, equal, signal);
    if (tool.policy.longRunning && this.#tasks.size >= tasksMax) {
      return this.#refuse(asked, { text: `Expected at most ${tasksMax} tasks at a time`, isError: true });
    }
    if (tool.policy.needsYes && !this.#hasYes()) return this.#refuse(asked, { text: unconfirmed, isError: true });
    const run = this.#begin(asked, tool);
    if (!tool.policy.runsAgain) this.#keep(key, run);
    if (run.task) return startedResult(run.task);
    return this.#wait(run, signal);
  }

  /** The caller heard an answer to its end: who asks for the same again, wants it again. */
  answerHeard(): void {
    for (const [key, run] of this.#runs) if (run.isOver) this.#runs.delete(key);
  }

  /** The call is over: everything that runs is aborted, and told to have ended before this returns. */
  close(): void {
    this.#isClosed = true;
    for (const run of this.#live) {
      run.abort.abort("call_ended" satisfies AbortReason);
      run.end(abortedOutcome("call_ended"));
    }
  }

  /** Some servers number the calls of each answer anew: what goes by the id would take two calls for one. */
  #freshId(given: string): string {
    let id = given;
    for (let n = 2; this.#ids.has(id); n += 1) id = `${given}_${n}`;
    this.#ids.add(id);
    return id;
  }

  #asked(call: ToolCall, tool: Tool | undefined): AskedTool {
    const startedMs = this.#scheduler.nowMs();
    return tool
      ? { call, source: tool.source, policy: tool.policy, startedMs }
      : { call, source: "builtin", startedMs };
  }

  #refuse(asked: AskedTool, result: ToolResult): ToolResult {
    this.#listener.started(asked);
    this.#listener.ended(asked, { phase: "failed", result, durationMs: 0 });
    return result;
  }

  /** An equal call was made already: its result is this one's too. */
  async #follow(asked: AskedTool, run: Run, signal: AbortSignal): Promise<ToolResult> {
    this.#listener.started(asked);
    const result = run.task && !run.isOver ? startedResult(run.task) : await this.#wait(run, signal);
    const durationMs = this.#scheduler.nowMs() - asked.startedMs;
    this.#listener.ended(asked, { phase: result.isError ? "failed" : "completed", result, durationMs });
    return result;
  }

  #keep(key: string, run: Run): void {
    this.#runs.set(key, run);
    const [oldest] = this.#runs.keys();
    if (this.#runs.size > keptRunsMax && oldest !== undefined) this.#runs.delete(oldest);
    // What failed may be tried again.
    void run.outcome.then(({ result }) => {
      if (result.isError && this.#runs.get(key) === run) this.#runs.delete(key);
    });
  }

  #begin(asked: AskedTool, tool: Tool): Run {
    const abort = new AbortController();
    this.#listener.started(asked);
    const task = tool.policy.longRunning ? this.#newTask(asked.call.name, asked.startedMs) : undefined;
    const reported = task ? { ...asked, taskId: task.id } : asked;
    if (task) this.#listener.goesOn(reported, startedResult(task));
    const end: Run["end"] = (ended) => {
      const outcome = { ...ended, durationMs: this.#scheduler.nowMs() - asked.startedMs };
      if (run.isOver) return outcome;
      run.isOver = true;
      this.#live.delete(run);
      if (task) this.#tasks.delete(task.id);
      this.#listener.ended(reported, outcome);
      if (task) this.#listener.tasks(this.#tasks.size);
      return outcome;
    };
    const outcome = this.#execute(reported, tool, abort).then(end);
    const run: Run = { tool, abort, outcome, end, isOver: false, ...(task && { task }) };
    this.#live.add(run);
    if (this.#isClosed) abort.abort("call_ended" satisfies AbortReason);
    if (task) {
      this.#tasks.set(task.id, run);
      this.#listener.tasks(this.#tasks.size);
    }
    return run;
  }

  #newTask(name: string, startedMs: number): Task {
    this.#taskCount += 1;
    return { id: `task_${this.#taskCount}`, name, startedMs };
  }

  async #execute(asked: AskedTool, tool: Tool, abort: AbortController): Promise<Omit<ToolOutcome, "durationMs">> {
    const { signal } = abort;
    const isTask = asked.taskId !== undefined;
    if (!isTask) await this.#takePlace();
    const stopClock = this.#scheduler.after(tool.policy.timeoutMs, () => abort.abort("timeout" satisfies AbortReason));
    try {
      const context = {
        toolCallId: asked.call.id,
        signal,
        progress: (update: ToolProgress) => {
          if (update.runId !== undefined) asked.runId = update.runId;
          if (!signal.aborted) this.#listener.progress(asked, update);
        },
      };
      const result = await unlessAborted(tool.run(asked.call.arguments, context), signal);
      const text = boundedText(result.text);
      return { phase: result.isError ? "failed" : "completed", result: { ...result, text } };
    } catch (cause) {
      if (signal.aborted) return abortedOutcome(signal.reason as AbortReason);
      if (!(cause instanceof ToolError)) this.#listener.fault(cause);
      return failedOutcome(cause);
    } finally {
      stopClock();
      if (!isTask) this.#leavePlace();
    }
  }

  async #takePlace(): Promise<void> {
    if (this.#running >= runningMax) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
  }

  /** Whoever waits longest has the place next. */
  #leavePlace(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#running -= 1;
  }

  /** The run's result, or that nobody waits for it any more. */
  async #wait(run: Run, signal: AbortSignal): Promise<ToolResult> {
    const { onInterrupt } = run.tool.policy;
    // Each call of a step listens, and a step may have many.
    setMaxListeners(0, signal);
    try {
      return (await unlessAborted(run.outcome, signal)).result;
    } catch {
      if (onInterrupt === "cancel") run.abort.abort("interrupted" satisfies AbortReason);
      return abortedOutcome("interrupted").result;
    }
  }
}

function startedResult({ id }: Task): ToolResult {
  return { text: JSON.stringify({ status: "started", task_id: id }), isError: false };
}

function abortedOutcome(reason: AbortReason): Omit<ToolOutcome, "durationMs"> {
  const error = reason === "timeout" ? "timeout" : "cancelled";
  return { phase: error, result: { text: JSON.stringify({ error }), isError: true } };
}

function failedOutcome(cause: unknown): Omit<ToolOutcome, "durationMs"> {
  const text = cause instanceof ToolError ? boundedText(cause.message) : "The tool failed";
  return { phase: "failed", result: { text, isError: true } };
}

/** JSON with the keys of every object in order: equal arguments are equal texts. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner) =>
    inner !== null && typeof inner === "object" && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
