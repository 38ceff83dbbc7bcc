import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { XMLParser, XMLValidator } from "fast-xml-parser";
import {
  buyerDetails,
  exemptions,
  invoiceCases,
  invoiceFor,
  issued,
  sellerIn,
  stayFor,
  stayWithoutVat,
} from "#test/kit/tax/invoice_fixture.ts";
import type { TaxComponent } from "../calculator/calculation_answer.ts";
import { Rational, sumOf } from "../calculator/numbers/rational.ts";
import { creditNoteFor, type InvoicedStay, projectInvoice } from "./document_projection.ts";
import type { InvoiceDocument } from "./invoice_document.ts";
import { violationsIn } from "./rules/check_document.ts";
import { ublFor } from "./ubl.ts";

const rulesBrokenBy = (document: InvoiceDocument) => violationsIn(document).map(({ rule, path }) => `${rule} ${path}`);
const categoriesOf = (document: InvoiceDocument) =>
  document.vat_breakdown.map(({ vat_category, vat_rate }) => `${vat_category} ${vat_rate ?? "-"}`);
const isSame = (a: string, b: string) => Rational.parse(a).compare(Rational.parse(b)) === 0;

/** A seller without a VAT id, known by its registration. */
function unregistered() {
  const { vat_id: _, ...seller } = sellerIn("IT");
  return { ...seller, registration_number: "12345678901", registration_scheme: "0210" };
}

/** The stay with its tax components changed. */
function withComponents(stay: InvoicedStay, change: (component: TaxComponent) => TaxComponent): InvoicedStay {
  const { answer } = stay;
  const components = answer.tax_breakdown.components.map(change);
  return { ...stay, answer: { ...answer, tax_breakdown: { ...answer.tax_breakdown, components } } };
}

