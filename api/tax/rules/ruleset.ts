/**
 * The whole law that we know, assembled from files and checked: the tree of places, the rules of
 * each, and what of all that applies in one place. Pure: files come in as values.
 */
import { createHash } from "node:crypto";
import type { Jurisdiction } from "../places/jurisdiction.ts";
import { classOf, type EvidenceClass, reviewDayOf } from "./evidence.ts";
import type { Case, Coverage, Example, Quote, Rule, RuleFile, RuleVersion, Source } from "./rule.ts";
import {
  type Atlas,
  type AtlasFile,
  assembleAtlas,
  type Destination,
  type DestinationFile,
  fillsSlot,
  levelOf,
  type PlaceSlot,
} from "./slot.ts";

/** What `cases`, a version and its rule say together. */
export type Terms = Omit<Case, "when" | "label"> &
  Pick<Rule, "when" | "date_anchor" | "booking_window" | "payment_window">;

/** Days of the year, ends inclusive, that may run over the new year. */
export type Season = readonly { from: string; to: string }[];

export interface KnownVersion {
  version: number;
  from: string;
  /** Undefined as well where the tariff is taken to go on: see `knownUntil`. */
  to: string | undefined;
  announcedOn: string | undefined;
  /** Follows from `evidence`; of rules that bookings froze before there was any, what was typed. */
  status: "verified" | "reported" | "announced";
  source: Source;
  /** Absent from what bookings froze before. */
  evidence?: EvidenceClass;
  quotes?: readonly Quote[];
  /** Its tariff ends here and none is known to follow: from this day on we assume that it goes on. */
  knownUntil?: string;
  onLapse?: RuleVersion["on_lapse"];
  reviewBy?: string;
  otherwise?: RuleVersion["otherwise"];
  terms: Terms;
  /** First match wins; undefined where the terms hold for all. */
  cases: readonly { when: Case["when"]; label: string | undefined; terms: Terms }[] | undefined;
}

/** A rule with its versions in order of time. Plain JSON, so that a booking can freeze it. */
export interface KnownRule {
  id: string;
  jurisdiction: string;
  levels?: Rule["levels"];
  exceptIn: readonly string[];
  authority: string;
  name: string;
  kind: Rule["kind"];
  categoryCode: string;
  seasons: Readonly<Record<string, Season>>;
  versions: readonly KnownVersion[];
}

/** One place with all that it takes to calculate there. Plain JSON; `hash` is its fingerprint. */
export interface PlaceRules {
  place: { code: string; name: string; type: Jurisdiction["type"]; stack: readonly string[] };
  country: string;
  status: Jurisdiction["status"] | undefined;
  /** A rule comes after those whose amounts it needs. */
  rules: readonly KnownRule[];
  coverage: readonly Coverage[];
  /** What may be taxed there; absent from what bookings froze before it was known. */
  slots?: readonly PlaceSlot[];
  hash: string;
}

export interface Ruleset {
  places: ReadonlyMap<string, Jurisdiction>;
  rules: ReadonlyMap<string, KnownRule>;
  examples: readonly (Example & { file: string })[];
  atlas: Atlas;
  /** The most visited first. */
  destinations: readonly Destination[];
  /** The place that a code, or another code for it, names. */
  placeOf(code: string): Jurisdiction | undefined;
  /** The place and those above it, itself first. */
  stackOf(code: string): readonly Jurisdiction[];
  rulesIn(code: string): PlaceRules | undefined;
}

