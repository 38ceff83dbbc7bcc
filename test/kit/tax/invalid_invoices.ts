/** For tests: for every business rule an invoice that is valid but for one thing, which that rule is about. */
import { creditNoteFor, projectInvoice } from "#tax/invoices/document_projection.ts";
import type { InvoiceDocument, VatCategory } from "#tax/invoices/invoice_document.ts";
import { buyerDetails, exemptions, issued, sellerIn, stayFor, stayWithoutVat } from "./invoice_fixture.ts";

type Mutable<T> = T extends readonly (infer Item)[]
  ? Mutable<Item>[]
  : T extends object
    ? { -readonly [Name in keyof T]: Mutable<T[Name]> }
    : T extends string
      ? string
      : T;
/** A document that may be made wrong: what its types forbid included. */
type Breakable = Mutable<InvoiceDocument>;

const invoiceIn = (country: string, place: string, request: object = {}) =>
  issued(projectInvoice(stayFor({ place, request }), sellerIn(country), buyerDetails));

/** With the buyer in the seller's country, registered as is usual there. */
function domestic(country: string, place: string, request: object = {}): InvoiceDocument {
  const { seller, buyer, ...rest } = invoiceIn(country, place, request);
  const { registration_number, registration_scheme } = seller;
  // Danish companies settle by account 97, not by transfer.
  const payment = country === "DK" ? { ...rest.payment, means_code: "97", account: null } : rest.payment;
  return { ...rest, payment, seller, buyer: { ...buyer, country, registration_number, registration_scheme } };
}

function untaxed(category: VatCategory): InvoiceDocument {
  const seller = { ...sellerIn("IT"), registration_number: "12345678901", registration_scheme: "0210" };
  const exemption = exemptions[category];
  return issued(
    projectInvoice(stayWithoutVat(), seller, { ...buyerDetails, ...(exemption && { vat_exemption: exemption }) }),
  );
}

/** What invoices are made wrong from; each is valid. */
export const soundInvoices = {
  /** A room at 10 % and a city tax that is exempt. */
  standard: invoiceIn("IT", "IT-RM-ROM"),
  zero: untaxed("Z"),
  exempt: untaxed("E"),
  reverse_charge: untaxed("AE"),
  intra_community: untaxed("K"),
  exported: untaxed("G"),
  not_subject: untaxed("O"),
  credit_note: issued(creditNoteFor(invoiceIn("IT", "IT-RM-ROM"))),
  german: domestic("DE", "DE-BW-BADEN"),
  danish: domestic("DK", "DK", { currency: "DKK" }),
  danish_credit_note: issued(creditNoteFor(domestic("DK", "DK", { currency: "DKK" }))),
  icelandic: domestic("IS", "IS", { currency: "ISK", nightly_rate: "25000" }),
  dutch: domestic("NL", "NL-NH-AMS"),
  dutch_credit_note: issued(creditNoteFor(domestic("NL", "NL-NH-AMS"))),
  norwegian: domestic("NO", "NO", { currency: "NOK" }),
  swedish: domestic("SE", "SE", { currency: "SEK" }),
} as const;

export interface BrokenInvoice {
  rule: string;
  from: keyof typeof soundInvoices;
  /** The field that is told. */
  path: string;
  breaks(document: Breakable): void;
}

const broken = (
  rule: string,
  from: BrokenInvoice["from"],
  path: string,
  breaks: (document: Breakable) => void,
): BrokenInvoice => ({ rule, from, path, breaks });

/** What a document never has by its types, but by a fault. */
const missing = undefined as unknown as string;

function first<T>([item]: readonly T[]): T {
  if (item === undefined) throw new Error("Expected an item");
  return item;
}
/** The part of the breakdown, or the line, of a category. */
const of = <T extends { vat_category: string | null }>(items: readonly T[], category: string): T =>
  first(items.filter((item) => item.vat_category === category));

