/**
 * Regular expressions of conditions, on RE2: linear in the text, but by a factor that is as large as the
 * pattern with its repeat counts written out. Both are bounded, and so is what compiling may cost.
 */
import { RE2JS } from "re2js";
import type { Budget } from "./evaluation_budget.ts";

const patternCharsMax = 1000;
/** Steps of a pattern with its repeat counts written out; compiling a thousand takes about 20 ms. */
const programSizeMax = 2000;
/** Steps of the pattern times characters of the text that count as one step of evaluation. */
const productOfStep = 16;

/** Compiled patterns of this process, oldest out first. */
const compiled = new Map<string, RE2JS>();
const compiledMax = 500;

/** What is wrong with a pattern, or undefined. */
export function patternProblem(pattern: string): string | undefined {
  if (pattern.length > patternCharsMax) return `Expected a pattern of at most ${patternCharsMax} characters`;
  if (expandedSize(pattern) > programSizeMax) {
    return `Expected a pattern with smaller repeat counts: written out it has more than ${programSizeMax} steps`;
  }
  try {
    compile(pattern);
    return undefined;
  } catch {
    return `Expected a regular expression (RE2): ${JSON.stringify(pattern)} is none`;
  }
}

/** Whether `pattern`, which has no problem, is found in `text`. @throws EvaluationError */
export function matches(pattern: string, text: string, budget: Budget): boolean {
  const regex = compile(pattern);
  budget.spend((regex.programSize() * text.length) / productOfStep);
  return regex.matcher(text).find();
}

function compile(pattern: string): RE2JS {
  let regex = compiled.get(pattern);
  if (!regex) {
    regex = RE2JS.compile(pattern);
    if (compiled.size >= compiledMax) compiled.delete(compiled.keys().next().value as string);
    compiled.set(pattern, regex);
  }
  return regex;
}

/**
 * About how many steps the pattern compiles to, without compiling it; where its syntax leaves doubt,
 * rather more. `((ab{9}){9})` has 9 × (1 + 9).
 */
function expandedSize(pattern: string): number {
  const groups: number[] = [];
  let sum = 0;
  let atom = 0;
  const token = /\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|[\s\S]/gy;
  for (const [text, least, most] of pattern.matchAll(token)) {
    if (least !== undefined) {
      const times = Math.max(Number(least) + (most === "" ? 1 : 0), Number(most ?? 0), 1);
      sum += atom * (times - 1);
      atom *= times;
    } else if (text === "(") {
      groups.push(sum);
      sum = 0;
      atom = 0;
    } else if (text === ")") {
      atom = sum + 1;
      sum = atom + (groups.pop() ?? 0);
    } else {
      atom = 1;
      sum += 1;
    }
  }
  return groups.reduce((all, group) => all + group, sum);
}

/** Whether `part` stands in `whole`; searching for long repetitive texts takes time by the product of both. */
export function includesText(whole: string, part: string, budget: Budget): boolean {
  budget.spend((whole.length * part.length) / searchedOfStep);
  return whole.includes(part);
}
const searchedOfStep = 512;
