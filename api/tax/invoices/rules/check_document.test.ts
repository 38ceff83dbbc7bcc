import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type BrokenInvoice, breakInvoice, brokenInvoices, soundInvoices } from "#test/kit/tax/invalid_invoices.ts";
import { businessRules, violationsBeforeIssue, violationsIn } from "./check_document.ts";

const named = (one: BrokenInvoice) => `${one.rule} at ${one.path}`;

describe("business rules", () => {
  it("find nothing in invoices that are sound", () => {
    for (const [name, document] of Object.entries(soundInvoices)) {
      assert.deepEqual(violationsIn(document), [], name);
    }
  });

  it("catch, each of them, an invoice that is wrong in that one way, and name term and field", () => {
    for (const one of brokenInvoices) {
      const violations = violationsIn(breakInvoice(one));
      const own = violations.filter(({ rule, path }) => rule === one.rule && path === one.path);
      assert.equal(own.length, 1, `${named(one)}: ${violations.map(({ rule, path }) => `${rule}@${path}`)}`);
    }
  });

  it("have a broken invoice each", () => {
    const broken = new Set(brokenInvoices.map(({ rule }) => rule));
    assert.deepEqual(
      businessRules.map(({ id }) => id).filter((id) => !broken.has(id)),
      [],
    );
  });

  it("name a rule of a publisher, a term of EN 16931, a field and what was expected", () => {
    for (const one of brokenInvoices) {
      for (const violation of violationsIn(breakInvoice(one))) {
        assert.match(
          violation.rule,
          /^(BR-[A-Z]{1,3}-?\d+|BR-\d\d|PEPPOL-[A-Z0-9]+-[A-Z]+\d+|(DE|DK|GR|IS|IT|NL|NO|SE)-R-\d{3}(-\d)?)$/,
        );
        assert.match(violation.term, /^(BT-\d{1,3}(-1)?|BG-\d{1,2})$/);
        assert.match(violation.path, /^[a-z]/);
        assert.match(violation.message, /xpected/);
      }
    }
  });

  it("let a draft be without number and date, and nothing else", () => {
    const draft = { ...soundInvoices.standard, number: null, issue_date: null };
    assert.deepEqual(violationsBeforeIssue(draft), []);
    assert.deepEqual(
      violationsIn(draft).map(({ rule }) => rule),
      ["BR-02", "BR-03"],
    );
  });
});
