/**
 * What an answer knows and what it does not: every tax that may exist at the place, and whether we
 * hold it for all nights. A total without this would be silent about law that nobody read.
 */

import { type Static, Type } from "@sinclair/typebox";
import { named } from "#contracts/named_schema.ts";
import { oneOf } from "#contracts/one_of.ts";
import { classOn } from "../rules/evidence.ts";
import type { KnownRule, KnownVersion, PlaceRules } from "../rules/ruleset.ts";
import { fills, fillsSlot, type PlaceSlot, type SlotState, slotKinds, slotLevels, slotStates } from "../rules/slot.ts";
import { CalculationProblem, type CalculationRequest, type Stay } from "./calculation_request.ts";
import { isWithin } from "./law/calendar.ts";
import { anchorDate, noTariff } from "./segments.ts";

const nullable = <T extends ReturnType<typeof Type.String>>(schema: T) => Type.Union([schema, Type.Null()]);

export const completenessStatuses = ["complete", "assumed", "incomplete"] as const;

export const SlotReport = named(
  "TaxSlot",
  Type.Object({
    level: oneOf(slotLevels),
    kind: oneOf(slotKinds),
    jurisdiction_code: Type.String({ description: "the narrowest place whose law decides it" }),
    jurisdiction_name: Type.String(),
    state: oneOf(slotStates),
    rule_ids: Type.Array(Type.String()),
    known_until: nullable(Type.String({ description: "the day from which on nothing is known for sure" })),
    review_by: nullable(Type.String({ description: "when somebody has to look again" })),
    note: nullable(Type.String()),
    source: Type.Union([
      named(
        "TaxSource",
        Type.Object({ title: Type.String(), url: Type.String(), kind: Type.String(), checked_on: Type.String() }),
        {
          title: "what it is called",
          url: "where it is read",
          kind: "law, official and official_copy are primary, the others secondary",
          checked_on: "the day on which somebody read it",
        },
      ),
      Type.Null(),
    ]),
  }),
  {
    level: "which level of government levies it",
    kind: "what kind of tax",
    jurisdiction_name: "that place's name",
    state: "whether it is known for the nights asked about",
    known_until: "the day from which on nothing is known for sure; null where no end is known",
    review_by: "when somebody has to look again; null where nobody has to",
    rule_ids: "the rules that decide it",
    note: "what a reader should know",
    source: "where it is written",
  },
);
export type SlotReport = Static<typeof SlotReport>;

export const Completeness = named(
  "Completeness",
  Type.Object(
    {
      status: oneOf(completenessStatuses),
      slots: Type.Array(SlotReport),
      min_total_tax: Type.String(),
      max_total_tax: nullable(
        Type.String({ description: "with tariffs that lapsed going on; null: no bound is known" }),
      ),
    },
    { description: "every tax that the law allows here, and whether it is known for all nights" },
  ),
  {
    status: "`complete`: every tax is known; `assumed`: some are taken to go on; `incomplete`: some are unknown",
    slots: "each tax that the law allows here",
    min_total_tax: "the tax comes to no less",
    max_total_tax: "and to no more, with tariffs that lapsed going on; null: no bound is known",
  },
);
export type Completeness = Static<typeof Completeness>;

/** Nights of a stay, or of an ordinary one where only days are asked for. */
type Nights = Pick<Stay, "today" | "dates" | "asKnownAt"> & { stay?: Stay };

/** What a rule says of some nights. */
interface RuleReport {
  state: SlotState | "none";
  note: string | undefined;
  version: KnownVersion | undefined;
  knownUntil: string | undefined;
}

/** From what hides most to what hides nothing: the first that some rule has is the slot's. */
const worstFirst: readonly SlotState[] = [
  "unknown",
  "lapsed",
  "announced",
  "assumed_continues",
  "reported",
  "known",
  "known_zero",
];

/** @param untaxed ids of rules that hold on these nights, but have no tariff for this property or guest */
export function slotReports(
  place: PlaceRules,
  nights: Nights,
  untaxed: ReadonlySet<string> = new Set(),
): readonly SlotReport[] {
  return (place.slots ?? [beforeSlots]).map((slot) => slotReport(place, slot, nights, untaxed));
}

