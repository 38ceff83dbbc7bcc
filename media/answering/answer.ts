/**
 * One thing that the agent says: an answer, or a given text. The model streams; each finished clause
 * goes to text to speech at once, and speech is pulled only while there is room to play it. Tools run
 * in between. What happens comes out as one stream of events; what fails or hangs is one of them, and
 * the call goes on.
 */
import type { ModelStage } from "#contracts/voice_agent.ts";
import type { ServerMessageOf } from "#contracts/voice_protocol.ts";
import { createClauseSplitter } from "#providers/clauses.ts";
import type { HistoryItem, LanguageModel, LlmChunk, LlmRequest, Pcm, TextToSpeech } from "#providers/provider.ts";
import type { Moment, TurnTiming } from "../session/turn_timing.ts";
import type { Scheduler } from "../threads/scheduler.ts";
import type { ToolDesk } from "../tools/call_tools.ts";
import { rememberedCall, type ToolCall, type ToolResult } from "../tools/tool.ts";
import { type Clause, ClauseQueue } from "./clause_queue.ts";
import { EventStream } from "./event_stream.ts";
import type { Fillers } from "./fillers.ts";
import { pull, type StageLimits, underOwnSignal } from "./stage_limits.ts";

/** Clauses that may fail to be spoken in a row before speech is taken to be away for this answer. */
const failedClausesMax = 2;

export type AnswerEvent =
  /** The text grew by a clause, which is not heard yet. A filler is no part of what the model says. */
  | { type: "text"; text: string; isFiller?: true }
  /** A clause is about to be spoken: its audio follows, then `clause_done`. */
  | { type: "clause"; text: string }
  | { type: "audio"; pcm: Pcm }
  /** The clause is over. `failed`: speech gave it up, and nobody knows which of its words were in what was spoken. */
  | { type: "clause_done"; failed: boolean }
  /** Its tools run: nothing more is said before they have ended, but a filler. */
  | { type: "tools"; running: boolean }
  /** The agent hangs up when it has been heard. */
  | { type: "leaves" }
  | { type: "too_many_steps"; stepsMax: number }
  | Usage
  | { type: "failed"; stage: ModelStage; cause: unknown };

interface Usage {
  type: "usage";
  prompt: number;
  completion: number;
  cached: number;
}

/** Where an answer waits. */
export interface AnswerGate {
  /** Speech is wanted: false in a text-only call. */
  readonly isSpoken: boolean;
  /** Waits while a barge-in or a lost link holds the answer. */
  mayGoOn(): Promise<void>;
  /** The same, and waits for room in the playout. */
  mayPush(): Promise<void>;
  /** Nobody hears the agent at this moment. */
  isQuiet(): boolean;
}

/** What is asked of the model. */
export interface Reply {
  request: Omit<LlmRequest, "history" | "tools" | "toolChoice">;
  /** Oldest first. Tool results are appended to it. */
  history: HistoryItem[];
  toolStepsMax: number;
}

export interface AnswerPlan {
  turnId: string;
  source: ServerMessageOf<"agent_speech_started">["source"];
  /** Of an answered turn. */
  timing?: TurnTiming;
  /** What is said: the model's reply, or a text. */
  says: Reply | string;
  /** 0, 1, 2 …: the n-th of the call. */
  index: number;
}

export interface AnswerDeps {
  llm: LanguageModel;
  tts: TextToSpeech;
  tools: ToolDesk;
  fillers: Fillers;
  limits: StageLimits;
  scheduler: Scheduler;
}

export class Answer {
  readonly plan: AnswerPlan;
  readonly #deps: AnswerDeps;
  readonly #events = new EventStream<AnswerEvent>();
  readonly #clauses = new ClauseQueue();
  readonly #stop = new AbortController();

  constructor(plan: AnswerPlan, deps: AnswerDeps) {
    this.plan = plan;
    this.#deps = deps;
  }

  /** Ends it where it is: no event follows. */
  stop(): void {
    this.#stop.abort();
    this.#clauses.close();
    this.#events.cancel();
  }