const firstLine = (breaks: (line: Breakable["lines"][number]) => void) => (document: Breakable) =>
  breaks(first(document.lines));
const firstVat = (breaks: (vat: Breakable["vat_breakdown"][number]) => void) => (document: Breakable) =>
  breaks(first(document.vat_breakdown));

/** Rules that each category has alike, and what breaks them. */
function ofCategory(rules: string, category: VatCategory, from: BrokenInvoice["from"]): BrokenInvoice[] {
  const index = soundInvoices[from].vat_breakdown.findIndex((vat) => vat.vat_category === category);
  const line = soundInvoices[from].lines.findIndex((one) => one.vat_category === category);
  return [
    broken(`BR-${rules}-01`, from, "vat_breakdown", (document) => {
      document.vat_breakdown.splice(index, 1);
    }),
    broken(`BR-${rules}-02`, from, "seller.vat_id", (document) => {
      if (category === "O") document.seller.vat_id = "IT12345678901";
      else document.seller.vat_id = null;
    }),
    broken(`BR-${rules}-05`, from, `lines.${line}.vat_rate`, (document) => {
      of(document.lines, category).vat_rate = category === "S" ? "0" : "5";
    }),
    broken(`BR-${rules}-08`, from, `vat_breakdown.${index}.taxable_amount`, (document) => {
      of(document.vat_breakdown, category).taxable_amount = "12.00";
    }),
    broken(`BR-${rules}-09`, from, `vat_breakdown.${index}.tax_amount`, (document) => {
      of(document.vat_breakdown, category).tax_amount = "7.00";
    }),
    broken(`BR-${rules}-10`, from, `vat_breakdown.${index}.exemption_reason`, (document) => {
      const vat = of(document.vat_breakdown, category);
      const none = category === "S" || category === "Z";
      vat.exemption_reason = none ? "Because" : null;
      vat.exemption_reason_code = null;
    }),
  ];
}

/** A scheme's number with a wrong check digit, as an address and as a registration. */
const ofScheme = (rule: string, scheme: string, wrong: string): BrokenInvoice[] => [
  broken(rule, "standard", "buyer.electronic_address", ({ buyer }) => {
    buyer.electronic_address = wrong;
    buyer.electronic_address_scheme = scheme;
  }),
  broken(rule, "standard", "seller.electronic_address", ({ seller }) => {
    seller.electronic_address = wrong;
    seller.electronic_address_scheme = scheme;
  }),
  broken(rule, "standard", "buyer.registration_number", ({ buyer }) => {
    buyer.registration_number = wrong;
    buyer.registration_scheme = scheme;
  }),
  broken(rule, "standard", "seller.registration_number", ({ seller }) => {
    seller.registration_number = wrong;
    seller.registration_scheme = scheme;
  }),
];

const ofCode = (rule: string, code: string, from: BrokenInvoice["from"]) =>
  broken(rule, from, "vat_breakdown.0.vat_category", (document) => {
    first(document.vat_breakdown).exemption_reason_code = code;
  });

