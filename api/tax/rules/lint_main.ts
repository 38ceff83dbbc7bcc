/**
 * `npm run tax:lint`: what is wrong with the rules files beyond what loading refuses; fails when
 * anything is. With `--release` what should have been looked at again fails as well: time alone never
 * turns the other checks red.
 */
import { lintRuleset, reviewsDue } from "./lint.ts";
import { loadRuleset } from "./rule_files.ts";

const ruleset = loadRuleset();
const problems = lintRuleset(ruleset);
const due = reviewsDue(ruleset, new Date().toISOString().slice(0, 10));
for (const problem of problems) console.log(problem);
for (const { id, reviewBy, url } of due) console.log(`due since ${reviewBy}: ${id}, ${url}`);
console.log(`${ruleset.rules.size} rules, ${problems.length} problems, ${due.length} to be looked at again`);
process.exitCode = problems.length > 0 || (due.length > 0 && process.argv.includes("--release")) ? 1 : 0;
