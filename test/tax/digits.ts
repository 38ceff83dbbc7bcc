/**
 * `npm run tax:digits -- CHECKOUT [COUNT]`: whether this calculator answers random stays
 * in all places with the same digits as the one of another checkout, by the same rules.
 */
import { resolve } from "node:path";
import { calculateWith } from "#tax/calculator/calculate.ts";
import { CalculationProblem } from "#tax/calculator/calculation_request.ts";
import { loadRuleset } from "#tax/rules/rule_files.ts";
import { randomStay } from "#test/kit/tax/random_stay.ts";

const [checkout, count = "100000"] = process.argv.slice(2);
if (checkout === undefined) throw new Error("Name another checkout of the repository");
const other = (await import(resolve(checkout, "api/tax/calculator/calculate.ts"))) as {
  calculateWith: typeof calculateWith;
};
const ruleset = loadRuleset();
const codes = [...ruleset.places.keys()];
const today = "2026-11-22";
let different = 0;
let refused = 0;
for (let index = 0; index < Number(count); index++) {
  const request = randomStay(codes, ruleset, index);
  const place = ruleset.rulesIn(request.jurisdiction_code ?? "");
  if (!place) throw new Error(`Expected the place ${request.jurisdiction_code}`);
  const [mine, theirs] = [calculateWith, other.calculateWith].map((calculate) => {
    try {
      const { tax_breakdown, totals_by_kind, total_without_tax, missing_inputs } = calculate(place, request, today);
      const amounts = tax_breakdown.components
        .filter((one) => Number(one.tax_amount) !== 0)
        .map((one) => [
          one.rule_id,
          one.version,
          one.tax_amount,
          one.taxable_amount,
          one.rounding.unrounded,
          one.slices,
        ]);
      const kinds = Object.entries(totals_by_kind).filter(([, amount]) => Number(amount) !== 0);
      const missing = missing_inputs.map(({ field, min_tax, max_tax }) => [field, min_tax, max_tax]);
      return JSON.stringify([amounts, kinds, total_without_tax, missing]);
    } catch (error) {
      // Of the other checkout it is a class of its own.
      if (!(error instanceof CalculationProblem) && (error as Error).name !== "CalculationProblem") throw error;
      return `refused: ${(error as Error).message}`;
    }
  });
  if (mine?.startsWith("refused")) refused++;
  if (mine !== theirs && different++ < 5) console.log(JSON.stringify(request), "\n  here", mine, "\n  there", theirs);
}
console.log(`${count} stays (${refused} refused alike): ${different} with other digits`);
process.exitCode = different > 0 ? 1 : 0;
