/**
 * What the loader cannot refuse and no figure may be: a rule outside what the law allows, one that a
 * statement denies, words that do not carry their figure, a surtax on nothing. `npm run tax:lint`.
 */
import { allTermsOf, type KnownRule, type KnownVersion, type Ruleset, type Terms } from "./ruleset.ts";
import { fillsSlot, type PlaceSlot } from "./slot.ts";

/** @returns what is wrong, by rule or place */
export function lintRuleset(ruleset: Ruleset): string[] {
  return [
    ...[...ruleset.rules.values()].flatMap((rule) => lintRule(ruleset, rule)),
    ...lintStatements(ruleset),
    ...lintDestinations(ruleset),
  ];
}

/** What somebody has to look at again by `day`, the first due first. */
export function reviewsDue(ruleset: Ruleset, day: string): { id: string; reviewBy: string; url: string }[] {
  const due = [...ruleset.rules.values()].flatMap(({ id, versions }) =>
    versions
      .filter((version) => isCurrent(version, day))
      .flatMap(({ reviewBy, source }) =>
        reviewBy !== undefined && reviewBy <= day ? [{ id, reviewBy, url: source.url }] : [],
      ),
  );
  return due.sort((a, b) => (a.reviewBy < b.reviewBy ? -1 : 1));
}

const isCurrent = ({ to }: KnownVersion, day: string) => to === undefined || to > day;

function lintRule(ruleset: Ruleset, rule: KnownRule): string[] {
  const problems: string[] = [];
  const place = ruleset.rulesIn(rule.jurisdiction);
  const slots = place?.slots?.filter((slot) => isIn(slot, rule)) ?? [];
  if (slots.length === 0) problems.push(`${rule.id}: no slot of the atlas allows ${rule.kind} in ${rule.jurisdiction}`);
  // A tax of a narrower place is taken along where there is one.
  const holdsThere = (id: string) => {
    const other = ruleset.rules.get(id)?.jurisdiction ?? "";
    const isBelow =
      other !== rule.jurisdiction && ruleset.stackOf(other).some(({ code }) => code === rule.jurisdiction);
    return isBelow || place?.rules.some((one) => one.id === id);
  };
  for (const { amount, base } of allTermsOf(rule)) {
    for (const id of [...(amount?.percent_of_tax?.of ?? []), ...(base?.includes_tax ?? [])])
      if (!holdsThere(id)) problems.push(`${rule.id}: is taken of ${id}, which does not hold in ${rule.jurisdiction}`);
  }
  for (const version of rule.versions) {
    const of = `${rule.id}: version ${version.version}`;
    const figures = figuresIn(version);
    for (const { quote } of version.quotes ?? [])
      if (!carries(quote, figures)) problems.push(`${of}: none of its figures is in the words "${quote}"`);
    for (const { ceiling } of slots) {
      const above = ceiling && amountsAbove(version, ceiling);
      if (above) problems.push(`${of}: ${above} is above the ceiling of the law, ${ceiling.amount}`);
    }
  }
  return problems;
}

function isIn(slot: PlaceSlot, { kind, levels, jurisdiction }: KnownRule): boolean {
  return (
    fillsSlot(kind, slot) &&
    (levels ? levels.some((level) => slot.levels.includes(level)) : slot.places.includes(jurisdiction))
  );
}

/** A statement that there is no tax denies the rules of the place, and of all below it, on the same days. */
function lintStatements({ atlas, rules, rulesIn }: Ruleset): string[] {
  const denials = atlas.statements.filter(({ state }) => state === "known_zero");
  return denials.flatMap(({ file, in: codes, level, kind, from = "", to = "9999", note }) =>
    [...rules.values()].flatMap(({ id, jurisdiction, kind: own, versions }) => {
      const place = rulesIn(jurisdiction);
      const isBelow = place?.place.stack.some((code) => codes.includes(code));
      const slot = place?.slots?.find(
        (one) => one.level === level && fillsSlot(kind, one) && one.places.includes(jurisdiction),
      );
      if (!isBelow || !slot || !fillsSlot(own, slot)) return [];
      const isDenied = versions.some((version) => version.from < to && (version.to === undefined || version.to > from));
      return isDenied ? [`${file}: "${note}" denies ${id}`] : [];
    }),
  );
}

