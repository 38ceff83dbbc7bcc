/**
 * Patterns of the `rules` model, on RE2: time linear in the text, whatever a customer writes. Case does
 * not count. The only file that knows the engine.
 */
import { RE2JS } from "re2js";
import type { SettingProblem } from "../provider.ts";
import type { Rule } from "./options.ts";

/** Text that patterns see: longer input is cut. With the program sizes this bounds the time of a turn. */
export const matchedCharsMax = 500;
const programSizeMax = 1000;
const programSizeSumMax = 20_000;
const problemsMax = 20;

export interface PatternMatch {
  /** The first group that took part, else the whole match. */
  value: string;
  /** Named groups that took part. */
  groups: Record<string, string>;
}

/** Compiled patterns of all agents of this thread, oldest out first. */
const compiled = new Map<string, RE2JS>();
const compiledMax = 5000;

/**
 * A pattern too large to be used is not kept.
 * @throws RE2JSSyntaxException naming what is wrong
 */
function compile(pattern: string): RE2JS {
  let regex = compiled.get(pattern);
  if (!regex) {
    regex = RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE);
    if (regex.programSize() > programSizeMax) return regex;
    if (compiled.size >= compiledMax) compiled.delete(compiled.keys().next().value as string);
    compiled.set(pattern, regex);
  }
  return regex;
}

/** `text` as patterns see it: one space between words, plain quotes, composed characters, cut to `matchedCharsMax`. */
export function plainText(text: string): string {
  return text
    .slice(0, matchedCharsMax)
    .normalize("NFKC")
    .replace(/[\u2018\u2019\u02bc]/g, "'")
    .replace(/[\u201c\u201d]/g, '"')
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .trim();
}

/** The first place in `plain` that `pattern` fits, or undefined. */
export function matchPattern(pattern: string, plain: string): PatternMatch | undefined {
  const matcher = compile(pattern).matcher(plain);
  if (!matcher.find()) return undefined;
  const groups: Record<string, string> = {};
  for (const [name, value] of Object.entries(matcher.getNamedGroups())) {
    if (value !== null && value.trim() !== "") groups[name] = value.trim();
  }
  let value: string | null = null;
  for (let i = 1; i <= matcher.groupCount() && !value; i += 1) value = matcher.group(i);
  return { value: (value ?? matcher.group() ?? "").trim(), groups };
}

/**
 * Patterns of `rules` that the engine refuses or that cost too much, by their path below `options`. Pure.
 * Ends at the first one that costs too much: compiling a single one of those takes a quarter of a second.
 */
export function checkRulePatterns(rules: readonly Rule[]): SettingProblem[] {
  const problems: SettingProblem[] = [];
  let sizeSum = 0;
  for (const { path, pattern } of patternsOf(rules)) {
    const size = programSizeOf(pattern);
    if (typeof size === "string") {
      problems.push({ path, message: `Expected a regular expression (RE2 syntax): ${size}` });
      if (problems.length >= problemsMax) return problems;
      continue;
    }
    if (size > programSizeMax) {
      const message = `Expected a pattern with smaller repeat counts: it expands to ${size} steps of at most ${programSizeMax}`;
      return [...problems, { path, message }];
    }
    sizeSum += size;
    if (sizeSum > programSizeSumMax) {
      const message = `Expected simpler patterns: all of them expand to more than ${programSizeSumMax} steps`;
      return [...problems, { path: "rules", message }];
    }
  }
  return problems;
}

function* patternsOf(rules: readonly Rule[]): Iterable<{ path: string; pattern: string }> {
  for (const [i, rule] of rules.entries()) {
    for (const [j, pattern] of rule.patterns.entries()) yield { path: `rules.${i}.patterns.${j}`, pattern };
    for (const [j, { pattern }] of (rule.slots ?? []).entries()) {
      if (pattern !== undefined) yield { path: `rules.${i}.slots.${j}.pattern`, pattern };
    }
  }
}

/** Steps of the compiled pattern, or the engine's complaint. */
function programSizeOf(pattern: string): number | string {
  try {
    return compile(pattern).programSize();
  } catch (cause) {
    return cause instanceof Error ? cause.message.replace(/^error parsing regexp: /, "") : String(cause);
  }
}
