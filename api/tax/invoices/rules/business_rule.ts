/** A business rule as data: its published name, the term it is about, and where a document breaks it. */
import { Rational } from "../../calculator/numbers/rational.ts";
import type { DocumentLine, InvoiceDocument, Party, VatBreakdown } from "../invoice_document.ts";

export interface BusinessRule {
  /** As its publisher names it: EN 16931's BR-…, Peppol's PEPPOL-…, a country's DE-R-…. */
  id: string;
  /** The business term, BT-…, or group, BG-…. */
  term: string;
  message: string;
  /** Fields at fault, as `lines.0.vat_rate`; none when the rule is kept. */
  brokenAt(document: InvoiceDocument): string[];
}

/** A rule about one field. */
export function mustHold(
  id: string,
  term: string,
  path: string,
  message: string,
  holds: (document: InvoiceDocument) => boolean,
): BusinessRule {
  return { id, term, message, brokenAt: (document) => (holds(document) ? [] : [path]) };
}

/** A rule about a field of each line. */
export function eachLine(
  id: string,
  term: string,
  field: string,
  message: string,
  holds: (line: DocumentLine, document: InvoiceDocument) => boolean,
): BusinessRule {
  return {
    id,
    term,
    message,
    brokenAt: (document) =>
      document.lines.flatMap((line, index) => (holds(line, document) ? [] : [`lines.${index}.${field}`])),
  };
}

/** A rule about a field of each part of the VAT breakdown. */
export function eachVat(
  id: string,
  term: string,
  field: string,
  message: string,
  holds: (vat: VatBreakdown, document: InvoiceDocument) => boolean,
): BusinessRule {
  return {
    id,
    term,
    message,
    brokenAt: (document) =>
      document.vat_breakdown.flatMap((vat, index) => (holds(vat, document) ? [] : [`vat_breakdown.${index}.${field}`])),
  };
}

/** The same rule about a field of the seller and of the buyer, whose terms differ. */
export function eachParty(
  id: string,
  terms: Readonly<Record<"seller" | "buyer", string>>,
  field: keyof Party,
  message: string,
  holds: (party: Party, document: InvoiceDocument) => boolean,
): BusinessRule[] {
  return (["seller", "buyer"] as const).map((who) =>
    mustHold(id, terms[who], `${who}.${field}`, message, (document) => holds(document[who], document)),
  );
}

export const isFilled = (text: string | null): text is string => text !== null && text.trim() !== "";

/** An amount, or undefined for what is no decimal number. */
export function decimalOf(text: string | null): Rational | undefined {
  return text !== null && /^-?\d+(\.\d+)?$/.test(text) ? Rational.parse(text) : undefined;
}

/** An amount; what is no number counts as nothing, which other rules find. */
export const amountOf = (text: string | null): Rational => decimalOf(text) ?? Rational.zero;

export const isSame = (a: Rational, b: Rational): boolean => a.compare(b) === 0;

export const hasTwoDecimals = (text: string | null): boolean => text === null || !/\.\d{3}/.test(text);
