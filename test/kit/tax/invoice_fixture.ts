/** Stays, sellers and buyers for tests of invoices: one of each VAT treatment, over the countries that have it. */

import type { LegalProfile } from "#accounts/legal_profile.ts";
import { calculate } from "#tax/calculator/calculate.ts";
import type { CalculationAnswer } from "#tax/calculator/calculation_answer.ts";
import type { CalculationRequest } from "#tax/calculator/calculation_request.ts";
import { type InvoicedStay, projectInvoice } from "#tax/invoices/document_projection.ts";
import type { InvoiceDetails } from "#tax/invoices/invoice_details.ts";
import type { InvoiceDocument, VatCategory } from "#tax/invoices/invoice_document.ts";
import { loadRuleset } from "#tax/rules/rule_files.ts";

/** A seller who may send e-invoices, with what its country asks for. */
export function sellerIn(country: string): LegalProfile {
  return {
    legal_name: `Grand Hotel ${country}`,
    trading_name: "Grand Hotel",
    address_line1: "Main Street 1",
    city: "Town",
    postal_code: "1000",
    country,
    vat_id: vatIds[country] ?? `${country}123456789`,
    electronic_address: "7300010000001",
    electronic_address_scheme: "0088",
    contact_name: "Accounts",
    contact_phone: "+49 30 123456",
    contact_email: "accounts@hotel.example",
    iban: "DE89370400440532013000",
    payment_terms: "Due within 14 days",
    ...ofCountry[country],
  };
}

const vatIds: Readonly<Record<string, string>> = {
  NO: "NO974760673MVA",
  SE: "SE556036079301",
  CH: "CHE123456789",
};

const ofCountry: Readonly<Record<string, LegalProfile>> = {
  IS: { registration_number: "5501690339", registration_scheme: "0196" },
  DK: { registration_number: "10150817", registration_scheme: "0184", iban: "DK5000400440116243" },
  NL: { registration_number: "12345678", registration_scheme: "0106" },
  NO: { registration_number: "974760673", registration_scheme: "0192", tax_number: "Foretaksregisteret" },
  SE: { registration_number: "5560360793", registration_scheme: "0007", tax_number: "Godkänd för F-skatt" },
};

/** A company that buys, and all that an invoice to it needs. */
export const buyerDetails: InvoiceDetails = {
  buyer: {
    name: "Example Travel GmbH",
    vat_id: "DE123456789",
    address_line1: "Hauptstrasse 5",
    city: "Berlin",
    postal_code: "10115",
    country: "DE",
    electronic_address: "DE123456789",
    electronic_address_scheme: "9930",
  },
  buyer_reference: "Cost centre 4711",
};

export interface InvoiceCase {
  name: string;
  place: string;
  request?: Partial<CalculationRequest>;
  seller?: LegalProfile;
  details?: InvoiceDetails;
  /** VAT categories with their rates, in the order of the breakdown. */
  expected: readonly string[];
}