/** Of what bookings froze before there were slots. */
const beforeSlots: PlaceSlot = {
  level: "country",
  kind: "accommodation",
  law: undefined,
  levels: [],
  places: [],
  at: { code: "", name: "" },
  isReached: true,
  statements: [],
  zones: [],
};

function slotReport(place: PlaceRules, slot: PlaceSlot, nights: Nights, untaxed: ReadonlySet<string>): SlotReport {
  const rules = place.rules.filter(
    ({ jurisdiction, levels, kind }) =>
      fillsSlot(kind, slot) &&
      (levels ? levels.some((level) => slot.levels.includes(level)) : slot.places.includes(jurisdiction)),
  );
  const found = rules.map((rule) => ({ rule, ...ruleReport(rule, nights) }));
  const counted = found.filter(({ state }) => state !== "none");
  const base = stateOf(place, slot, nights, counted, untaxed);
  const decisive = counted.find(({ state }) => state === base.state) ?? counted[0];
  const source = base.source ?? decisive?.version?.source;
  const days = counted.map(({ knownUntil }) => knownUntil).filter((day) => day !== undefined);
  const reviews = counted.map(({ version }) => version?.reviewBy).filter((day) => day !== undefined);
  return {
    level: slot.level,
    kind: slot.kind,
    jurisdiction_code: slot.at.code || place.place.code,
    jurisdiction_name: slot.at.name || place.place.name,
    state: base.state,
    rule_ids: counted.filter(({ state }) => state !== "known_zero").map(({ rule }) => rule.id),
    known_until: days.sort()[0] ?? null,
    review_by: base.reviewBy ?? reviews.sort()[0] ?? null,
    note: base.note ?? null,
    source: source ? { title: source.title, url: source.url, kind: source.kind, checked_on: source.checked_on } : null,
  };
}

const asSentence = (text: string) => (/[.!?]$/.test(text) ? text : `${text}.`);

interface Found {
  state: SlotState;
  note?: string | undefined;
  source?: KnownVersion["source"] | undefined;
  reviewBy?: string | undefined;
}

function stateOf(
  place: PlaceRules,
  slot: PlaceSlot,
  { dates, today, stay }: Nights,
  rules: readonly (RuleReport & { rule: KnownRule })[],
  untaxed: ReadonlySet<string>,
): Found {
  if (!place.slots) return { state: "unknown", note: "Booked before it was kept which taxes may exist" };
  const partial = place.coverage.filter(
    (one) => slot.places.includes(one.jurisdiction) && dates.some((date) => isWithin(date, one)),
  );
  const isMissing = partial.some(({ status }) => status === "missing");
  const limits = partial.map(({ note }) => note).join(" ") || undefined;
  const zones = slot.zones.filter((zone) =>
    dates.some((date) => isWithin(date, zone) && !place.place.stack.includes(zone.code)),
  );
  const worst = worstFirst.find((state) => rules.some((one) => one.state === state));
  const worstNotes = [...new Set(rules.filter(({ state }) => state === worst).flatMap(({ note }) => note ?? []))];
  const note = [...worstNotes, ...(limits ? [limits] : [])].map(asSentence).join(" ") || undefined;
  if (zones.length > 0) {
    const names = zones.slice(0, 5).map(({ code, name }) => `${name} (${code})`);
    const more = zones.length > names.length ? ` and ${zones.length - names.length} more` : "";
    const how = zones.every(({ isDrawn }) => isDrawn) ? "name it or give a point" : "name it";
    return { state: "unknown", note: `Depends on the zone; ${how}: ${names.join(", ")}${more}` };
  }
  const charging = rules.filter(({ state }) => state !== "known_zero");
  const isInForce = charging.some(({ state }) => state !== "unknown" && state !== "lapsed");
  const statement = slot.statements.find((one) => dates.every((date) => isWithin(date, one)));
  if (statement && !isInForce) {
    // What was read once is no knowledge for ever.
    const { state, note, source, review_by: reviewBy } = statement;
    const isStale = state === "known_zero" && reviewBy !== undefined && today >= reviewBy;
    return { state: isStale ? "assumed_continues" : state, note, source, reviewBy };
  }
  if (isMissing) return { state: "unknown", note };
  if (stay?.sellerVatStatus === "small_business" && fills(slot.kind, "vat") && !lettingOff(charging))
    return { state: "unknown", note: "Whether small sellers are let off here is not held; the tax is counted." };
  if (worst === "unknown" || worst === "lapsed" || worst === "announced") return { state: worst, note };
  if (charging.length > 0 && charging.every(({ rule }) => untaxed.has(rule.id)))
    return {
      state: "unknown",
      note: [`No tariff is held for such a property or guest.`, note].filter(Boolean).join(" "),
    };
  if (charging.length > 0 && worst !== undefined) {
    const state = charging.some((one) => one.state === "assumed_continues")
      ? "assumed_continues"
      : charging.some((one) => one.state === "reported") || limits || !slot.isReached
        ? "reported"
        : "known";
    return {
      state,
      note: slot.isReached ? note : [`Parts of ${slot.at.name} may differ.`, note].filter(Boolean).join(" "),
    };
  }
  if (worst === "known_zero") return { state: limits ? "unknown" : "known_zero", note };
  if (!slot.isReached) {
    const narrower = slot.level === "zone" ? "a zone" : slot.level === "city" ? "a town" : `a ${slot.level}`;
    return {
      state: "unknown",
      note: limits ?? `${place.place.name} is wider than ${narrower}: name the place or give a point`,
    };
  }
  return { state: "unknown", note: limits };
}