describe("the invoice of a booking", () => {
  for (const one of invoiceCases) {
    it(`passes every rule and comes to what the booking does: ${one.name}`, () => {
      const document = invoiceFor(one);
      assert.deepEqual(rulesBrokenBy(document), []);
      assert.deepEqual(categoriesOf(document), one.expected);
      const { answer } = stayFor(one);
      assert.ok(isSame(document.totals.with_vat, answer.total_with_tax));
      assert.ok(isSame(document.totals.payable, answer.total_with_tax));
      assert.ok(isSame(document.totals.vat, answer.totals_by_kind.vat ?? "0"));
      for (const component of answer.tax_breakdown.components) {
        if (component.kind === "vat" || isSame(component.tax_amount, "0")) continue;
        const lines = document.lines.filter(({ rule_id }) => rule_id === component.rule_id);
        assert.ok(
          isSame(sumOf(lines.map(({ net_amount }) => Rational.parse(net_amount))).toFixed(2), component.tax_amount),
        );
      }
    });
  }

  it("covers at least twelve, in at least ten countries", () => {
    assert.ok(invoiceCases.length >= 12);
    assert.ok(new Set(invoiceCases.map(({ place }) => place.slice(0, 2))).size >= 10);
  });

  it("names the directive's article for a tax passed on in the Union, and words alone elsewhere", () => {
    const [inUnion, outside] = ["IT-RM-ROM", "CH-BS"].map((place) => {
      const currency = place === "CH-BS" ? "CHF" : "EUR";
      return invoiceFor({ name: place, place, request: { currency }, expected: [] }).vat_breakdown[1];
    });
    assert.equal(inUnion?.exemption_reason_code, "VATEX-EU-79-C");
    assert.equal(outside?.exemption_reason_code, null);
    assert.match(outside?.exemption_reason ?? "", /on behalf of a public authority/);
  });

  it("puts a tax in the base at the room's rate on a line of its own", () => {
    const document = invoiceFor({
      name: "Balearics",
      place: "ES-IB",
      request: { stay_date: "2026-07-10" },
      expected: [],
    });
    assert.deepEqual(
      document.lines.map(({ vat_category, vat_rate, net_amount }) => [vat_category, vat_rate, net_amount]),
      [
        ["S", "10", "300.00"],
        ["S", "10", "18.00"],
      ],
    );
  });

  it("tells a guest of each line what it is, how often and at what rate, and not how it was calculated", () => {
    const told = (place: string, request: object = {}) =>
      invoiceFor({ name: place, place, request, expected: [] }).lines.map(({ name, description }) => [
        name,
        description,
      ]);
    assert.deepEqual(told("IT-RM-ROM", { nights: 1, number_of_guests: 1 }), [
      ["Accommodation", "1 night from 2026-05-10"],
      ["Contributo di soggiorno", "7.50 EUR per person and night, 1 night, 1 person"],
    ]);
    const [, berlin] = told("DE-BE", { rooms: 2 });
    assert.equal(berlin?.[1], "7.5 %, 3 nights, 2 rooms");
    const all = invoiceCases.flatMap((one) => invoiceFor(one).lines);
    assert.ok(all.every(({ description }) => !/ x |Total|\b1 (nights|persons|rooms)/.test(description ?? "")));
  });

  it("is not subject to VAT as a whole where nothing is, and names no VAT id then", () => {
    const document = issued(projectInvoice(stayWithoutVat(), unregistered(), buyerDetails));
    assert.deepEqual(categoriesOf(document), ["O -"]);
    assert.equal(document.buyer.vat_id, null);
    assert.deepEqual(rulesBrokenBy(document), []);
  });

  it("asks a seller with a VAT id why a room bears no VAT, and takes each answer", () => {
    const seller = { ...sellerIn("IT"), registration_number: "12345678901", registration_scheme: "0210" };
    const silent = issued(projectInvoice(stayWithoutVat(), seller, buyerDetails));
    assert.deepEqual(rulesBrokenBy(silent), ["BR-E-10 vat_breakdown.0.exemption_reason"]);
    for (const [category, exemption] of Object.entries(exemptions)) {
      const told = issued(projectInvoice(stayWithoutVat(), seller, { ...buyerDetails, vat_exemption: exemption }));
      assert.deepEqual(rulesBrokenBy(told), [], category);
      assert.equal(told.vat_breakdown[0]?.vat_category, category);
      assert.ok(isSame(told.totals.with_vat, "330.00"));
    }
  });

  it("tells both reasons in words where the room is exempt and a tax is passed on: one group may have one code", () => {
    const details = { ...buyerDetails, vat_exemption: { category: "E" as const, reason: "Small undertaking" } };
    const { vat_breakdown } = projectInvoice(stayWithoutVat(), sellerIn("IT"), details);
    assert.equal(vat_breakdown.length, 1);
    assert.equal(vat_breakdown[0]?.exemption_reason_code, null);
    assert.match(vat_breakdown[0]?.exemption_reason ?? "", /^Small undertaking; Tax collected on behalf/);
  });

  it("gives a guest's exemption from VAT as the reason", () => {
    const stay = withComponents(stayFor({ place: "DE-BE" }), (component) =>
      component.kind === "vat"
        ? { ...component, tax_amount: "0.00", taxable_amount: null, exemptions: [{ code: "vat", reason: "Embassies" }] }
        : component,
    );
    const document = projectInvoice(stay, sellerIn("DE"), buyerDetails);
    assert.deepEqual(categoriesOf(document), ["E 0"]);
    assert.equal(document.vat_breakdown[0]?.exemption_reason, "Embassies");
  });

  it("puts a tax with a VAT of its own under that", () => {
    const stay = stayFor({ place: "DE-BE" });
    const vat = stay.answer.tax_breakdown.components.find(({ kind }) => kind === "vat");
    assert.ok(vat);
    const own = {
      ...vat,
      rule_id: "own",
      tax_amount: "4.28",
      taxable_amount: "22.50",
      rate: { ...vat.rate, value: "19" },
    };
    const changed = withComponents(stay, (component) =>
      component.kind === "vat"
        ? { ...component, taxable_amount: "300.00", tax_amount: "21.00" }
        : { ...component, vat_treatment: "own_rate" },
    );
    changed.answer.tax_breakdown.components.push(own);
    const document = issued(projectInvoice(changed, sellerIn("DE"), buyerDetails));
    assert.deepEqual(categoriesOf(document), ["S 7", "S 19"]);
    assert.deepEqual(
      document.vat_breakdown.map(({ taxable_amount, tax_amount }) => [taxable_amount, tax_amount]),
      [
        ["300.00", "21.00"],
        ["22.50", "4.28"],
      ],
    );
    assert.deepEqual(rulesBrokenBy(document), []);
  });

  it("splits the room where the rate of VAT changes during the stay, and the taxes in its base with it", () => {
    const stay = stayFor({ place: "DE-BE" });
    const [tax, vat] = stay.answer.tax_breakdown.components as [TaxComponent, TaxComponent];
    const [night] = tax.slices as [TaxComponent["slices"][number]];
    const slice = (from: string, to: string, nights: number, amount: string) => ({
      ...night,
      from,
      to,
      nights,
      amount,
    });
    const city = {
      ...tax,
      tax_amount: "22.51",
      slices: [slice("2026-05-10", "2026-05-11", 1, "7.50"), slice("2026-05-11", "2026-05-13", 2, "15.00")],
    };
    const part = (
      version: number,
      value: string,
      taxable_amount: string,
      tax_amount: string,
      slices: typeof city.slices,
    ) => ({
      ...vat,
      version,
      taxable_amount,
      tax_amount,
      slices,
      rate: { ...vat.rate, value },
      quantity: { ...vat.quantity, nights: slices[0]?.nights ?? 0 },
    });
    const components = [
      city,
      part(1, "7", "107.50", "7.53", [slice("2026-05-10", "2026-05-11", 1, "7.53")]),
      part(2, "19", "215.01", "40.85", [slice("2026-05-11", "2026-05-13", 2, "40.85")]),
    ];
    const document = issued(
      projectInvoice(
        { ...stay, answer: { ...stay.answer, tax_breakdown: { ...stay.answer.tax_breakdown, components } } },
        sellerIn("DE"),
        buyerDetails,
      ),
    );
    assert.deepEqual(
      document.lines.map(({ vat_rate, net_amount, quantity }) => [vat_rate, net_amount, quantity]),
      [
        ["7", "100.00", "1"],
        ["19", "200.00", "2"],
        ["7", "7.50", "1"],
        ["19", "15.01", "1"],
      ],
    );
    const told = document.lines.map(({ description }) => description);
    assert.deepEqual(told, [
      "1 night of the 3 nights from 2026-05-10",
      "2 nights of the 3 nights from 2026-05-10",
      "7.5 %, 1 night",
      "7.5 %, 2 nights",
    ]);
    assert.deepEqual(rulesBrokenBy(document), []);
    assert.equal(document.totals.with_vat, "370.89");
  });

  it("asks why what is included in the price bears no VAT, where none was calculated on it", () => {
    const stay = withComponents(stayFor({ place: "NO", request: { currency: "NOK" } }), (component) =>
      component.kind === "vat" ? { ...component, taxable_amount: "270.00", tax_amount: "32.40" } : component,
    );
    const document = issued(projectInvoice(stay, sellerIn("NO"), buyerDetails));
    assert.deepEqual(
      document.lines.map(({ name, net_amount, unit_code, quantity }) => [name, net_amount, unit_code, quantity]),
      [
        ["Accommodation", "270.00", "DAY", "3"],
        ["Other parts of the price", "30.00", "C62", "1"],
      ],
    );
    assert.deepEqual(rulesBrokenBy(document), ["BR-CO-04 lines.1.vat_category"]);
  });

  it("bears a breakfast's own VAT in Germany: food at 7 %, the drinks in it at 19 %", () => {
    const stay = stayFor({ place: "DE-BE", request: { included_amounts: { breakfast: "20" } } });
    const document = issued(projectInvoice(stay, sellerIn("DE"), buyerDetails));
    assert.deepEqual(
      document.lines.map(({ net_amount, vat_category, vat_rate }) => [net_amount, vat_category, vat_rate]).slice(0, 3),
      [
        ["240.00", "S", "7"],
        ["42.00", "S", "7"],
        ["18.00", "S", "19"],
      ],
    );
    assert.equal(document.totals.with_vat, stay.answer.total_with_tax);
    assert.deepEqual(violationsIn(document), []);
  });

  it("does not call a breakfast exempt that no rule taxes, and says what is missing", () => {
    const withBreakfast = stayFor({ place: "DE-BE", request: { included_amounts: { breakfast: "20" } } });
    const { tax_breakdown } = withBreakfast.answer;
    const components = tax_breakdown.components.filter(({ rule_id }) => !rule_id.startsWith("de.vat-breakfast"));
    const answer = { ...withBreakfast.answer, tax_breakdown: { ...tax_breakdown, components } };
    const stay = { ...withBreakfast, answer };
    const document = issued(projectInvoice(stay, sellerIn("DE"), buyerDetails));
    assert.deepEqual(
      document.lines.map(({ name, net_amount, vat_category }) => [name, net_amount, vat_category]).slice(0, 2),
      [
        ["Accommodation", "240.00", "S"],
        ["Included in the price: breakfast", "60.00", null],
      ],
    );
    const [violation, ...others] = violationsIn(document);
    assert.deepEqual(others, []);
    assert.deepEqual([violation?.rule, violation?.path], ["BR-CO-04", "lines.1.vat_category"]);
    assert.match(violation?.message ?? "", /Book it apart/);
    const exempt = { ...buyerDetails, vat_exemption: { category: "E" as const, reason: "Small undertaking" } };
    assert.deepEqual(rulesBrokenBy(issued(projectInvoice(stay, sellerIn("DE"), exempt))), []);
  });

  it("tells why nights bear no VAT that the law lets off, beside those that do", () => {
    const stay = withComponents(stayFor({ place: "NO", request: { currency: "NOK" } }), (component) => ({
      ...component,
      taxable_amount: "200.00",
      tax_amount: "24.00",
      quantity: { ...component.quantity, nights: 2 },
      exemptions: [{ code: "long_stay", reason: "A stay that is long", nights: 1 }],
    }));
    const document = issued(projectInvoice(stay, sellerIn("NO"), buyerDetails));
    assert.deepEqual(
      document.lines.map(({ name, quantity, vat_category }) => [name, quantity, vat_category]),
      [
        ["Accommodation", "2", "S"],
        ["Accommodation", "1", "E"],
      ],
    );
    assert.equal(document.vat_breakdown[1]?.exemption_reason, "A stay that is long");
    assert.deepEqual(rulesBrokenBy(document), []);
  });

  it("is a document without a profile where EN 16931 does not apply, and says so", () => {
    const stay = stayFor({ place: "US-NY-NYC", request: { currency: "USD" } });
    const document = issued(projectInvoice(stay, { ...unregistered(), country: "US" }, buyerDetails));
    assert.equal(document.profile.compliant, false);
    assert.match(document.profile.note ?? "", /US/);
    assert.equal(document.totals.with_vat, stay.answer.total_with_tax);
    const rules = violationsIn(document).map(({ rule }) => rule);
    assert.deepEqual(rules, ["BR-01", "PEPPOL-EN16931-R001", "PEPPOL-EN16931-R004"]);
  });

  it("owes what is not paid yet", () => {
    const { totals } = projectInvoice(stayFor({ place: "DE-BE" }), sellerIn("DE"), {
      ...buyerDetails,
      paid_amount: "100",
    });
    assert.deepEqual([totals.with_vat, totals.paid, totals.payable], ["345.08", "100.00", "245.08"]);
  });

  it("has nothing on it when the booking owes nothing", () => {
    const stay = stayFor({ place: "DE-BE" });
    const nothing = {
      ...stay,
      answer: {
        ...stay.answer,
        total_without_tax: "0.00",
        total_with_tax: "0.00",
        tax_breakdown: { ...stay.answer.tax_breakdown, components: [] },
      },
    };
    const document = projectInvoice(nothing, sellerIn("DE"), buyerDetails);
    assert.deepEqual(document.lines, []);
    assert.ok(rulesBrokenBy(document).includes("BR-16 lines"));
  });

  it("adds up whatever the stay, to the cent of the booking", () => {
    const places = invoiceCases.filter(({ request }) => request?.currency === undefined).map(({ place }) => place);
    fc.assert(
      fc.property(
        fc.constantFrom(...places),
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 100_000 }),
        fc.boolean(),
        (place, nights, rooms, cents, gross) => {
          // A price with the taxes in it is more than they are.
          const nightly_rate = `${Math.floor(cents / 100) + (gross ? 200 : 0)}.${String(cents % 100).padStart(2, "0")}`;
          const stay = stayFor({ place, request: { nights, rooms, nightly_rate, price_includes_tax: gross } });
          const document = issued(projectInvoice(stay, sellerIn(place.slice(0, 2)), buyerDetails));
          assert.deepEqual(rulesBrokenBy(document), []);
          assert.equal(document.totals.with_vat, stay.answer.total_with_tax);
        },
      ),
      { numRuns: 150 },
    );
  });
});

