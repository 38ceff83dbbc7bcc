/** EN 16931: VAT, by category. */
import { Rational, sumOf } from "../../calculator/numbers/rational.ts";
import { isVatExemptionCode } from "../code_lists.ts";
import { type InvoiceDocument, type VatBreakdown, type VatCategory, vatCategories } from "../invoice_document.ts";
import {
  amountOf,
  type BusinessRule,
  decimalOf,
  eachLine,
  eachVat,
  hasTwoDecimals,
  isFilled,
  isSame,
  mustHold,
} from "./business_rule.ts";

const names: Readonly<Record<VatCategory, { rules: string; text: string }>> = {
  S: { rules: "S", text: "standard rated" },
  Z: { rules: "Z", text: "zero rated" },
  E: { rules: "E", text: "exempt" },
  AE: { rules: "AE", text: "reverse charge" },
  K: { rules: "IC", text: "intra-community supply" },
  G: { rules: "G", text: "export outside the Union" },
  O: { rules: "O", text: "not subject to VAT" },
};

const hasReason = ({ exemption_reason, exemption_reason_code }: VatBreakdown) =>
  isFilled(exemption_reason) || isFilled(exemption_reason_code);
const linesOf = ({ lines }: InvoiceDocument, category: VatCategory) =>
  lines.filter((line) => line.vat_category === category);
const breakdownsOf = ({ vat_breakdown }: InvoiceDocument, category: VatCategory) =>
  vat_breakdown.filter((vat) => vat.vat_category === category);
const isRate = (text: string | null, rate: string | null) =>
  text === null || rate === null ? text === rate : isSame(amountOf(text), amountOf(rate));

/** Lines of a breakdown: of its category, and where it is S of its rate as well. */
function netUnder(document: InvoiceDocument, vat: VatBreakdown): Rational {
  const own = linesOf(document, vat.vat_category).filter(
    (line) => vat.vat_category !== "S" || isRate(line.vat_rate, vat.vat_rate),
  );
  return sumOf(own.map(({ net_amount }) => amountOf(net_amount)));
}

/** Within less than one unit of currency, as the published rule has it: VAT may be rounded night by night. */
function isTaxOf({ tax_amount, taxable_amount, vat_rate }: VatBreakdown): boolean {
  const expected = amountOf(taxable_amount).times(amountOf(vat_rate)).over(Rational.of(100));
  const rounded = expected.roundTo(Rational.of(1, 100), "half_up");
  const difference = amountOf(tax_amount).minus(rounded);
  return (difference.isNegative ? Rational.zero.minus(difference) : difference).compare(Rational.one) < 0;
}

function sellerIsKnown({ seller, buyer }: InvoiceDocument, category: VatCategory): boolean {
  const hasVatId = isFilled(seller.vat_id);
  switch (category) {
    case "S":
    case "Z":
    case "E":
      return hasVatId || isFilled(seller.tax_number);
    case "AE":
      return (
        (hasVatId || isFilled(seller.tax_number)) && (isFilled(buyer.vat_id) || isFilled(buyer.registration_number))
      );
    case "K":
      return hasVatId && isFilled(buyer.vat_id);
    case "G":
      return hasVatId;
    case "O":
      return seller.vat_id === null && buyer.vat_id === null;
  }
}

const idsExpected: Readonly<Record<VatCategory, string>> = {
  S: "Expected a VAT id or tax number of the seller",
  Z: "Expected a VAT id or tax number of the seller",
  E: "Expected a VAT id or tax number of the seller",
  AE: "Expected a VAT id or tax number of the seller, and a VAT id or registration number of the buyer",
  K: "Expected VAT ids of seller and buyer",
  G: "Expected a VAT id of the seller",
  O: "Expected no VAT ids of seller and buyer",
};

