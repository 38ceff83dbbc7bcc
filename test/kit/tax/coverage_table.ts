/** How much of the law is known where most people go: what the README and `docs/tax.md` say of it. */
import { slotReports, statusOf } from "#tax/calculator/completeness.ts";
import type { Ruleset } from "#tax/rules/ruleset.ts";

const firstMany = 100;

/** @returns the documents with the figures as they are */
export function withCoverage(ruleset: Ruleset, { readme, page }: { readme: string; page: string }) {
  const { total, rows } = coverageOf(ruleset);
  const [first, all] = rows;
  const sentence = `Of the ${firstMany} most visited destinations ${first?.counted} answer without a tax that is unknown, of ${total} of them ${all?.counted}; the others [say what they do not know](docs/tax.md).`;
  const table = [
    "| Destinations, most visited first | night | `complete` | `assumed` | `incomplete` |",
    "|---|---|---|---|---|",
    ...rows.map(({ many, night, of }) => `| ${many} | ${night} | ${of.complete} | ${of.assumed} | ${of.incomplete} |`),
  ].join("\n");
  return {
    readme: readme.replace(/Of the \d+ most visited destinations .*?\(docs\/tax\.md\)\./, sentence),
    page: page.replace(/(<!-- The table is made by .* -->\n\n)(\|.*\n)*/, `$1${table}\n`),
  };
}

/** For a night a month after the sources were last read, and for one of the next summer. */
function coverageOf(ruleset: Ruleset) {
  const today = lastReadIn(ruleset);
  const nextMonth = new Date(Date.parse(today) + 30 * 86_400_000).toISOString().slice(0, 10);
  const nights = [nextMonth, `${Number(today.slice(0, 4)) + 1}-07-15`];
  const total = ruleset.destinations.length;
  const rows = nights.flatMap((night) =>
    [firstMany, total].map((many) => {
      const of = { complete: 0, assumed: 0, incomplete: 0 };
      for (const { code } of ruleset.destinations.slice(0, many)) {
        const place = ruleset.rulesIn(code);
        if (place) of[statusOf(slotReports(place, { today, dates: [night], asKnownAt: undefined }))]++;
      }
      return { many, night, of, counted: of.complete + of.assumed };
    }),
  );
  return { total, rows };
}

function lastReadIn({ rules }: Ruleset): string {
  const days = [...rules.values()].flatMap(({ versions }) => versions.map(({ source }) => source.checked_on));
  return days.sort().at(-1) ?? "";
}