/** Whether each of these taxes says of small sellers that they do not charge it. */
function lettingOff(charging: readonly RuleReport[]): boolean {
  return charging.every(({ version }) => {
    const terms = version?.cases?.map((one) => one.terms) ?? (version ? [version.terms] : []);
    return terms.every(({ exemptions }) => exemptions?.some(({ when }) => when.seller_vat_status));
  });
}

function ruleReport(rule: KnownRule, nights: Nights): RuleReport {
  const reports = nights.dates.map((date, index) => nightReport(rule, nights, date, index));
  const worst = worstFirst.find((state) => reports.some((one) => one.state === state));
  const decisive = reports.find(({ state }) => state === worst);
  // A tax that begins or ends in mid-stay is known on all nights.
  const isMixed = worst === "known_zero" || worst === "known";
  const known = isMixed ? reports.find(({ state }) => state === "known") : undefined;
  return known ?? decisive ?? { state: "none", note: undefined, version: undefined, knownUntil: undefined };
}

function nightReport(rule: KnownRule, { today, stay }: Nights, date: string, index: number): RuleReport {
  const { versions } = rule;
  const dayOf = (version: KnownVersion) => (stay ? anchorDate(version, stay, { index, date }) : date);
  const held = versions.find((version) => isWithin(dayOf(version), version));
  if (held) {
    const { knownUntil, reviewBy, evidence = held.status === "verified" ? "B" : "C" } = held;
    if (knownUntil !== undefined && dayOf(held) >= knownUntil) {
      const note = `The tariff of ${rule.name} is known until ${knownUntil} and taken to go on`;
      return { state: "assumed_continues", note, version: held, knownUntil };
    }
    const state = classOn(today, evidence, reviewBy) === "C" ? "reported" : "known";
    return { state, note: undefined, version: held, knownUntil };
  }
  const before = versions.findLast(({ to }) => to !== undefined && to <= date);
  if (before) {
    if (before.onLapse === "end") {
      const note = `${rule.name} ended on ${before.to}`;
      return { state: "known_zero", note, version: before, knownUntil: undefined };
    }
    const note = `The tariff of ${rule.name} ended on ${before.to}, and what follows is not known`;
    return { state: "lapsed", note, version: before, knownUntil: before.to };
  }
  const [first] = versions;
  if (!first)
    return { state: "unknown", note: "Not known on the day of the replay", version: undefined, knownUntil: undefined };
  if (first.announcedOn !== undefined || first.from > today || first.status === "announced") {
    const note = `${rule.name} begins on ${first.from}`;
    return { state: "known_zero", note, version: first, knownUntil: first.from };
  }
  const note = `What ${rule.name} came to before ${first.from} is not held`;
  return { state: "unknown", note, version: first, knownUntil: undefined };
}

/** Rules in force that name no tariff for this property or guest. */
export function untaxedIn(
  taxes: readonly { rule: KnownRule; segments: readonly unknown[]; skipped: readonly string[] }[],
) {
  return new Set(
    taxes
      .filter(({ segments, skipped }) => segments.length === 0 && skipped.includes(noTariff))
      .map(({ rule }) => rule.id),
  );
}

