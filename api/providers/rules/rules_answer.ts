/**
 * What the `rules` model answers to a turn: pure, from the rules, the state before and the request.
 * The first rule with a fitting pattern wins. A rule with slots asks for what is missing, turn by turn;
 * then it calls its tool, if it has one, and says its template.
 */
import type { LlmRequest } from "../provider.ts";
import type { Rule, Slot } from "./options.ts";
import { matchPattern, plainText } from "./rule_patterns.ts";

export interface RuleBook {
  rules: readonly Rule[];
  fallback: string;
}

/** A rule under way and what its slots hold so far. */
interface Filling {
  rule: Rule;
  values: Readonly<Record<string, string>>;
}

export interface DialogState {
  /** Asks for the first slot of the rule that has no value; `misses` answers in a row did not fit. */
  asking?: Filling & { misses: number };
  /** Waits for its tool's result. */
  calling?: Filling;
  /** The caller has been told that there is no recognizer. */
  toldUnrecognized?: true;
}

export interface Answer {
  say: string;
  /** Where the tool is `end_call`, it follows what is said. */
  tool?: { name: string; arguments: Record<string, string> };
  state: DialogState;
}

export const endCallTool = "end_call";
export const noRecognizerText =
  "I can hear that you are speaking, but no speech recognizer is set for this agent, so I don't know what you said. " +
  "To set one, choose a provider in the agent's configuration, in the field stt.provider. You can also type to me, or press keys.";
export const noRecognizerShortText = "I still have no speech recognizer. Please type to me, or press keys.";
export const toolMissingText = "I'm sorry, I can't do that on this call.";
export const toolFailedText = "I'm sorry, that did not work.";
export const cancelledText = "All right, I left that. What else can I do for you?";
export const notUnderstoodText = "I'm sorry, I didn't get that.";

const missesMax = 3;
const valueCharsMax = 4000;
const cancelPattern =
  "^(no,? )?(cancel( that| it)?|stop|never ?mind|forget (it|that)|leave it)\\b[ .!]*(please)?[.!]*$";

/** The answer to the last item of `request.history`. */
export function answerTo(book: RuleBook, state: DialogState, request: LlmRequest): Answer {
  const asked = request.history.at(-1);
  if (asked?.role === "tool") return answerToResult(state, asked.text, asked.isError === true);
  if (request.unrecognized) {
    const say = state.toldUnrecognized ? noRecognizerShortText : noRecognizerText;
    return { say, state: { ...state, toldUnrecognized: true } };
  }
  const heard = request.history.findLast((item) => item.role === "user")?.text ?? "";
  const turn: Turn = { book, heard, plain: plainText(heard), request };
  const { calling: _, ...rest } = state;
  if (rest.asking) return answerToPrompt(turn, rest, rest.asking);
  return answerFresh(turn, rest);
}

interface Turn {
  book: RuleBook;
  heard: string;
  plain: string;
  request: LlmRequest;
}

function answerFresh(turn: Turn, state: DialogState): Answer {
  const match = firstMatch(turn.book.rules, turn.plain);
  if (match) return advance(turn, state, { rule: match.rule, values: slotValues(match.rule, match.groups) });
  const pressed = turn.request.inputKind === "dtmf" ? `You pressed ${[...turn.plain].join(" ")}. ` : "";
  return { say: pressed + fillTemplate(turn.book.fallback, {}, turn.heard), state };
}

function answerToPrompt(turn: Turn, state: DialogState, asking: Filling & { misses: number }): Answer {
  const { asking: _, ...idle } = state;
  const { rule, values, misses } = asking;
  const slot = missingSlot(rule, values);
  if (!slot || matchPattern(cancelPattern, turn.plain)) return { say: cancelledText, state: idle };

  const found = readSlot(rule, slot, turn);
  if (found) return advance(turn, idle, { rule, values: { ...values, ...found } });

  const prompt = fillTemplate(slot.prompt, values, turn.heard);
  const other = firstMatch(turn.book.rules, turn.plain);
  if (other && other.rule !== rule) {
    if (other.rule.slots?.length || other.rule.tool) return answerFresh(turn, idle);
    return { say: `${fillTemplate(other.rule.say, other.groups, turn.heard)} ${prompt}`, state };
  }
  if (misses + 1 >= missesMax) return { say: fillTemplate(turn.book.fallback, {}, turn.heard), state: idle };
  return { say: `${notUnderstoodText} ${prompt}`, state: { ...idle, asking: { rule, values, misses: misses + 1 } } };
}