  get isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Runs it. Once. Throws nothing that a stage does. */
  events(gate: AnswerGate): EventStream<AnswerEvent> {
    this.#run(gate).then(
      () => this.#events.end(),
      (cause) => this.#events.end(cause),
    );
    return this.#events;
  }

  async #run(gate: AnswerGate): Promise<void> {
    const speaking = this.#speak(gate);
    try {
      await this.#write(gate);
    } catch (cause) {
      this.#fail("llm", cause);
    } finally {
      this.#clauses.close();
    }
    await speaking;
  }

  #put(event: AnswerEvent): void {
    if (!this.isStopped) this.#events.put(event);
  }

  #fail(stage: ModelStage, cause: unknown): void {
    this.#put({ type: "failed", stage, cause });
  }

  #note(moment: Moment): void {
    this.plan.timing?.note(moment, this.#deps.scheduler.nowMs());
  }

  async #write(gate: AnswerGate): Promise<void> {
    const { says } = this.plan;
    if (typeof says !== "string") {
      await underOwnSignal(this.#stop.signal, (signal) => this.#generate(says, gate, signal));
      return;
    }
    const splitter = createClauseSplitter();
    for (const clause of [...splitter.push(says), ...splitter.flush()]) await this.#putClause({ text: clause });
  }

  /** Asks the model, step by step while it calls tools. After the last step it may call none. */
  async #generate(reply: Reply, gate: AnswerGate, signal: AbortSignal): Promise<void> {
    for (let step = 0; ; step += 1) {
      const isLast = step === reply.toolStepsMax;
      const { said, calls } = await this.#readStep(reply, isLast ? "none" : "auto", gate, signal);
      if (this.isStopped) return;
      if (isLast) this.#put({ type: "too_many_steps", stepsMax: reply.toolStepsMax });
      if (isLast || calls.length === 0) return;
      const results = await this.#runTools(calls, gate, signal);
      const leaving = results.find(({ leaves }) => leaves);
      if (leaving?.farewell) await this.#putClause({ text: leaving.farewell });
      if (leaving) this.#put({ type: "leaves" });
      // What the client wants only remembered is no reason to speak.
      if (leaving || this.isStopped || results.every(({ listens }) => listens)) return;
      if (said.trim()) reply.history.push({ role: "agent", text: said.trim() });
      reply.history.push(...results.map((result, at) => rememberedCall(calls[at] as ToolCall, result)));
    }
  }

  /** One reply of the model, its clauses handed on. @returns its text, and the tools that it calls */
  async #readStep(
    { request, history }: Reply,
    toolChoice: "auto" | "none",
    gate: AnswerGate,
    signal: AbortSignal,
  ): Promise<{ said: string; calls: ToolCall[] }> {
    const { llm, tools, scheduler, limits } = this.#deps;
    const calls: ToolCall[] = [];
    let said = "";
    const splitter = createClauseSplitter();
    this.#note("llm_asked");
    const asked = { ...request, turnId: this.plan.turnId, tools: tools.specs, toolChoice, history: [...history] };
    const stopFilling = this.#fillSilence(gate, []);
    try {
      for await (const chunk of pull(llm.reply(asked, signal), limits.llmMs, signal, scheduler)) {
        stopFilling();
        await gate.mayGoOn();
        if (this.isStopped) return { said, calls: [] };
        if (chunk.kind === "tool_call") calls.push(chunk);
        else if (chunk.kind === "usage") this.#put({ ...usageOf(chunk), type: "usage" });
        else {
          this.#note("llm_first");
          said += chunk.text;
          for (const text of chunk.kind === "text" ? splitter.push(chunk.text) : splitter.flush()) {
            await this.#putClause({ text });
          }
          if (chunk.kind === "audio") await this.#putClause({ text: chunk.text, audio: chunk.audio });
        }
      }
    } finally {
      stopFilling();
    }
    await gate.mayGoOn();
    for (const text of this.isStopped ? [] : splitter.flush()) await this.#putClause({ text });
    return { said, calls };
  }

  /** Runs the calls of one step side by side, and lets the caller know that something goes on. */
  async #runTools(calls: readonly ToolCall[], gate: AnswerGate, signal: AbortSignal): Promise<ToolResult[]> {
    const { tools, scheduler } = this.#deps;
    const { timing } = this.plan;
    const startedMs = scheduler.nowMs();
    this.#put({ type: "tools", running: true });
    const stopFilling = this.#fillSilence(gate, calls);
    try {
      return await Promise.all(calls.map((call) => tools.run(call, signal)));
    } finally {
      stopFilling();
      if (timing) timing.toolMs = (timing.toolMs ?? 0) + scheduler.nowMs() - startedMs;
      this.#put({ type: "tools", running: false });
    }
  }

  /** Says now and then that something goes on: `calls`, or without any the model's own thinking. @returns what ends it */
  #fillSilence(gate: AnswerGate, calls: readonly ToolCall[]): () => void {
    const { scheduler, fillers } = this.#deps;
    return fillers.whileQuiet(scheduler, {
      isQuiet: () => gate.isSpoken && gate.isQuiet(),
      fill: () => this.#putClause({ text: fillers.sayFor(calls), isFiller: true }),
      during: calls.length > 0 ? "tools" : "thinking",
    });
  }

  async #putClause(clause: Clause): Promise<void> {
    this.#note("clause_first");
    this.#put({ type: "text", text: clause.text, ...(clause.isFiller && { isFiller: true }) });
    await this.#clauses.put(clause);
  }

  /** Turns clauses into speech until the queue is closed. One that fails is left out; after some in a row the rest is only text. */
  async #speak(gate: AnswerGate): Promise<void> {
    let isFirst = true;
    let failedInARow = 0;
    for (let clause = await this.#clauses.take(); clause && !this.isStopped; clause = await this.#clauses.take()) {
      if (failedInARow >= failedClausesMax || !gate.isSpoken || !clause.text.trim()) continue;
      await gate.mayPush();
      if (this.isStopped) return;
      this.#put({ type: "clause", text: clause.text });
      let failed = false;
      try {
        await this.#speakClause(clause, isFirst, gate);
      } catch (cause) {
        failed = true;
        this.#fail("tts", cause);
      }
      this.#put({ type: "clause_done", failed });
      failedInARow = failed ? failedInARow + 1 : 0;
      isFirst = false;
    }
  }

  async #speakClause({ text, audio }: Clause, first: boolean, gate: AnswerGate): Promise<void> {
    const { tts, scheduler, limits } = this.#deps;
    const context = { turnId: this.plan.turnId, turnIndex: this.plan.index, first, ...(audio && { audio }) };
    await underOwnSignal(this.#stop.signal, async (signal) => {
      this.#note("tts_asked");
      for await (const pcm of pull(tts.speak(text, context, signal), limits.ttsMs, signal, scheduler)) {
        this.#note("tts_first");
        await gate.mayPush();
        this.#put({ type: "audio", pcm });
        if (this.isStopped) return;
      }
    });
  }
}

function usageOf({ prompt, completion, cached }: Extract<LlmChunk, { kind: "usage" }>): Omit<Usage, "type"> {
  return { prompt, completion, cached };
}