function lintDestinations({ destinations, rulesIn }: Ruleset): string[] {
  return destinations.flatMap(({ code, name }) =>
    rulesIn(code)?.slots?.length ? [] : [`destinations: the atlas has no slot for ${name} (${code})`],
  );
}

function termsOf({ terms, cases }: KnownVersion): readonly Terms[] {
  return cases ? cases.map((one) => one.terms) : [terms];
}

/** Every amount, percentage and fraction that a version names. */
function figuresIn(version: KnownVersion): Set<string> {
  const figures = new Set<string>();
  const add = ({
    flat,
    percent,
    fraction,
  }: {
    flat?: string;
    percent?: string;
    fraction?: { n: number; d: number };
  }) => {
    if (flat !== undefined) figures.add(plain(flat));
    if (percent !== undefined) figures.add(plain(percent));
    if (fraction) figures.add(`${fraction.n}/${fraction.d}`);
  };
  for (const { amount, persons, cap, floor } of termsOf(version)) {
    add(amount ?? {});
    for (const row of amount?.bands?.rows ?? []) add(row);
    if (amount?.percent_of_tax) figures.add(plain(amount.percent_of_tax.percent));
    for (const band of persons ?? []) if (band.flat !== undefined) figures.add(plain(band.flat));
    for (const bound of [cap, floor]) if (bound) figures.add(plain(bound.amount));
  }
  return figures;
}

/** `7,50`, `7.5` and `7.50` are one figure, and so are `1.000` and `1,000`. */
function carries(quote: string, figures: ReadonlySet<string>): boolean {
  const western = quote.normalize("NFKC");
  const written = western.match(/\d+\s?\/\s?\d+|\d[\d.,’'\u00a0 ]*\d|\d/g) ?? [];
  const words = western.toLowerCase().match(/\p{Letter}+/gu) ?? [];
  const named = words.flatMap((word) => numberWords.get(word) ?? []);
  return [...written.flatMap(readings), ...named].some((reading) => figures.has(plain(reading)));
}

/** Small amounts are written out: "zwei Euro pro Nacht", "a levy of two pounds". */
const numberWords = new Map(
  [
    "one two three four five",
    "ein zwei drei vier fünf",
    "un deux trois quatre cinq",
    "uno due tre quattro cinque",
  ].flatMap((language) => language.split(" ").map((word, index) => [word, `${index + 1}`] as const)),
);

function readings(text: string): string[] {
  const bare = text.replace(/[\s’'\u00a0]/g, "");
  const texts = [bare, bare.replaceAll(".", "").replace(",", "."), bare.replaceAll(",", ""), bare.replace(/[.,]/g, "")];
  // "2 3 %" may be two figures with a space between them.
  return [...texts, ...text.split(/[\s\u00a0]+/).map((part) => part.replace(",", "."))].map(plain);
}

function plain(figure: string): string {
  return /^\d+\.\d+$/.test(figure) ? figure.replace(/\.?0+$/, "") : figure;
}

function amountsAbove(
  version: KnownVersion,
  { unit, amount, from = "" }: NonNullable<PlaceSlot["ceiling"]>,
): string | undefined {
  if (version.from < from) return undefined;
  const flats = termsOf(version)
    .filter((terms) => terms.unit === unit)
    .flatMap(({ amount: own }) => [own?.flat, ...(own?.bands?.rows ?? []).map((row) => row.flat)]);
  return flats.find((flat) => flat !== undefined && Number(flat) > Number(amount));
}
