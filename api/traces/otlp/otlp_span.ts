/** A span as OTLP has it, whichever encoding brought it, and what both encodings read alike. */
import { otlpLimits } from "#contracts/otlp.ts";

/** What an attribute may hold: JSON, with 64-bit numbers beyond 2^53 as text and bytes as base64. */
export type AttributeValue = string | number | boolean | null | AttributeValue[] | { [name: string]: AttributeValue };
export type Attributes = Record<string, AttributeValue>;

export interface OtlpEvent {
  name: string;
  /** µs since 1970. */
  atUs: number;
  attributes: Attributes;
}

export interface OtlpLink {
  traceId: string;
  spanId: string;
  attributes: Attributes;
}

export interface OtlpSpan {
  /** Lower-case hex; of a wrong length or all zeros when the sender has it so. */
  traceId: string;
  spanId: string;
  /** Empty for a root. */
  parentSpanId: string;
  name: string;
  /** µs since 1970; 0 when absent. */
  startedUs: number;
  endedUs: number;
  attributes: Attributes;
  events: OtlpEvent[];
  links: OtlpLink[];
  /** 0 unset, 1 ok, 2 error. */
  statusCode: number;
  statusMessage: string;
  /** What the sender or a bound of ours left out. */
  dropped: number;
}

/** Spans that share a resource, and the library that made them. */
export interface ScopeOfSpans {
  resource: Attributes;
  scope: string;
}

export interface ReceivedSpan {
  of: ScopeOfSpans;
  span: OtlpSpan;
}

/** A body that is no export request: the sender's fault, and sending it again does not help. */
export class MalformedOtlpError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MalformedOtlpError";
  }
}

/** Without a prototype, so that `__proto__` is a name like any other. */
export const noAttributes = (): Attributes => Object.create(null) as Attributes;

export function newSpan(): OtlpSpan {
  return {
    ...{ traceId: "", spanId: "", parentSpanId: "", name: "", startedUs: 0, endedUs: 0, attributes: noAttributes() },
    ...{ events: [], links: [], statusCode: 0, statusMessage: "", dropped: 0 },
  };
}

/** Puts an attribute in, within the bound. @returns how many were dropped: 0 or 1 */
export function putAttribute(attributes: Attributes, count: number, key: string, value: AttributeValue): 0 | 1 {
  if (count >= otlpLimits.attributesMax) return 1;
  attributes[key] = value;
  return 0;
}

/** Text as Postgres takes it: U+0000 is U+FFFD. Halves of surrogate pairs are gone before. */
export function storable(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\uFFFD") : text;
}

/** What one span's attributes, events and links may hold in lists and maps, all together. */
export const valuesMax = 65_536;

/** JSON has no NaN and no infinities. */
export function finite(number: number): number | string {
  return Number.isFinite(number) ? number : String(number);
}
