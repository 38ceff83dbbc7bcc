/** EN 16931: each line. */
import { isUnit } from "../code_lists.ts";
import { type DocumentLine, vatCategories } from "../invoice_document.ts";
import { amountOf, type BusinessRule, decimalOf, eachLine, hasTwoDecimals, isFilled } from "./business_rule.ts";

const isCategory = ({ vat_category }: DocumentLine) => vat_category !== null && vatCategories.includes(vat_category);

export const lineRules: readonly BusinessRule[] = [
  eachLine("BR-21", "BT-126", "id", "Expected an identifier of the line", ({ id }) => isFilled(id)),
  eachLine("BR-22", "BT-129", "quantity", "Expected a quantity", ({ quantity }) => Boolean(decimalOf(quantity))),
  eachLine("BR-23", "BT-130", "unit_code", "Expected a unit of measure", ({ unit_code }) => isFilled(unit_code)),
  eachLine("BR-24", "BT-131", "net_amount", "Expected a net amount", ({ net_amount }) =>
    Boolean(decimalOf(net_amount)),
  ),
  eachLine("BR-25", "BT-153", "name", "Expected the item's name", ({ name }) => isFilled(name)),
  eachLine("BR-26", "BT-146", "price_amount", "Expected the item's net price", ({ price_amount }) =>
    Boolean(decimalOf(price_amount)),
  ),
  eachLine(
    "BR-27",
    "BT-146",
    "price_amount",
    "Expected a price that is not negative",
    ({ price_amount }) => !amountOf(price_amount).isNegative,
  ),
  eachLine(
    "BR-30",
    "BT-135",
    "period.end",
    "Expected a period that ends no earlier than it starts",
    ({ period }) => period === null || period.end >= period.start,
  ),
  eachLine(
    "BR-CO-04",
    "BT-151",
    "vat_category",
    "Expected a VAT category: no law that we know says the VAT on it. Book it apart, or say with vat_exemption of the invoice details why it bears none",
    ({ vat_category }) => isFilled(vat_category),
  ),
  eachLine(
    "BR-CO-20",
    "BG-26",
    "period.start",
    "Expected a first or a last day of the period",
    ({ period }) => period === null || isFilled(period.start) || isFilled(period.end),
  ),
  eachLine("BR-CL-18", "BT-151", "vat_category", "Expected a category of UNCL 5305", (line) =>
    isFilled(line.vat_category) ? isCategory(line) : true,
  ),
  eachLine("BR-CL-23", "BT-130", "unit_code", "Expected a unit of UN/ECE Recommendation 20", ({ unit_code }) =>
    isFilled(unit_code) ? isUnit(unit_code) : true,
  ),
  eachLine("BR-DEC-23", "BT-131", "net_amount", "Expected at most two decimals", ({ net_amount }) =>
    hasTwoDecimals(net_amount),
  ),
];