function rulesFor(category: VatCategory): BusinessRule[] {
  const { rules, text } = names[category];
  const id = (number: string) => `BR-${rules}-${number}`;
  const isOwn = (one: { vat_category: VatCategory | null }) => one.vat_category === category;
  const isTaxed = category === "S";
  const needsReason = category !== "S" && category !== "Z";
  return [
    mustHold(
      id("01"),
      "BT-118",
      "vat_breakdown",
      isTaxed
        ? `Expected a VAT breakdown that is ${text}, for the lines that are`
        : `Expected exactly one VAT breakdown that is ${text}, for the lines that are`,
      (document) => {
        const count = breakdownsOf(document, category).length;
        if (linesOf(document, category).length === 0 && count === 0) return true;
        return isTaxed ? count >= 1 : count === 1;
      },
    ),
    mustHold(
      id("02"),
      "BT-31",
      "seller.vat_id",
      `${idsExpected[category]}, as lines are ${text}`,
      (document) => linesOf(document, category).length === 0 || sellerIsKnown(document, category),
    ),
    eachLine(
      id("05"),
      "BT-152",
      "vat_rate",
      isTaxed ? "Expected a rate above 0" : category === "O" ? "Expected no rate" : "Expected a rate of 0",
      (line) => {
        if (!isOwn(line)) return true;
        if (category === "O") return line.vat_rate === null;
        const rate = decimalOf(line.vat_rate);
        return rate !== undefined && (isTaxed ? rate.compare(Rational.zero) > 0 : rate.isZero);
      },
    ),
    eachVat(
      id("08"),
      "BT-116",
      "taxable_amount",
      `Expected the sum of lines that are ${text}`,
      (vat, document) => !isOwn(vat) || isSame(amountOf(vat.taxable_amount), netUnder(document, vat)),
    ),
    eachVat(
      id("09"),
      "BT-117",
      "tax_amount",
      isTaxed ? "Expected the taxable amount times the rate" : "Expected no VAT",
      (vat) => !isOwn(vat) || (isTaxed ? isTaxOf(vat) : amountOf(vat.tax_amount).isZero),
    ),
    eachVat(
      id("10"),
      "BT-120",
      "exemption_reason",
      needsReason ? `Expected the reason why it is ${text}` : "Expected no reason of exemption",
      (vat) => !isOwn(vat) || hasReason(vat) === needsReason,
    ),
  ];
}

export const vatRules: readonly BusinessRule[] = [
  ...vatCategories.flatMap(rulesFor),
  {
    id: "BR-S-08",
    term: "BT-152",
    message: "Expected a VAT breakdown of this rate",
    brokenAt: (document) =>
      document.lines.flatMap((line, index) =>
        line.vat_category !== "S" || breakdownsOf(document, "S").some((vat) => isRate(vat.vat_rate, line.vat_rate))
          ? []
          : [`lines.${index}.vat_rate`],
      ),
  },
  mustHold(
    "BR-O-11",
    "BT-118",
    "vat_breakdown",
    "Expected nothing else beside what is not subject to VAT",
    (document) =>
      breakdownsOf(document, "O").length === 0 || document.vat_breakdown.every((vat) => vat.vat_category === "O"),
  ),
  eachLine(
    "BR-O-12",
    "BT-151",
    "vat_category",
    "Expected a line that is not subject to VAT, as others are",
    (line, document) => breakdownsOf(document, "O").length === 0 || line.vat_category === "O",
  ),
  mustHold(
    "BR-IC-11",
    "BG-14",
    "period",
    "Expected the period of an intra-community supply",
    (document) => breakdownsOf(document, "K").length === 0 || document.period !== null,
  ),
  mustHold(
    "BR-IC-12",
    "BT-80",
    "deliver_to_country",
    "Expected the country that is supplied to",
    (document) => breakdownsOf(document, "K").length === 0 || isFilled(document.deliver_to_country),
  ),
  eachVat("BR-45", "BT-116", "taxable_amount", "Expected a taxable amount", ({ taxable_amount }) =>
    Boolean(decimalOf(taxable_amount)),
  ),
  eachVat("BR-46", "BT-117", "tax_amount", "Expected a tax amount", ({ tax_amount }) => Boolean(decimalOf(tax_amount))),
  eachVat("BR-47", "BT-118", "vat_category", "Expected a VAT category", ({ vat_category }) => isFilled(vat_category)),
  eachVat(
    "BR-48",
    "BT-119",
    "vat_rate",
    "Expected a rate, unless it is not subject to VAT",
    (vat) => vat.vat_category === "O" || Boolean(decimalOf(vat.vat_rate)),
  ),
  eachVat("BR-CO-17", "BT-117", "tax_amount", "Expected the taxable amount times the rate", (vat) => isTaxOf(vat)),
  eachVat(
    "BR-CL-17",
    "BT-118",
    "vat_category",
    "Expected a category of UNCL 5305",
    ({ vat_category: category }) => !isFilled(category) || vatCategories.includes(category),
  ),
  eachVat(
    "BR-CL-22",
    "BT-121",
    "exemption_reason_code",
    "Expected a VATEX code",
    ({ exemption_reason_code: code }) => code === null || isVatExemptionCode(code),
  ),
  eachVat("BR-DEC-19", "BT-116", "taxable_amount", "Expected at most two decimals", (vat) =>
    hasTwoDecimals(vat.taxable_amount),
  ),
  eachVat("BR-DEC-20", "BT-117", "tax_amount", "Expected at most two decimals", (vat) =>
    hasTwoDecimals(vat.tax_amount),
  ),
];
