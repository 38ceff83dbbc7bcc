/**
 * `npm run tax:cases`: runs every published example of the rules files, and the public cases where
 * their file lies beside the repository, and prints a table by jurisdiction. Fails when an amount
 * differs; a case of medium confidence only says so.
 */
import { calculate } from "#tax/calculator/calculate.ts";
import type { CalculationRequest } from "#tax/calculator/calculation_request.ts";
import { Rational, sumOf } from "#tax/calculator/numbers/rational.ts";
import { loadRuleset } from "#tax/rules/rule_files.ts";
import { readPublicCases } from "#test/kit/tax/public_tax_cases.ts";

interface Judged {
  code: string;
  passed: boolean;
  isBinding: boolean;
  difference: string;
}

const ruleset = loadRuleset();
const today = new Date().toISOString().slice(0, 10);
const examples = ruleset.examples.map((example) =>
  judge(`${example.file}: ${example.name}`, example.request, Object.entries(example.expected), true),
);
const cases = (readPublicCases() ?? []).map((one) =>
  judge(
    `${one.id} (${one.confidence})`,
    one.request,
    [[one.kinds.join("+"), one.expectedTax]],
    one.confidence === "high",
  ),
);

print("Examples of the rules files", examples);
if (cases.length > 0) print("Public cases", cases);
const failures = [...examples, ...cases].filter((one) => !one.passed);
for (const { difference } of failures) console.log(difference);
process.exitCode = failures.some((one) => one.isBinding) ? 1 : 0;

function judge(
  name: string,
  request: Record<string, unknown>,
  expected: readonly (readonly [string, string])[],
  isBinding: boolean,
): Judged {
  const code = String(request.jurisdiction_code);
  try {
    const { totals_by_kind } = calculate(request as CalculationRequest, ruleset, { today });
    const wrong = expected.flatMap(([kinds, amount]) => {
      const found = sumOf(kinds.split("+").map((kind) => Rational.parse(totals_by_kind[kind] ?? "0")));
      return found.compare(Rational.parse(amount)) === 0
        ? []
        : [`${kinds}: expected ${amount}, found ${found.toText()}`];
    });
    return { code, passed: wrong.length === 0, isBinding, difference: `${name}: ${wrong.join("; ")}` };
  } catch (error) {
    return { code, passed: false, isBinding, difference: `${name}: ${(error as Error).message}` };
  }
}

function print(title: string, judged: readonly Judged[]): void {
  console.log(`\n${title}: ${judged.filter((one) => one.passed).length} of ${judged.length} as published\n`);
  for (const code of [...new Set(judged.map((one) => one.code))].sort()) {
    const own = judged.filter((one) => one.code === code);
    const passed = own.filter((one) => one.passed).length;
    const name = ruleset.placeOf(code)?.name ?? "unknown";
    const mark = passed === own.length ? "ok" : own.some((one) => !one.passed && one.isBinding) ? "WRONG" : "differs";
    console.log(`  ${code.padEnd(16)} ${name.padEnd(46)} ${`${passed}/${own.length}`.padStart(6)}  ${mark}`);
  }
  console.log();
}
