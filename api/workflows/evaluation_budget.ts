/**
 * What a customer writes (references, templates, conditions, patterns, schemas) is evaluated in counted
 * steps: on every machine the same expression over the same values comes as far, and nothing that is
 * written holds up the process. A step is one to five tenths of a microsecond.
 */

export const evaluationLimits = {
  /** Of one attempt of a node: a search through the largest output, twice; 50 to 250 ms of one core. */
  nodeStepsMax: 500_000,
  /** Of a run, all of its nodes together, as long as one worker has it. */
  runStepsMax: 10_000_000,
  /** Of a value that is checked against a schema. */
  schemaStepsMax: 1_000_000,
} as const;

/** Characters that are copied or compared count as one step. */
const charsOfStep = 16;
/** Values that are handed on, and copied or written out later, count as one step. */
const valuesOfStep = 8;

/** An expression took more steps than it may. The message is for its author. */
export class EvaluationError extends Error {
  readonly code = "evaluation_too_expensive";
  constructor(what: string, stepsMax: number) {
    super(`Expected ${what} to be evaluated in at most ${stepsMax} steps`);
    this.name = "EvaluationError";
  }
}

export interface Budget {
  /** @throws EvaluationError once more is spent than there is */
  spend(steps: number): void;
}

/** @param within is charged too */
export function newBudget(what: string, stepsMax: number, within?: Budget): Budget {
  let left = stepsMax;
  return {
    spend(steps) {
      left -= steps;
      if (left < 0) throw new EvaluationError(what, stepsMax);
      within?.spend(steps);
    },
  };
}

export function spendText(budget: Budget, chars: number): void {
  budget.spend(chars / charsOfStep);
}

/** Charges for a value that is handed on: the same one may be handed on thousands of times. */
export function spendValue(budget: Budget, value: unknown): void {
  if (typeof value === "string") spendText(budget, value.length / valuesOfStep);
  else if (value !== null && typeof value === "object") {
    const inside = Object.values(value);
    budget.spend(inside.length / valuesOfStep);
    for (const item of inside) spendValue(budget, item);
  }
}

/** Whether two JSON values are equal; the order of an object's fields does not count. */
export function equalValues(left: unknown, right: unknown, budget: Budget): boolean {
  budget.spend(1);
  if (left === right) {
    if (typeof left === "string") spendText(budget, left.length);
    return true;
  }
  if (left === null || right === null || typeof left !== "object" || typeof right !== "object") return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const names = Object.keys(left);
  budget.spend(names.length / valuesOfStep);
  if (names.length !== Object.keys(right).length) return false;
  return names.every(
    (name) =>
      Object.hasOwn(right, name) &&
      equalValues((left as Record<string, unknown>)[name], (right as Record<string, unknown>)[name], budget),
  );
}