export function statusOf(slots: readonly Pick<SlotReport, "state">[]): Completeness["status"] {
  const isSure = ({ state }: Pick<SlotReport, "state">) => state === "known" || state === "known_zero";
  if (slots.every(isSure)) return "complete";
  const isCounted = ({ state }: Pick<SlotReport, "state">) => state === "reported" || state === "assumed_continues";
  return slots.every((one) => isSure(one) || isCounted(one)) ? "assumed" : "incomplete";
}

export const coverageStatuses = ["verified", "partial", "none_known", "no_tax"] as const;

/**
 * What clients learn that read no slots. verified: complete, and every figure was read in a primary source
 * whose words are kept. no_tax: a source says that stays are not taxed. none_known: nothing is known; a
 * zero then means nothing. partial: the rest.
 */
export function coverageStatus(
  place: PlaceRules,
  slots: readonly SlotReport[],
  dates: readonly string[],
): (typeof coverageStatuses)[number] {
  const inForce = versionsInForce(place, dates);
  const isOnStays = (kind: KnownRule["kind"]) => fills(kind, "accommodation");
  const onStays = slots.filter(({ kind }) => isOnStays(kind));
  const isUntaxed = onStays.length > 0 && onStays.every(({ state }) => state === "known_zero");
  if ((isUntaxed || place.status === "no_tax") && !inForce.some(({ rule }) => isOnStays(rule.kind))) return "no_tax";
  if (inForce.length === 0) return "none_known";
  const isVerified = inForce.every(({ version }) => version.status === "verified");
  return statusOf(slots) === "complete" && isVerified ? "verified" : "partial";
}

export function versionsInForce({ rules }: PlaceRules, dates: readonly string[]) {
  return rules.flatMap((rule) =>
    rule.versions
      .filter((version) => dates.some((date) => isWithin(date, version)))
      .map((version) => ({ rule, version })),
  );
}

/** The law with tariffs that lapsed going on: what the stay comes to at most, where nothing else is unknown. */
export function withLapsedTariffs(place: PlaceRules): PlaceRules {
  return {
    ...place,
    rules: place.rules.map((rule) => ({ ...rule, versions: rule.versions.map((one) => lasting(rule, one)) })),
  };
}

function lasting({ versions }: KnownRule, version: KnownVersion): KnownVersion {
  if (version.to === undefined || version.onLapse === "end") return version;
  const [next] = versions
    .map(({ from }) => from)
    .filter((from) => from >= (version.to ?? ""))
    .sort();
  return { ...version, to: next };
}

const stateTexts: Readonly<Record<SlotState, string>> = {
  known: "is known",
  reported: "is reported by a secondary source alone",
  known_zero: "is known to be none",
  assumed_continues: "is assumed to go on as it was",
  lapsed: "has lapsed",
  announced: "is announced, without its figure or first day",
  unknown: "is unknown",
};
const kindTexts: Readonly<Record<SlotReport["kind"], string>> = {
  vat: "VAT",
  sales: "sales tax",
  accommodation: "accommodation tax",
  fee: "fee",
};

/** `city accommodation tax in Hiroshima (JP-34) is unknown` */
export function slotText({ level, kind, jurisdiction_code, jurisdiction_name, state }: SlotReport): string {
  return `${level} ${kindTexts[kind]} in ${jurisdiction_name} (${jurisdiction_code}) ${stateTexts[state]}`;
}

/** What an answer's notes say of slots that are not known. */
export function slotNotes(slots: readonly SlotReport[]): string[] {
  return slots
    .filter(({ state }) => state !== "known" && state !== "known_zero")
    .map((slot) => `${slotText(slot)}${slot.note ? `: ${slot.note}` : ""}`);
}

/** @throws CalculationProblem incomplete, where the request asks for more than is known */
export function requireComplete(request: CalculationRequest, completeness: Completeness): void {
  if (!request.require_complete && request.accept_assumed !== false) return;
  const refused: readonly SlotState[] = [
    "unknown",
    "lapsed",
    "announced",
    ...(request.accept_assumed === false ? (["reported", "assumed_continues"] as const) : []),
  ];
  const missing = completeness.slots.filter(({ state }) => refused.includes(state));
  if (missing.length === 0) return;
  const text = `incomplete: ${missing.map(slotText).join("; ")}`;
  throw new CalculationProblem("incomplete", text, undefined, { completeness });
}