/** @throws Error naming every problem by file and rule */
export function assembleRuleset(
  places: ReadonlyMap<string, Jurisdiction>,
  files: readonly { file: string; content: RuleFile }[],
  atlasFiles: readonly { file: string; content: AtlasFile }[] = [],
  destinationFiles: readonly { file: string; content: DestinationFile }[] = [],
): Ruleset {
  const problems: string[] = [];
  const destinations = destinationFiles.flatMap(({ file, content }) => {
    for (const { code } of content.destinations)
      if (!places.has(code)) problems.push(`${file}: ${code} does not exist`);
    return content.destinations;
  });
  const atlas = assembleAtlas(places, atlasFiles, (problem) => problems.push(problem));
  const rules = new Map<string, KnownRule>();
  const byPlace = new Map<string, KnownRule[]>();
  const coverageByPlace = new Map<string, Coverage[]>();
  const examples: (Example & { file: string })[] = [];
  for (const { file, content } of files) {
    const sources = new Map(content.sources.map((source) => [source.id, source]));
    for (const rule of content.rules) {
      const complain = (what: string) => problems.push(`${file}: ${rule.id}: ${what}`);
      if (rules.has(rule.id)) complain("its id is taken by another rule");
      for (const code of [rule.jurisdiction, ...(rule.except_in ?? [])]) {
        if (!places.has(code)) complain(`jurisdiction ${code} does not exist`);
      }
      const tariffDays = atlas.tariffDaysOf(rule.jurisdiction.slice(0, 2));
      const known = knownRule(rule, content.seasons ?? {}, sources, tariffDays, complain);
      rules.set(rule.id, known);
      byPlace.set(rule.jurisdiction, [...(byPlace.get(rule.jurisdiction) ?? []), known]);
    }
    for (const coverage of content.coverage ?? []) {
      const code = coverage.jurisdiction;
      if (!places.has(code)) problems.push(`${file}: coverage: jurisdiction ${code} does not exist`);
      coverageByPlace.set(code, [...(coverageByPlace.get(code) ?? []), coverage]);
    }
    for (const example of content.examples ?? []) {
      if (!sources.has(example.source))
        problems.push(`${file}: example "${example.name}": source ${example.source} is not listed`);
      examples.push({ ...example, file });
    }
    for (const coverage of content.coverage ?? []) {
      if (coverage.source && !sources.has(coverage.source))
        problems.push(`${file}: coverage: source ${coverage.source} is not listed`);
    }
  }
  for (const rule of rules.values()) {
    for (const id of dependenciesOf(rule)) {
      if (!rules.has(id)) problems.push(`${rule.id}: names a rule ${id} that does not exist`);
    }
  }

  const byOtherCode = new Map<string, string>();
  for (const place of places.values()) for (const code of place.otherCodes) byOtherCode.set(code, place.code);
  const placeOf = (code: string) => places.get(code) ?? places.get(byOtherCode.get(code) ?? "");
  const stackOf = (code: string): Jurisdiction[] => {
    const stack: Jurisdiction[] = [];
    for (let place = placeOf(code); place; place = place.parent ? places.get(place.parent) : undefined)
      stack.push(place);
    return stack;
  };
  const zonesIn = zonesByPlace([...rules.values()], stackOf);
  const placeRules = (code: string): PlaceRules | undefined => {
    const stack = stackOf(code);
    const [place] = stack;
    if (!place) return undefined;
    const codes = stack.map((one) => one.code);
    const applying = [...stack]
      .reverse()
      .flatMap((one) => byPlace.get(one.code) ?? [])
      .filter((rule) => !rule.exceptIn.some((excepted) => codes.includes(excepted)));
    const content = {
      place: { code: place.code, name: place.name, type: place.type, stack: codes },
      country: place.country,
      status: place.status,
      rules: inOrderOfDependence(applying),
      coverage: stack.flatMap((one) => coverageByPlace.get(one.code) ?? []),
      slots: atlas.slotsOf(stack).map((slot): PlaceSlot => {
        const zones = slot.level === "city" && slot.isReached ? (zonesIn.get(place.code) ?? []) : [];
        return {
          ...slot,
          zones: zones.filter(({ kind }) => fillsSlot(kind, slot)).map(({ kind: _, ...zone }) => zone),
        };
      }),
    };
    return { ...content, hash: createHash("sha256").update(JSON.stringify(content)).digest("hex") };
  };
  for (const code of byPlace.keys()) {
    try {
      placeRules(code);
    } catch (error) {
      problems.push(`${code}: ${(error as Error).message}`);
    }
  }
  if (problems.length > 0)
    throw new Error(`The tax rules have ${problems.length} problems:\n  ${problems.join("\n  ")}`);

  const cache = new Map<string, PlaceRules>();
  const rulesIn = (code: string) => {
    const own = placeOf(code)?.code;
    const cached = own && cache.get(own);
    if (cached || !own) return cached || undefined;
    const built = placeRules(own);
    if (built) cache.set(own, built);
    return built;
  };
  return { places, rules, examples, atlas, destinations, placeOf, stackOf, rulesIn };
}

/** Zones with rules of their own, by each place that they lie in. */
function zonesByPlace(rules: readonly KnownRule[], stackOf: Ruleset["stackOf"]) {
  const zones = new Map<string, (PlaceSlot["zones"][number] & { kind: Rule["kind"] })[]>();
  for (const { jurisdiction, kind, versions } of rules) {
    const [zone, ...above] = stackOf(jurisdiction);
    if (!zone || levelOf(zone) !== "zone") continue;
    const { code, name } = zone;
    const [first, last] = [versions[0], versions.at(-1)];
    for (const place of above) {
      const isDrawn = zone.polygon !== undefined || zone.radiusKm !== undefined;
      const entry = { code, name, kind, from: first?.from ?? "", to: last?.to, ...(isDrawn && { isDrawn }) };
      zones.set(place.code, [...(zones.get(place.code) ?? []), entry]);
    }
  }
  return zones;
}

