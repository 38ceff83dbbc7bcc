/** Whether a document may be sent: every business rule that it breaks, with the term and the field. */

import { Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import type { InvoiceDocument } from "../invoice_document.ts";
import type { BusinessRule } from "./business_rule.ts";
import { dateRules, headerRules, rulesOfIssue } from "./header_rules.ts";
import { lineRules } from "./line_rules.ts";
import { nationalRules } from "./national_rules.ts";
import { peppolRules } from "./peppol_rules.ts";
import { vatRules } from "./vat_rules.ts";

export const Violation = named(
  "Violation",
  Type.Object({
    rule: Type.String({ description: "as its publisher names it: BR-…, PEPPOL-…, DE-R-…" }),
    term: Type.String({ description: "the business term of EN 16931, BT-…, or group, BG-…" }),
    path: Type.String({ description: "the field of the document" }),
    message: Type.String(),
  }),
  {
    message: "what the rule asks for",
  },
);
export type Violation = (typeof Violation)["static"];

export const businessRules: readonly BusinessRule[] = [
  ...headerRules,
  ...dateRules,
  ...lineRules,
  ...vatRules,
  ...peppolRules,
  ...nationalRules,
];

/** In the order of the rules; none when the document can be sent. */
export function violationsIn(document: InvoiceDocument): Violation[] {
  return businessRules.flatMap(({ id, term, message, brokenAt }) =>
    brokenAt(document).map((path) => ({ rule: id, term, path, message })),
  );
}

/** What stands in the way of sending it once it is issued: a draft has neither number nor date. */
export function violationsBeforeIssue(document: InvoiceDocument): Violation[] {
  return violationsIn(document).filter(({ rule }) => !rulesOfIssue.has(rule));
}
