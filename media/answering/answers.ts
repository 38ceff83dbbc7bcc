/** What the agent says next: makes the answer to a turn, or one of a given text. */
import type { CallConfig } from "#contracts/voice_agent.ts";
import type { CallLog } from "../session/call_log.ts";
import { type CallerTurns, turnId } from "../session/caller_turns.ts";
import type { TurnTiming } from "../session/turn_timing.ts";
import type { Job, TurnInput } from "../session/turns.ts";
import { AnswerAhead } from "./ahead.ts";
import { Answer, type AnswerDeps, type AnswerPlan, type Reply } from "./answer.ts";

export class Answers {
  readonly #config: CallConfig;
  readonly #deps: AnswerDeps;
  readonly #callerTurns: CallerTurns;
  readonly #log: CallLog;
  readonly #ahead: AnswerAhead;
  #newest: AnswerPlan | undefined;
  #replies = 0;
  #answers = 0;

  constructor(config: CallConfig, deps: AnswerDeps, callerTurns: CallerTurns, log: CallLog) {
    this.#config = config;
    this.#ahead = new AnswerAhead(deps, {
      hit: () => {
        if (this.#newest?.timing) this.#newest.timing.preemptiveHit = true;
      },
      wasted: ({ prompt, completion, cached, characters }) =>
        log.count((usage) => {
          usage.llm.prompt += prompt;
          usage.llm.completion += completion;
          usage.llm.cached += cached;
          usage.tts_characters += characters;
        }),
    });
    this.#deps = { ...deps, llm: this.#ahead.llm, tts: this.#ahead.tts };
    this.#callerTurns = callerTurns;
    this.#log = log;
  }

  /** The model's answer to a turn of the caller. */
  toTurn({ turn, input }: Extract<Job, { is: "reply" }>): Answer {
    const isSpoken = input.kind === "speech";
    const timing = this.#takeInput(turn, input);
    const request = this.#request(input.kind, isSpoken && !this.#callerTurns.recognizes);
    this.#replies += 1;
    const history = this.#log.historyForRequest();
    const says = { request, history, toolStepsMax: this.#config.advanced.max_tool_steps };
    const plan = { turnId: turnId(turn), source: "model", says, index: this.#nextIndex() } as const;
    this.#newest = { ...plan, ...(timing && { timing }) };
    return new Answer(this.#newest, this.#deps);
  }

  #request(inputKind: TurnInput["kind"], unrecognized: boolean): Reply["request"] {
    return { instructions: this.#config.instructions, turnIndex: this.#replies, inputKind, unrecognized };
  }

  /** The caller seems to have finished with `text`: the answer to it is made, and kept until the turn is over. */
  askAhead(turn: number, text: string): void {
    const id = turnId(turn);
    const history = [...this.#log.historyForRequest(), { role: "user" as const, text }];
    const { specs: tools } = this.#deps.tools;
    const request = { ...this.#request("speech", false), turnId: id, tools, toolChoice: "auto" as const, history };
    this.#ahead.ask(request, { turnId: id, turnIndex: this.#answers, first: true });
  }

  /** The caller went on, or said nothing to be answered. */
  forgetAhead(): void {
    this.#ahead.drop();
  }

  /** A task's turn has no words of the caller. */
  #takeInput(turn: number, input: TurnInput): TurnTiming | undefined {
    if (input.kind === "task") return undefined;
    return input.kind === "speech" ? this.#callerTurns.takeSpoken(turn) : this.#callerTurns.takeTyped(turn, input.text);
  }

  /** A given text, said in the newest turn. */
  ofText({ text, source }: Extract<Job, { is: "say" }>, turn: number): Answer {
    return new Answer({ turnId: turnId(turn), source, says: text, index: this.#nextIndex() }, this.#deps);
  }

  #nextIndex(): number {
    const index = this.#answers;
    this.#answers += 1;
    return index;
  }
}