function knownRule(
  rule: Rule,
  seasons: Record<string, Season>,
  sources: ReadonlyMap<string, Source>,
  tariffDays: readonly string[],
  complain: (what: string) => void,
): KnownRule {
  const {
    id,
    jurisdiction,
    except_in,
    levels,
    authority,
    name,
    kind,
    category_code,
    note: _,
    cases,
    versions,
    otherwise,
    ...shared
  } = rule;
  const known = versions.map((one): KnownVersion => {
    const { version, effective, source, announced_on, note: _note, cases: ownCases, ...rest } = one;
    const { quotes = [], on_lapse, review_by, otherwise: ownOtherwise = otherwise, ...own } = rest;
    const complainOfVersion = (what: string) => complain(`version ${version}: ${what}`);
    const terms: Terms = { ...shared, ...own };
    const entries = (ownCases ?? cases)?.map(({ when, label, ...special }) => ({
      when,
      label,
      terms: { ...terms, ...special },
    }));
    const named = [source].flat();
    for (const key of named) if (!sources.has(key)) complainOfVersion(`source ${key} is not listed`);
    for (const { source: key } of quotes) if (!named.includes(key)) complainOfVersion(`quotes ${key}, not its source`);
    for (const [index, full] of (entries?.map((entry) => entry.terms) ?? [terms]).entries()) {
      const where = entries ? `case ${index + 1}: ` : "";
      for (const problem of problemsOfTerms(full)) complainOfVersion(where + problem);
      for (const { source: key } of full.exemptions ?? [])
        if (key !== undefined && !sources.has(key)) complainOfVersion(`${where}exemption: source ${key} is not listed`);
    }
    for (const predicate of predicatesIn(terms, entries)) {
      for (const season of seasonsNamedIn(predicate)) {
        if (!seasons[season]) complainOfVersion(`season "${season}" is not among the file's seasons`);
      }
    }
    for (const date of [effective.from, effective.to, announced_on, review_by]) {
      if (date !== undefined && !isCalendarDate(date)) complainOfVersion(`${date} is no day of the calendar`);
    }
    if (effective.to !== undefined && effective.to <= effective.from)
      complainOfVersion("effective.to must come after from");
    const cited = named.flatMap((key) => sources.get(key) ?? []);
    const evidence = classOf(cited, quotes);
    const reviewBy = review_by ?? reviewDayOf(cited, tariffDays);
    const goesOn = on_lapse === "continue";
    if (on_lapse && effective.to === undefined) complainOfVersion("on_lapse is for a version that ends");
    return {
      version,
      from: effective.from,
      to: goesOn ? undefined : effective.to,
      announcedOn: announced_on,
      status: evidence === "A" ? "verified" : "reported",
      source: sources.get(named[0] as string) as Source,
      evidence,
      ...(quotes.length > 0 && { quotes }),
      ...(goesOn && effective.to !== undefined && { knownUntil: effective.to }),
      ...(on_lapse && { onLapse: on_lapse }),
      ...(reviewBy !== undefined && { reviewBy }),
      ...(ownOtherwise && { otherwise: ownOtherwise }),
      terms,
      cases: entries,
    };
  });
  known.sort((a, b) => (a.from < b.from ? -1 : 1));
  known.forEach((one, index) => {
    const isFollowed = known.some((other) => other !== one && other.from === one.to);
    const given = versions.find(({ version }) => version === one.version);
    const last = index === known.length - 1;
    if (one.to !== undefined && !isFollowed && !one.onLapse)
      complain(`version ${one.version} ends on ${one.to} and none follows: it needs on_lapse`);
    if (one.onLapse && last && given?.review_by === undefined)
      complain(`version ${one.version} ends and none follows: it needs review_by`);
  });
  known.forEach((one, index) => {
    const next = known[index + 1];
    if (next && (one.to === undefined || one.to > next.from) && !windowsDiffer(one.terms, next.terms)) {
      complain(`versions ${one.version} and ${next.version} overlap from ${next.from}`);
    }
    if (known.some((other) => other !== one && other.version === one.version))
      complain(`version ${one.version} is there twice`);
  });
  return {
    id,
    jurisdiction,
    ...(levels && { levels }),
    exceptIn: except_in ?? [],
    authority,
    name,
    kind,
    categoryCode: category_code ?? defaultCategories[kind],
    seasons,
    versions: known,
  };
}

const defaultCategories: Record<Rule["kind"], string> = {
  accommodation: "accommodation_tax",
  vat: "vat",
  sales: "sales_tax",
  fee: "fee",
};

/** Versions told apart by when one booked or paid may hold on the same days. */
function windowsDiffer(a: Terms, b: Terms): boolean {
  const windows = (terms: Terms) => JSON.stringify([terms.booking_window, terms.payment_window]);
  return windows(a) !== windows(b);
}