/** Each VAT treatment there is, and each country that has an idea of its own. */
export const invoiceCases: readonly InvoiceCase[] = [
  { name: "Germany: a spa tax passed on", place: "DE-BW-BADEN", expected: ["S 7", "E 0"] },
  { name: "Berlin: the hotel owes it, so it is price", place: "DE-BE", expected: ["S 7"] },
  { name: "France: taxe de séjour outside of VAT", place: "FR-06-NCE", expected: ["S 10", "E 0"] },
  { name: "Rome: a flat tax by person and night", place: "IT-RM-ROM", expected: ["S 10", "E 0"] },
  {
    name: "Balearic Islands: in the base at the lodging rate",
    place: "ES-IB",
    request: { stay_date: "2026-07-10" },
    expected: ["S 10"],
  },
  { name: "Barcelona: tax and surcharge, both in the base", place: "ES-CT-BCN", expected: ["S 10"] },
  {
    name: "Iceland 2024: in the base, a currency without decimals",
    place: "IS",
    request: { stay_date: "2024-07-10", currency: "ISK", nightly_rate: "25000" },
    expected: ["S 11"],
  },
  {
    name: "Iceland 2026: outside of the base",
    place: "IS",
    request: { currency: "ISK", nightly_rate: "25000" },
    expected: ["S 11", "E 0"],
  },
  {
    name: "Edinburgh: a percentage levy under VAT",
    place: "GB-EDH",
    request: { stay_date: "2026-08-10", currency: "GBP" },
    expected: ["S 20"],
  },
  {
    name: "Basel: a disbursement, without a code of the Union",
    place: "CH-BS",
    request: { currency: "CHF" },
    expected: ["S 3.8", "E 0"],
  },
  { name: "Vienna: a percentage beside 10 %", place: "AT-9", expected: ["S 10", "E 0"] },
  { name: "Amsterdam: 12.5 % beside 21 %", place: "NL-NH-AMS", expected: ["S 21", "E 0"] },
  { name: "Lisbon: 4.00 a person and night beside 6 %", place: "PT-11-LIS", expected: ["S 6", "E 0"] },
  { name: "Dubrovnik: sojourn tax", place: "HR-19-DBV", expected: ["S 13", "E 0"] },
  {
    name: "Prague in koruna",
    place: "CZ-10",
    request: { currency: "CZK", nightly_rate: "2500" },
    expected: ["S 12", "E 0"],
  },
  {
    name: "Norway: VAT alone",
    place: "NO",
    request: { currency: "NOK", nightly_rate: "1490" },
    expected: ["S 12"],
  },
  { name: "Denmark: VAT alone", place: "DK", request: { currency: "DKK", nightly_rate: "990" }, expected: ["S 25"] },
  { name: "Sweden: VAT alone", place: "SE", request: { currency: "SEK", nightly_rate: "1190" }, expected: ["S 12"] },
  {
    name: "Berlin, a price with the tax in it, odd cents, two rooms",
    place: "DE-BE",
    request: { price_includes_tax: true, nightly_rate: "99.99", rooms: 2 },
    expected: ["S 7"],
  },
  {
    name: "Rome, nights of different prices",
    place: "IT-RM-ROM",
    request: { nightly_rates: [{ date: "2026-05-11", rate: "133.33" }] },
    expected: ["S 10", "E 0"],
  },
];

const ruleset = loadRuleset();

/** A stay of three nights for two in May 2026, at 100.00 a night, unless the case has it otherwise. */
export function stayFor({ place, request }: Pick<InvoiceCase, "place" | "request">): InvoicedStay & {
  answer: CalculationAnswer;
} {
  const whole: CalculationRequest = {
    jurisdiction_code: place,
    stay_date: "2026-05-10",
    nights: 3,
    nightly_rate: "100.00",
    currency: "EUR",
    number_of_guests: 2,
    star_rating: 4,
    ...request,
  };
  const rules = ruleset.rulesIn(place)?.rules ?? [];
  return { request: whole, rules, answer: calculate(whole, ruleset, { today: "2026-01-01" }) };
}

/** The case's invoice, as it is once issued. */
export function issued(document: InvoiceDocument): InvoiceDocument {
  return { ...document, number: "INV-2026-000001", issue_date: "2026-05-13" };
}

export function invoiceFor(one: InvoiceCase): InvoiceDocument {
  const seller = one.seller ?? sellerIn(one.place.slice(0, 2));
  return issued(projectInvoice(stayFor(one), seller, one.details ?? buyerDetails));
}

/** A stay on which no VAT was calculated, and a city tax of 30.00 of a treatment. */
export function stayWithoutVat(vatTreatment = "outside"): InvoicedStay {
  const stay = stayFor({ place: "IT-RM-ROM" });
  const [component] = stay.answer.tax_breakdown.components.filter(({ kind }) => kind !== "vat");
  if (!component) throw new Error("Expected a city tax in Rome");
  const tax = { ...component, tax_amount: "30.00", vat_treatment: vatTreatment, slices: [] };
  return {
    ...stay,
    answer: {
      ...stay.answer,
      tax_breakdown: { ...stay.answer.tax_breakdown, components: [tax], total_tax: "30.00" },
      total_without_tax: "300.00",
      total_with_tax: "330.00",
    },
  };
}

/** Why a room bears no VAT, by category, with the reason that each needs. */
export const exemptions: Readonly<Partial<Record<VatCategory, NonNullable<InvoiceDetails["vat_exemption"]>>>> = {
  E: { category: "E", reason: "Small undertaking", reason_code: "VATEX-EU-135-1" },
  Z: { category: "Z" },
  AE: { category: "AE", reason: "Reverse charge", reason_code: "VATEX-EU-AE" },
  K: { category: "K", reason: "Intra-community supply", reason_code: "VATEX-EU-IC" },
  G: { category: "G", reason: "Export outside the Union", reason_code: "VATEX-EU-G" },
  O: { category: "O", reason: "Not subject to VAT", reason_code: "VATEX-EU-O" },
};
