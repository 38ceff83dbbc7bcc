/** What the agent says next: makes the answer to a turn, or one of a given text. */
import type { CallConfig } from "#contracts/voice_agent.ts";
import type { CallLog } from "../session/call_log.ts";
import { type CallerTurns, turnId } from "../session/caller_turns.ts";
import type { TurnTiming } from "../session/turn_timing.ts";
import type { Job, TurnInput } from "../session/turns.ts";
import { Answer, type AnswerDeps } from "./answer.ts";

export class Answers {
  readonly #config: CallConfig;
  readonly #deps: AnswerDeps;
  readonly #callerTurns: CallerTurns;
  readonly #log: CallLog;
  #replies = 0;
  #answers = 0;

  constructor(config: CallConfig, deps: AnswerDeps, callerTurns: CallerTurns, log: CallLog) {
    this.#config = config;
    this.#deps = deps;
    this.#callerTurns = callerTurns;
    this.#log = log;
  }

  /** The model's answer to a turn of the caller. */
  toTurn({ turn, input }: Extract<Job, { is: "reply" }>): Answer {
    const isSpoken = input.kind === "speech";
    const timing = this.#takeInput(turn, input);
    const request = {
      instructions: this.#config.instructions,
      turnIndex: this.#replies,
      inputKind: input.kind,
      unrecognized: isSpoken && !this.#callerTurns.recognizes,
    };
    this.#replies += 1;
    const history = this.#log.historyForRequest();
    const says = { request, history, toolStepsMax: this.#config.advanced.max_tool_steps };
    return new Answer(
      { turnId: turnId(turn), source: "model", ...(timing && { timing }), says, index: this.#nextIndex() },
      this.#deps,
    );
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