function problemsOfTerms(terms: Terms): string[] {
  const problems: string[] = [];
  const { amount, base, long_stay, currency } = terms;
  if (!amount) problems.push("amount is missing");
  if (!amount?.percent_of_tax && !terms.unit) problems.push("unit is missing");
  if (!currency && needsCurrency(terms)) problems.push("currency is missing");
  if (currency && !currencies.has(currency)) problems.push(`currency ${currency} is unknown`);
  for (const row of amount?.bands?.rows ?? []) {
    const rates = [row.flat, row.percent, row.fraction].filter((rate) => rate !== undefined);
    if (rates.length !== 1) problems.push(`the band from ${row.from} needs exactly one of flat, percent, fraction`);
  }
  const froms = amount?.bands?.rows.map((row) => Number(row.from)) ?? [];
  if (froms.some((from, index) => index > 0 && from <= (froms[index - 1] as number))) problems.push("bands must rise");
  if (long_stay && (long_stay.nights === undefined) === (long_stay.months === undefined)) {
    problems.push("long_stay needs nights or months");
  }
  for (const one of base?.deduct ?? []) {
    if ((one.percent === undefined) === (one.amount === undefined)) problems.push("deduct needs percent or amount");
    if (one.amount !== undefined && one.per === undefined) problems.push("deduct of an amount needs per");
  }
  return problems;
}

/** Whether these terms name an amount of money. */
export function needsCurrency({ amount, floor, cap, threshold, persons, base }: Terms): boolean {
  return Boolean(
    amount?.flat ||
      amount?.bands ||
      floor ||
      cap ||
      threshold ||
      persons?.some((band) => band.flat) ||
      base?.deduct?.some((one) => one.amount),
  );
}

const currencies: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency"));

function predicatesIn(terms: Terms, cases: KnownVersion["cases"]): Case["when"][] {
  const ofTerms = (one: Terms) => [one.when, ...(one.exemptions ?? []).map((exemption) => exemption.when)];
  return [terms, ...(cases ?? []).map((entry) => entry.terms)]
    .flatMap(ofTerms)
    .concat((cases ?? []).map((entry) => entry.when))
    .filter((predicate) => predicate !== undefined);
}

function seasonsNamedIn(predicate: Case["when"]): string[] {
  return [
    ...(predicate.season ? [predicate.season] : []),
    ...(predicate.any ?? []).flatMap(seasonsNamedIn),
    ...(predicate.not ? seasonsNamedIn(predicate.not) : []),
  ];
}

/** What follows from a rule alone is found once. */
function onceFor<T>(find: (rule: KnownRule) => T): (rule: KnownRule) => T {
  const found = new WeakMap<KnownRule, T>();
  return (rule) => {
    let value = found.get(rule);
    if (value === undefined) {
      value = find(rule);
      found.set(rule, value);
    }
    return value;
  };
}

/** All terms that a rule may come to. */
export const allTermsOf = onceFor((rule: KnownRule): readonly Terms[] =>
  rule.versions.flatMap((version) => version.cases?.map((entry) => entry.terms) ?? [version.terms]),
);

/** Ids of the rules whose amounts it needs. */
export const dependenciesOf = onceFor((rule: KnownRule): ReadonlySet<string> => {
  return new Set(
    allTermsOf(rule).flatMap(({ amount, base, offset_by }) => [
      ...(amount?.percent_of_tax?.of ?? []),
      ...(base?.includes_tax ?? []),
      ...(base?.net_of ?? []),
      ...(offset_by ?? []),
    ]),
  );
});

const isGeneral = (kind: Rule["kind"]) => kind === "vat" || kind === "sales";

/** Whether `tax` joins the base of the general tax `rule` by itself. */
export function joinsBaseOf(rule: KnownRule, tax: KnownRule): boolean {
  return isGeneral(rule.kind) && !isGeneral(tax.kind) && standsInBase(tax);
}

const standsInBase = onceFor((tax: KnownRule) =>
  allTermsOf(tax).some((terms) => terms.vat_treatment === "in_base_same_rate"),
);

/** @throws Error naming the rules of a cycle */
function inOrderOfDependence(rules: readonly KnownRule[]): KnownRule[] {
  const ordered: KnownRule[] = [];
  const state = new Map<KnownRule, "open" | "done">();
  const visit = (rule: KnownRule, path: readonly string[]) => {
    if (state.get(rule) === "done") return;
    if (state.get(rule) === "open") throw new Error(`rules need each other: ${[...path, rule.id].join(" > ")}`);
    state.set(rule, "open");
    const needed = dependenciesOf(rule);
    for (const other of rules) {
      if (needed.has(other.id) || joinsBaseOf(rule, other)) visit(other, [...path, rule.id]);
    }
    state.set(rule, "done");
    ordered.push(rule);
  };
  for (const rule of rules) visit(rule, []);
  return ordered;
}

export function isCalendarDate(text: string): boolean {
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}