/** Asks for the next slot, or does what the rule is for. */
function advance(turn: Turn, state: DialogState, filling: Filling): Answer {
  const { rule, values } = filling;
  const slot = missingSlot(rule, values);
  if (slot) {
    return {
      say: fillTemplate(slot.prompt, values, turn.heard),
      state: { ...state, asking: { ...filling, misses: 0 } },
    };
  }
  const say = fillTemplate(rule.say, values, turn.heard);
  if (!rule.tool) return { say, state };
  const offered = turn.request.tools.some((tool) => tool.name === rule.tool);
  if (rule.tool === endCallTool) {
    return offered ? { say, tool: { name: endCallTool, arguments: {} }, state } : { say, state };
  }
  if (!offered) return { say: toolMissingText, state };
  return { say: "", tool: { name: rule.tool, arguments: { ...values } }, state: { ...state, calling: filling } };
}

function answerToResult(state: DialogState, result: string, isError: boolean): Answer {
  const { calling, ...rest } = state;
  if (!calling) return { say: "", state: rest };
  return { say: isError ? toolFailedText : fillTemplate(calling.rule.say, calling.values, "", result), state: rest };
}

function firstMatch(rules: readonly Rule[], plain: string): { rule: Rule; groups: Record<string, string> } | undefined {
  for (const rule of rules) {
    for (const pattern of rule.patterns) {
      const match = matchPattern(pattern, plain);
      if (match) return { rule, groups: match.groups };
    }
  }
  return undefined;
}

/** Groups that name a slot, and those of a rule without slots: both may stand in the template. */
function slotValues(rule: Rule, groups: Record<string, string>): Record<string, string> {
  const names = new Set(rule.slots?.map((slot) => slot.name));
  return Object.fromEntries(Object.entries(groups).filter(([name]) => names.size === 0 || names.has(name)));
}

function missingSlot(rule: Rule, values: Readonly<Record<string, string>>): Slot | undefined {
  return rule.slots?.find((slot) => !values[slot.name]);
}

/** Values that the answer to a slot's prompt gives: its own, and those of other slots that its pattern names. */
function readSlot(rule: Rule, slot: Slot, turn: Turn): Record<string, string> | undefined {
  if (slot.pattern === undefined) {
    const value = turn.heard.trim().slice(0, valueCharsMax);
    return value ? { [slot.name]: value } : undefined;
  }
  const match = matchPattern(slot.pattern, turn.plain);
  const own = match && (match.groups[slot.name] ?? match.value);
  return own ? { ...slotValues(rule, match.groups), [slot.name]: own } : undefined;
}

/**
 * `template` with `{{slot}}`, `{{text}}` (what was said), `{{result}}` (the tool's answer) and
 * `{{result.field}}` (of an answer in JSON) filled in; what is unknown leaves nothing behind.
 */
export function fillTemplate(
  template: string,
  values: Readonly<Record<string, string>>,
  heard: string,
  result = "",
): string {
  if (!template.includes("{{")) return template;
  return template
    .replace(/\{\{\s*([A-Za-z_][A-Za-z0-9_.]{0,199})\s*\}\}/g, (_, name: string) => {
      if (Object.hasOwn(values, name)) return values[name] ?? "";
      if (name === "text") return heard.trim().slice(0, 200);
      if (name === "result") return result.slice(0, valueCharsMax);
      if (name.startsWith("result.")) return fieldOf(result, name.slice("result.".length)).slice(0, valueCharsMax);
      return "";
    })
    .replace(/ {2,}/g, " ")
    .replace(/ +([.,!?;:])/g, "$1")
    .trim();
}

/** The value at a dotted path of a JSON text, as text; empty where there is none. */
function fieldOf(json: string, path: string): string {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return "";
  }
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return "";
    value = (value as Record<string, unknown>)[key];
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value ?? "");
}
