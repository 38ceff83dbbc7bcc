/** `npm run tax:coverage`: writes how much of the law is known into the README and `docs/tax.md`. */
import { readFileSync, writeFileSync } from "node:fs";
import { loadRuleset } from "#tax/rules/rule_files.ts";
import { withCoverage } from "#test/kit/tax/coverage_table.ts";

const [readme, page] = ["README.md", "docs/tax.md"] as const;
const made = withCoverage(loadRuleset(), { readme: readFileSync(readme, "utf8"), page: readFileSync(page, "utf8") });
writeFileSync(readme, made.readme);
writeFileSync(page, made.page);