const parser = new XMLParser({ ignoreAttributes: false, parseTagValue: false, preserveOrder: true });
type Node = Record<string, unknown> & { ":@"?: Record<string, string> };
const nameOf = (node: Node) => Object.keys(node).find((key) => key !== ":@") ?? "";
const childrenOf = (node: Node) => (node[nameOf(node)] as Node[]).filter((child) => nameOf(child) !== "#text");
const textOf = (node: Node | undefined) => (node?.[nameOf(node)] as Node[] | undefined)?.[0]?.["#text"];

function rootOf(xml: string): Node {
  assert.equal(XMLValidator.validate(xml), true);
  const root = (parser.parse(xml) as Node[]).find((node) => nameOf(node) !== "?xml");
  assert.ok(root);
  return root;
}

/** Elements below a path of names. */
function find(node: Node, ...path: string[]): Node[] {
  const [name, ...rest] = path;
  if (name === undefined) return [node];
  return childrenOf(node)
    .filter((child) => nameOf(child) === name)
    .flatMap((child) => find(child, ...rest));
}

/** The order of UBL 2.1's schema, of the elements that ours can have. */
const schemaOrder: Readonly<Record<string, readonly string[]>> = {
  Invoice: `cbc:CustomizationID cbc:ProfileID cbc:ID cbc:IssueDate cbc:DueDate cbc:InvoiceTypeCode cbc:Note
    cbc:DocumentCurrencyCode cbc:BuyerReference cac:InvoicePeriod cac:OrderReference cac:BillingReference
    cac:ContractDocumentReference cac:AccountingSupplierParty cac:AccountingCustomerParty cac:Delivery cac:PaymentMeans
    cac:PaymentTerms cac:TaxTotal cac:LegalMonetaryTotal cac:InvoiceLine`.split(/\s+/),
  CreditNote: `cbc:CustomizationID cbc:ProfileID cbc:ID cbc:IssueDate cbc:CreditNoteTypeCode cbc:Note
    cbc:DocumentCurrencyCode cbc:BuyerReference cac:InvoicePeriod cac:OrderReference cac:BillingReference
    cac:ContractDocumentReference cac:AccountingSupplierParty cac:AccountingCustomerParty cac:Delivery cac:PaymentMeans
    cac:PaymentTerms cac:TaxTotal cac:LegalMonetaryTotal cac:CreditNoteLine`.split(/\s+/),
  "cac:Party": `cbc:EndpointID cac:PartyName cac:PostalAddress cac:PartyTaxScheme cac:PartyLegalEntity
    cac:Contact`.split(/\s+/),
  "cac:PostalAddress": `cbc:StreetName cbc:AdditionalStreetName cbc:CityName cbc:PostalZone cbc:CountrySubentity
    cac:Country`.split(/\s+/),
  "cac:PartyTaxScheme": ["cbc:CompanyID", "cac:TaxScheme"],
  "cac:PartyLegalEntity": ["cbc:RegistrationName", "cbc:CompanyID", "cbc:CompanyLegalForm"],
  "cac:Contact": ["cbc:Name", "cbc:Telephone", "cbc:ElectronicMail"],
  "cac:InvoicePeriod": ["cbc:StartDate", "cbc:EndDate"],
  "cac:InvoiceDocumentReference": ["cbc:ID", "cbc:IssueDate"],
  "cac:PaymentMeans": ["cbc:PaymentMeansCode", "cbc:PaymentID", "cac:PayeeFinancialAccount"],
  "cac:TaxTotal": ["cbc:TaxAmount", "cac:TaxSubtotal"],
  "cac:TaxSubtotal": ["cbc:TaxableAmount", "cbc:TaxAmount", "cac:TaxCategory"],
  "cac:TaxCategory": `cbc:ID cbc:Percent cbc:TaxExemptionReasonCode cbc:TaxExemptionReason
    cac:TaxScheme`.split(/\s+/),
  "cac:LegalMonetaryTotal": `cbc:LineExtensionAmount cbc:TaxExclusiveAmount cbc:TaxInclusiveAmount cbc:PrepaidAmount
    cbc:PayableAmount`.split(/\s+/),
  "cac:InvoiceLine": `cbc:ID cbc:InvoicedQuantity cbc:LineExtensionAmount cac:InvoicePeriod cac:Item
    cac:Price`.split(/\s+/),
  "cac:CreditNoteLine": `cbc:ID cbc:CreditedQuantity cbc:LineExtensionAmount cac:InvoicePeriod cac:Item
    cac:Price`.split(/\s+/),
  "cac:Item": ["cbc:Description", "cbc:Name", "cac:ClassifiedTaxCategory"],
  "cac:ClassifiedTaxCategory": ["cbc:ID", "cbc:Percent", "cac:TaxScheme"],
  "cac:Price": ["cbc:PriceAmount", "cbc:BaseQuantity"],
};