export const brokenInvoices: readonly BrokenInvoice[] = [
  broken("BR-01", "standard", "profile.customization_id", ({ profile }) => {
    profile.customization_id = null;
  }),
  broken("BR-02", "standard", "number", (document) => {
    document.number = null;
  }),
  broken("BR-03", "standard", "issue_date", (document) => {
    document.issue_date = null;
  }),
  broken("BR-04", "standard", "type_code", (document) => {
    document.type_code = "";
  }),
  broken("BR-05", "standard", "currency", (document) => {
    document.currency = "";
  }),
  broken("BR-06", "standard", "seller.name", ({ seller }) => {
    seller.name = null;
  }),
  broken("BR-07", "standard", "buyer.name", ({ buyer }) => {
    buyer.name = null;
  }),
  broken("BR-08", "standard", "seller.address_line1", ({ seller }) => {
    for (const field of ["address_line1", "city", "postal_code", "country"] as const) seller[field] = null;
  }),
  broken("BR-09", "standard", "seller.country", ({ seller }) => {
    seller.country = null;
  }),
  broken("BR-10", "standard", "buyer.address_line1", ({ buyer }) => {
    for (const field of ["address_line1", "city", "postal_code", "country"] as const) buyer[field] = null;
  }),
  broken("BR-11", "standard", "buyer.country", ({ buyer }) => {
    buyer.country = null;
  }),
  broken("BR-12", "standard", "totals.line_net", ({ totals }) => {
    totals.line_net = missing;
  }),
  broken("BR-13", "standard", "totals.without_vat", ({ totals }) => {
    totals.without_vat = missing;
  }),
  broken("BR-14", "standard", "totals.with_vat", ({ totals }) => {
    totals.with_vat = missing;
  }),
  broken("BR-15", "standard", "totals.payable", ({ totals }) => {
    totals.payable = missing;
  }),
  broken("BR-16", "standard", "lines", (document) => {
    document.lines = [];
  }),
  broken("BR-29", "standard", "period.end", (document) => {
    document.period = { start: "2026-05-13", end: "2026-05-10" };
  }),
  broken("BR-49", "standard", "payment.means_code", ({ payment }) => {
    payment.means_code = null;
  }),
  broken("BR-50", "standard", "payment.account", ({ payment }) => {
    payment.account = " ";
  }),
  broken("BR-55", "credit_note", "preceding_invoice.number", (document) => {
    document.preceding_invoice = { number: "", issue_date: "2026-05-13" };
  }),
  broken("BR-57", "intra_community", "deliver_to_country", (document) => {
    document.deliver_to_country = "";
  }),
  broken("BR-61", "standard", "payment.account", ({ payment }) => {
    payment.account = null;
  }),
  broken("BR-62", "standard", "seller.electronic_address_scheme", ({ seller }) => {
    seller.electronic_address_scheme = null;
  }),
  broken("BR-63", "standard", "buyer.electronic_address_scheme", ({ buyer }) => {
    buyer.electronic_address_scheme = null;
  }),
  broken("BR-CO-09", "standard", "seller.vat_id", ({ seller }) => {
    seller.vat_id = "QQ123456789";
  }),
  broken("BR-CO-09", "standard", "buyer.vat_id", ({ buyer }) => {
    buyer.vat_id = "123456789";
  }),
  broken("BR-CO-10", "standard", "totals.line_net", ({ totals }) => {
    totals.line_net = "345.01";
  }),
  broken("BR-CO-13", "standard", "totals.without_vat", ({ totals }) => {
    totals.without_vat = "345.01";
  }),
  broken("BR-CO-14", "standard", "totals.vat", ({ totals }) => {
    totals.vat = "30.01";
  }),
  broken("BR-CO-15", "standard", "totals.with_vat", ({ totals }) => {
    totals.with_vat = "375.01";
  }),
  broken("BR-CO-16", "standard", "totals.payable", ({ totals }) => {
    totals.payable = "374.99";
  }),
  broken("BR-CO-16", "standard", "totals.payable", ({ totals }) => {
    totals.paid = "1.00";
  }),
  broken("BR-CO-18", "standard", "vat_breakdown", (document) => {
    document.vat_breakdown = [];
  }),
  broken("BR-CO-19", "standard", "period.start", (document) => {
    document.period = { start: "", end: "" };
  }),
  broken("BR-CO-25", "standard", "due_date", ({ payment }) => {
    payment.terms = null;
  }),
  broken("BR-CO-26", "standard", "seller.vat_id", ({ seller }) => {
    seller.vat_id = null;
  }),
  broken("BR-CL-01", "standard", "type_code", (document) => {
    document.type_code = "999";
  }),
  broken("BR-CL-04", "standard", "currency", (document) => {
    document.currency = "DEM";
  }),
  broken("BR-CL-11", "standard", "seller.registration_scheme", ({ seller }) => {
    seller.registration_number = "1";
    seller.registration_scheme = "0001";
  }),
  broken("BR-CL-11", "standard", "buyer.registration_scheme", ({ buyer }) => {
    buyer.registration_number = "1";
    buyer.registration_scheme = "9999";
  }),
  broken("BR-CL-14", "standard", "seller.country", ({ seller }) => {
    seller.country = "ZZ";
  }),
  broken("BR-CL-14", "standard", "buyer.country", ({ buyer }) => {
    buyer.country = "UK";
  }),
  broken("BR-CL-14", "intra_community", "deliver_to_country", (document) => {
    document.deliver_to_country = "XX";
  }),
  broken("BR-CL-16", "standard", "payment.means_code", ({ payment }) => {
    payment.means_code = "71";
  }),
  broken("BR-CL-25", "standard", "seller.electronic_address_scheme", ({ seller }) => {
    seller.electronic_address_scheme = "0001";
  }),
  broken("BR-CL-25", "standard", "buyer.electronic_address_scheme", ({ buyer }) => {
    buyer.electronic_address_scheme = "XX";
  }),
  ...(
    [
      ["BR-DEC-09", "line_net"],
      ["BR-DEC-12", "without_vat"],
      ["BR-DEC-13", "vat"],
      ["BR-DEC-14", "with_vat"],
      ["BR-DEC-16", "paid"],
      ["BR-DEC-18", "payable"],
    ] as const
  ).map(([rule, field]) =>
    broken(rule, "standard", `totals.${field}`, ({ totals }) => {
      totals[field] = `${totals[field] ?? "0.00"}0`;
    }),
  ),

  broken(
    "BR-21",
    "standard",
    "lines.0.id",
    firstLine((line) => {
      line.id = "";
    }),
  ),
  broken(
    "BR-22",
    "standard",
    "lines.0.quantity",
    firstLine((line) => {
      line.quantity = missing;
    }),
  ),
  broken(
    "BR-23",
    "standard",
    "lines.0.unit_code",
    firstLine((line) => {
      line.unit_code = "";
    }),
  ),
  broken(
    "BR-24",
    "standard",
    "lines.0.net_amount",
    firstLine((line) => {
      line.net_amount = missing;
    }),
  ),
  broken(
    "BR-25",
    "standard",
    "lines.0.name",
    firstLine((line) => {
      line.name = "";
    }),
  ),
  broken(
    "BR-26",
    "standard",
    "lines.0.price_amount",
    firstLine((line) => {
      line.price_amount = missing;
    }),
  ),
  broken(
    "BR-27",
    "standard",
    "lines.0.price_amount",
    firstLine((line) => {
      line.price_amount = "-100.00";
      line.quantity = "-3";
    }),
  ),
  broken(
    "BR-30",
    "standard",
    "lines.0.period.end",
    firstLine((line) => {
      line.period = { start: "2026-05-13", end: "2026-05-10" };
    }),
  ),
  broken(
    "BR-CO-04",
    "standard",
    "lines.0.vat_category",
    firstLine((line) => {
      line.vat_category = "";
    }),
  ),
  broken(
    "BR-CO-20",
    "standard",
    "lines.0.period.start",
    firstLine((line) => {
      line.period = { start: "", end: "" };
    }),
  ),
  broken(
    "BR-CL-18",
    "standard",
    "lines.0.vat_category",
    firstLine((line) => {
      line.vat_category = "X";
    }),
  ),
  broken(
    "BR-CL-23",
    "standard",
    "lines.0.unit_code",
    firstLine((line) => {
      line.unit_code = "NIGHTS";
    }),
  ),
  broken(
    "BR-DEC-23",
    "standard",
    "lines.0.net_amount",
    firstLine((line) => {
      line.net_amount = "300.000";
    }),
  ),

  ...ofCategory("S", "S", "standard"),
  ...ofCategory("E", "E", "exempt"),
  ...ofCategory("Z", "Z", "zero"),
  ...ofCategory("AE", "AE", "reverse_charge"),
  ...ofCategory("IC", "K", "intra_community"),
  ...ofCategory("G", "G", "exported"),
  ...ofCategory("O", "O", "not_subject"),
  broken("BR-AE-02", "reverse_charge", "seller.vat_id", ({ buyer }) => {
    buyer.vat_id = null;
  }),
  broken("BR-IC-02", "intra_community", "seller.vat_id", ({ buyer }) => {
    buyer.vat_id = null;
  }),
  broken("BR-O-02", "not_subject", "seller.vat_id", ({ buyer }) => {
    buyer.vat_id = "DE123456789";
  }),
  broken("BR-E-01", "standard", "vat_breakdown", ({ vat_breakdown }) => {
    vat_breakdown.push({ ...of(vat_breakdown, "E") });
  }),
  broken(
    "BR-S-08",
    "standard",
    "lines.0.vat_rate",
    firstLine((line) => {
      line.vat_rate = "22";
    }),
  ),
  broken("BR-O-11", "standard", "vat_breakdown", ({ vat_breakdown }) => {
    const vat = of(vat_breakdown, "E");
    vat.vat_category = "O";
    vat.vat_rate = null;
  }),
  broken(
    "BR-O-12",
    "not_subject",
    "lines.0.vat_category",
    firstLine((line) => {
      line.vat_category = "Z";
      line.vat_rate = "0";
    }),
  ),
  broken("BR-IC-11", "intra_community", "period", (document) => {
    document.period = null;
  }),
  broken("BR-IC-12", "intra_community", "deliver_to_country", (document) => {
    document.deliver_to_country = null;
  }),
  broken(
    "BR-45",
    "standard",
    "vat_breakdown.0.taxable_amount",
    firstVat((vat) => {
      vat.taxable_amount = missing;
    }),
  ),
  broken(
    "BR-46",
    "standard",
    "vat_breakdown.0.tax_amount",
    firstVat((vat) => {
      vat.tax_amount = missing;
    }),
  ),
  broken(
    "BR-47",
    "standard",
    "vat_breakdown.0.vat_category",
    firstVat((vat) => {
      vat.vat_category = "";
    }),
  ),
  broken(
    "BR-48",
    "standard",
    "vat_breakdown.0.vat_rate",
    firstVat((vat) => {
      vat.vat_rate = null;
    }),
  ),
  broken(
    "BR-CO-17",
    "standard",
    "vat_breakdown.0.tax_amount",
    firstVat((vat) => {
      vat.tax_amount = "31.00";
    }),
  ),
  broken(
    "BR-CL-17",
    "standard",
    "vat_breakdown.0.vat_category",
    firstVat((vat) => {
      vat.vat_category = "X";
    }),
  ),
  broken(
    "BR-CL-22",
    "exempt",
    "vat_breakdown.0.exemption_reason_code",
    firstVat((vat) => {
      vat.exemption_reason_code = "VATEX-EU-NONE";
    }),
  ),
  broken(
    "BR-DEC-19",
    "standard",
    "vat_breakdown.0.taxable_amount",
    firstVat((vat) => {
      vat.taxable_amount = "300.000";
    }),
  ),
  broken(
    "BR-DEC-20",
    "standard",
    "vat_breakdown.0.tax_amount",
    firstVat((vat) => {
      vat.tax_amount = "30.000";
    }),
  ),

  broken("PEPPOL-EN16931-R001", "standard", "profile.process_id", ({ profile }) => {
    profile.process_id = null;
  }),
  broken("PEPPOL-EN16931-R003", "standard", "buyer_reference", (document) => {
    document.buyer_reference = null;
  }),
  broken("PEPPOL-EN16931-R004", "standard", "profile.customization_id", ({ profile }) => {
    profile.customization_id = "urn:cen.eu:en16931:2017";
  }),
  broken("PEPPOL-EN16931-R007", "standard", "profile.process_id", ({ profile }) => {
    profile.process_id = "billing";
  }),
  broken("PEPPOL-EN16931-R008", "standard", "note", (document) => {
    document.note = " ";
  }),
  broken("PEPPOL-EN16931-R010", "standard", "buyer.electronic_address", ({ buyer }) => {
    buyer.electronic_address = null;
  }),
  broken("PEPPOL-EN16931-R020", "standard", "seller.electronic_address", ({ seller }) => {
    seller.electronic_address = null;
  }),
  broken("PEPPOL-EN16931-R061", "standard", "payment.means_code", ({ payment }) => {
    payment.means_code = "49";
  }),
  broken(
    "PEPPOL-EN16931-R110",
    "standard",
    "lines.0.period.start",
    firstLine((line) => {
      line.period = { start: "2026-05-09", end: "2026-05-13" };
    }),
  ),
  broken(
    "PEPPOL-EN16931-R111",
    "standard",
    "lines.0.period.end",
    firstLine((line) => {
      line.period = { start: "2026-05-10", end: "2026-05-14" };
    }),
  ),
  broken(
    "PEPPOL-EN16931-R120",
    "standard",
    "lines.0.net_amount",
    firstLine((line) => {
      line.quantity = "4";
    }),
  ),
  broken(
    "PEPPOL-EN16931-R121",
    "standard",
    "lines.0.price_base_quantity",
    firstLine((line) => {
      line.price_base_quantity = "0";
    }),
  ),
  broken("PEPPOL-EN16931-CL007", "standard", "currency", (document) => {
    document.currency = "EURO";
  }),
  broken("PEPPOL-EN16931-CL008", "standard", "seller.electronic_address_scheme", ({ seller }) => {
    seller.electronic_address_scheme = "EM";
  }),
  broken("PEPPOL-EN16931-CL008", "standard", "buyer.electronic_address_scheme", ({ buyer }) => {
    buyer.electronic_address_scheme = "EM";
  }),
  ...(
    [
      ["issue_date", (document, date) => (document.issue_date = date)],
      ["due_date", (document, date) => (document.due_date = date)],
    ] as [string, (document: Breakable, date: string) => void][]
  ).map(([path, set]) => broken("PEPPOL-EN16931-F001", "standard", path, (document) => set(document, "2026-02-30"))),
  broken("PEPPOL-EN16931-F001", "standard", "period.start", (document) => {
    document.period = { start: "10 May", end: "2026-05-13" };
  }),
  broken("PEPPOL-EN16931-P0100", "standard", "type_code", (document) => {
    document.type_code = "381";
  }),
  broken("PEPPOL-EN16931-P0101", "credit_note", "type_code", (document) => {
    document.type_code = "380";
  }),
  ofCode("PEPPOL-EN16931-P0104", "VATEX-EU-G", "exempt"),
  ofCode("PEPPOL-EN16931-P0105", "VATEX-EU-O", "exempt"),
  ofCode("PEPPOL-EN16931-P0106", "VATEX-EU-IC", "exempt"),
  ofCode("PEPPOL-EN16931-P0107", "VATEX-EU-AE", "exempt"),
  ofCode("PEPPOL-EN16931-P0108", "VATEX-EU-D", "exported"),
  ofCode("PEPPOL-EN16931-P0109", "VATEX-EU-F", "exported"),
  ofCode("PEPPOL-EN16931-P0110", "VATEX-EU-I", "exported"),
  ofCode("PEPPOL-EN16931-P0111", "VATEX-EU-J", "exported"),
  ...ofScheme("PEPPOL-COMMON-R040", "0088", "7300010000002"),
  ...ofScheme("PEPPOL-COMMON-R041", "0192", "974760674"),
  ...ofScheme("PEPPOL-COMMON-R042", "0184", "DK1234"),
  ...ofScheme("PEPPOL-COMMON-R043", "0208", "0123456789"),
  ...ofScheme("PEPPOL-COMMON-R049", "0007", "5560360794"),
  ...ofScheme("PEPPOL-COMMON-R050", "0151", "51824753557"),

  broken("DE-R-001", "german", "payment.means_code", ({ payment }) => {
    payment.means_code = null;
    payment.account = null;
  }),
  broken("DE-R-002", "german", "seller.contact_name", ({ seller }) => {
    for (const field of ["contact_name", "contact_phone", "contact_email"] as const) seller[field] = null;
  }),
  broken("DE-R-003", "german", "seller.city", ({ seller }) => {
    seller.city = null;
  }),
  broken("DE-R-004", "german", "seller.postal_code", ({ seller }) => {
    seller.postal_code = null;
  }),
  broken("DE-R-005", "german", "seller.contact_name", ({ seller }) => {
    seller.contact_name = null;
  }),
  broken("DE-R-006", "german", "seller.contact_phone", ({ seller }) => {
    seller.contact_phone = null;
  }),
  broken("DE-R-007", "german", "seller.contact_email", ({ seller }) => {
    seller.contact_email = null;
  }),
  broken("DE-R-008", "german", "buyer.city", ({ buyer }) => {
    buyer.city = null;
  }),
  broken("DE-R-009", "german", "buyer.postal_code", ({ buyer }) => {
    buyer.postal_code = null;
  }),
  broken(
    "DE-R-014",
    "german",
    "vat_breakdown",
    firstVat((vat) => {
      vat.vat_rate = null;
    }),
  ),
  broken("DE-R-015", "german", "buyer_reference", (document) => {
    document.buyer_reference = null;
    document.order_reference = "Order 1";
  }),
  broken("DE-R-016", "german", "seller.vat_id", ({ seller }) => {
    seller.vat_id = null;
  }),
  broken("DE-R-010", "german", "deliver_to_country", (document) => {
    document.deliver_to_country = "DE";
  }),
  broken("DE-R-011", "german", "deliver_to_country", (document) => {
    document.deliver_to_country = "DE";
  }),
  broken("DE-R-018", "german", "payment.terms", ({ payment }) => {
    payment.terms = "#SKONTO#TAGE=7#PROZENT=2#\n";
  }),
  broken("DE-R-018", "german", "payment.terms", ({ payment }) => {
    payment.terms = "#RABATT#";
  }),
  broken("DE-R-023-1", "german", "payment.account", ({ payment }) => {
    payment.account = null;
  }),
  broken("DE-R-024-1", "german", "payment.means_code", ({ payment }) => {
    payment.means_code = "48";
    payment.account = null;
  }),
  broken("DE-R-025-1", "german", "payment.means_code", ({ payment }) => {
    payment.means_code = "59";
    payment.account = null;
  }),
  broken("DK-R-002", "danish", "seller.registration_number", ({ seller }) => {
    seller.registration_number = null;
    seller.registration_scheme = null;
  }),
  broken("DK-R-005", "danish", "payment.means_code", ({ payment }) => {
    payment.means_code = "30";
  }),
  broken("DK-R-006", "danish", "payment.means_code", ({ payment }) => {
    payment.means_code = "42";
    payment.account = null;
  }),
  broken("DK-R-007", "danish", "payment.means_code", ({ payment }) => {
    payment.means_code = "49";
    payment.account = null;
  }),
  broken("DK-R-008", "danish", "payment.means_code", ({ payment }) => {
    payment.means_code = "50";
    payment.account = null;
  }),
  broken("DK-R-010", "danish", "payment.means_code", ({ payment }) => {
    payment.means_code = "93";
    payment.account = null;
  }),
  broken("DK-R-014", "danish", "seller.registration_scheme", ({ seller }) => {
    seller.registration_scheme = "0002";
  }),
  broken("DK-R-016", "danish_credit_note", "totals.payable", ({ totals }) => {
    totals.payable = `-${totals.payable}`;
  }),
  broken("GR-R-001-1", "standard", "number", ({ seller }) => {
    seller.country = "GR";
  }),
  broken("IS-R-002", "icelandic", "seller.registration_number", ({ seller }) => {
    seller.registration_scheme = "0002";
  }),
  broken("IS-R-003", "icelandic", "seller.address_line1", ({ seller }) => {
    seller.postal_code = null;
  }),
  broken("IS-R-004", "icelandic", "buyer.registration_number", ({ buyer }) => {
    buyer.registration_number = null;
    buyer.registration_scheme = null;
  }),
  broken("IS-R-005", "icelandic", "buyer.address_line1", ({ buyer }) => {
    buyer.address_line1 = null;
  }),
  broken("IS-R-006", "icelandic", "payment.means_code", ({ payment }) => {
    payment.means_code = "9";
    payment.account = null;
  }),
  broken("IS-R-007", "icelandic", "payment.means_code", ({ payment }) => {
    payment.means_code = "42";
    payment.account = null;
  }),
  broken("IT-R-001", "standard", "seller.tax_number", ({ seller }) => {
    seller.tax_number = "1234";
  }),
  broken("IT-R-002", "standard", "seller.address_line1", ({ seller }) => {
    seller.address_line1 = null;
  }),
  broken("IT-R-003", "standard", "seller.city", ({ seller }) => {
    seller.city = null;
  }),
  broken("IT-R-004", "standard", "seller.postal_code", ({ seller }) => {
    seller.postal_code = null;
  }),
  broken("NL-R-001", "dutch_credit_note", "preceding_invoice.number", (document) => {
    document.preceding_invoice = null;
  }),
  broken("NL-R-002", "dutch", "seller.address_line1", ({ seller }) => {
    seller.city = null;
  }),
  broken("NL-R-003", "dutch", "seller.registration_scheme", ({ seller }) => {
    seller.registration_scheme = "0002";
  }),
  broken("NL-R-004", "dutch", "buyer.address_line1", ({ buyer }) => {
    buyer.postal_code = null;
  }),
  broken("NL-R-005", "dutch", "buyer.registration_scheme", ({ buyer }) => {
    buyer.registration_scheme = "0002";
  }),
  broken("NL-R-007", "dutch", "payment.means_code", ({ payment }) => {
    payment.means_code = null;
    payment.account = null;
  }),
  broken("NL-R-008", "dutch", "payment.means_code", ({ payment }) => {
    payment.means_code = "10";
    payment.account = null;
  }),
  broken("NO-R-001", "norwegian", "seller.vat_id", ({ seller }) => {
    seller.vat_id = "NO974760674MVA";
  }),
  broken("SE-R-001", "swedish", "seller.vat_id", ({ seller }) => {
    seller.vat_id = "SE5560360793";
  }),
  broken("SE-R-002", "swedish", "seller.vat_id", ({ seller }) => {
    seller.vat_id = "SE55603607930A";
  }),
  broken("SE-R-003", "swedish", "seller.registration_number", ({ seller }) => {
    seller.registration_number = "556036079X";
    seller.registration_scheme = null;
  }),
  broken("SE-R-004", "swedish", "seller.registration_number", ({ seller }) => {
    seller.registration_number = "55603607";
    seller.registration_scheme = null;
  }),
  broken("SE-R-005", "swedish", "seller.tax_number", ({ seller }) => {
    seller.tax_number = "123";
  }),
  broken("SE-R-006", "swedish", "vat_breakdown", (document) => {
    first(document.vat_breakdown).vat_rate = "13";
    first(document.lines).vat_rate = "13";
  }),
  broken("SE-R-013", "swedish", "seller.registration_number", ({ seller }) => {
    seller.registration_number = "5560360794";
    seller.registration_scheme = null;
  }),
];

/** The broken document itself. */
export function breakInvoice({ from, breaks }: BrokenInvoice): InvoiceDocument {
  const document = structuredClone(soundInvoices[from]) as Breakable;
  breaks(document);
  return document as InvoiceDocument;
}
