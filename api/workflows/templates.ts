/** Mustache over a node's inputs: text in, text out, no code. Nothing is escaped but where it is said. */
import Mustache from "mustache";
import { type Budget, spendText } from "./evaluation_budget.ts";

/** Sections in each other. */
const depthMax = 20;

/** Parsed templates of this process, oldest out first. */
const parsedMax = 500;
const parsedCharsMax = 4_000_000;

class TemplateCache {
  readonly #parsed = new Map<string, unknown>();
  #chars = 0;

  get(key: string): unknown {
    return this.#parsed.get(key);
  }

  set(key: string, tokens: unknown): void {
    this.#parsed.set(key, tokens);
    this.#chars += key.length;
    for (const oldest of this.#parsed.keys()) {
      if (this.#parsed.size <= parsedMax && this.#chars <= parsedCharsMax) return;
      this.#parsed.delete(oldest);
      this.#chars -= oldest.length;
    }
  }

  clear(): void {
    this.#parsed.clear();
    this.#chars = 0;
  }
}

type Token = [kind: string, value: string, start: number, end: number, inside?: Token[]];

/** What the package's types leave out: the method that renders a template, and each turn of a section. */
interface TokenWriter {
  templateCache: TemplateCache;
  parse(template: string): Token[];
  render(template: string, view: object, partials: object, config: object): string;
  renderTokens(tokens: Token[], ...rest: unknown[]): string;
}
const Writer = Mustache.Writer as unknown as new () => TokenWriter;

/** Renders in counted steps: a section over an array inside of a section over an array is soon a lot. */
class BoundedWriter extends Writer {
  override templateCache = parsed;
  readonly #budget: Budget;

  constructor(budget: Budget) {
    super();
    this.#budget = budget;
  }

  override renderTokens(tokens: Token[], ...rest: unknown[]): string {
    this.#budget.spend(1 + tokens.length);
    const text = super.renderTokens(tokens, ...rest);
    spendText(this.#budget, text.length);
    return text;
  }
}
const parsed = new TemplateCache();

/** What is wrong with a template, or undefined. */
export function templateProblem(template: string): string | undefined {
  try {
    const writer = new Writer();
    writer.templateCache = parsed;
    if (depthOf(writer.parse(template)) <= depthMax) return undefined;
  } catch {
    return "Expected a Mustache template: a tag or a section is not closed";
  }
  return `Expected at most ${depthMax} sections in each other`;
}

/** Sections in each other, counted no further than to the first one too many. */
function depthOf(tokens: readonly Token[], depth = 0): number {
  if (depth > depthMax) return depth;
  return Math.max(depth, ...tokens.flatMap(([, , , , inside]) => (inside ? [depthOf(inside, depth + 1)] : [])));
}

/**
 * @param escapeValue for values between `{{…}}`; `{{{…}}}` is never escaped
 * @throws EvaluationError
 */
export function renderTemplate(
  template: string,
  view: object,
  budget: Budget,
  escapeValue: (text: string) => string = (text) => text,
): string {
  const escaped = (value: unknown) => {
    const text = textOf(value);
    spendText(budget, text.length);
    return escapeValue(text);
  };
  return new BoundedWriter(budget).render(template, view, {}, { escape: escaped });
}

/** A value as a template shows it: objects as JSON, nothing for nothing. */
function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