function assertInOrder(node: Node): void {
  const children = childrenOf(node);
  const names = children.map(nameOf);
  const order = schemaOrder[nameOf(node)];
  if (order) {
    const places = names.map((name) => order.indexOf(name));
    assert.ok(!places.includes(-1), `${nameOf(node)} has ${names}`);
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
      `${nameOf(node)} has ${names}`,
    );
  } else assert.ok(names.length < 2, `${nameOf(node)} has ${names}, whose order is not told here`);
  for (const child of children) assertInOrder(child);
}

describe("UBL", () => {
  const whole = projectInvoice(
    stayFor({ place: "NO", request: { currency: "NOK" } }),
    { ...sellerIn("NO"), legal_form: "AS", address_line2: "Floor 2", region: "Oslo" },
    {
      ...buyerDetails,
      order_reference: "Order 1",
      contract_reference: "Contract 2",
      note: "Thank you",
      payment_reference: "RF18 5390",
      payment_due_date: "2026-06-01",
      paid_amount: "10.00",
      vat_exemption: { category: "K", reason: "…" },
    },
  );

  it("has its elements in the order of the schema, with all there can be on it and with the least", () => {
    for (const document of [issued(whole), issued(creditNoteFor(issued(whole))), ...invoiceCases.map(invoiceFor)]) {
      assertInOrder(rootOf(ublFor(document)));
    }
  });

  it("reads back as what the document says", () => {
    for (const one of invoiceCases) {
      const document = invoiceFor(one);
      const root = rootOf(ublFor(document));
      const text = (...path: string[]) => textOf(find(root, ...path)[0]);
      assert.equal(nameOf(root), "Invoice");
      assert.equal(text("cbc:ID"), document.number);
      assert.equal(text("cac:LegalMonetaryTotal", "cbc:PayableAmount"), document.totals.payable);
      assert.equal(text("cac:TaxTotal", "cbc:TaxAmount"), document.totals.vat);
      const nets = find(root, "cac:InvoiceLine", "cbc:LineExtensionAmount").map((node) => String(textOf(node)));
      assert.deepEqual(
        nets,
        document.lines.map(({ net_amount }) => net_amount),
      );
      const bases = find(root, "cac:TaxTotal", "cac:TaxSubtotal", "cbc:TaxableAmount").map((node) =>
        String(textOf(node)),
      );
      assert.ok(isSame(sumOf(bases.map(Rational.parse)).toFixed(2), sumOf(nets.map(Rational.parse)).toFixed(2)));
      const currencies = ublFor(document).match(/currencyID="[A-Z]{3}"/g);
      assert.deepEqual([...new Set(currencies)], [`currencyID="${document.currency}"`]);
    }
  });

  it("is a CreditNote that names the invoice it takes back", () => {
    const root = rootOf(ublFor(issued(creditNoteFor(issued(whole)))));
    assert.equal(nameOf(root), "CreditNote");
    assert.equal(textOf(find(root, "cbc:CreditNoteTypeCode")[0]), "381");
    assert.equal(
      textOf(find(root, "cac:BillingReference", "cac:InvoiceDocumentReference", "cbc:ID")[0]),
      "INV-2026-000001",
    );
    assert.equal(find(root, "cac:CreditNoteLine", "cbc:CreditedQuantity").length, whole.lines.length);
    assert.equal(find(root, "cbc:DueDate").length, 0);
  });

  it("says what the document says where a seller's text has characters that no XML can hold", () => {
    const seller = { ...sellerIn("DE"), legal_name: "Grand\u0000 Hotel\u0085\ud800", payment_terms: "At\r\nonce\t!" };
    const document = issued(projectInvoice(stayFor({ place: "DE-BE" }), seller, buyerDetails));
    assert.equal(document.seller.name, "Grand Hotel");
    assert.equal(document.payment.terms, "At\r\nonce\t!");
    const xml = ublFor(document);
    assert.ok(xml.includes("<cbc:RegistrationName>Grand Hotel</cbc:RegistrationName>"));
    assert.ok(xml.includes("<cbc:Note>At&#13;\nonce\t!</cbc:Note>"));
  });

  it("has any text of a user as text, and never an empty element", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (note) => {
        const xml = ublFor(issued({ ...whole, note, buyer: { ...whole.buyer, name: `<&"'>]]>${note}` } }));
        const read = textOf(
          find(
            rootOf(xml),
            "cac:AccountingCustomerParty",
            "cac:Party",
            "cac:PartyLegalEntity",
            "cbc:RegistrationName",
          )[0],
        );
        assert.match(String(read), /^<&"'>\]\]>/);
        assert.doesNotMatch(xml, /<[^>]*><\//);
      }),
      { numRuns: 200 },
    );
  });
});
