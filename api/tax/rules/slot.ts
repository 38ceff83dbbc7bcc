/**
 * Which taxes the law allows at a place, whether or not we hold their figures: one slot a level and
 * kind. `api/tax/data/atlas/*.json` lists them by country, with statements on single places ("Bavaria
 * forbids bed taxes"), so that a zero is a statement with a source, or is no zero.
 */
import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";
import type { Jurisdiction } from "../places/jurisdiction.ts";
import { CalendarDate, JurisdictionCode, ruleKinds, Source, slotLevels, units } from "./rule.ts";

export type SlotLevel = (typeof slotLevels)[number];
export { slotLevels };
export const slotKinds = ruleKinds;
export type SlotKind = (typeof slotKinds)[number];

/** What we know of a slot on the nights of a stay. */
export const slotStates = [
  "known",
  "reported",
  "known_zero",
  "assumed_continues",
  "lapsed",
  "announced",
  "unknown",
] as const;
export type SlotState = (typeof slotStates)[number];

const closed = { additionalProperties: false } as const;
const MonthDay = Type.String({ pattern: "^\\d{2}-\\d{2}$", description: "a day of the year as MM-DD" });

const SlotEntry = Type.Object(
  {
    /** The narrowest level that has to be named for the slot to be decided. */
    level: oneOf(slotLevels),
    kind: oneOf(slotKinds),
    /** Where its rules may stand; its own level alone when absent. */
    levels: Type.Optional(Type.Array(oneOf(slotLevels), { minItems: 1 })),
    /** Whether one tax on rooms of either kind fills it, as where a state levies a sales or an occupancy tax. */
    either: Type.Optional(Type.Boolean()),
    /** The most that the law allows, where it is one amount for all. */
    ceiling: Type.Optional(
      Type.Object(
        { unit: oneOf(units), amount: Type.String({ pattern: "^\\d+(\\.\\d+)?$" }), from: Type.Optional(CalendarDate) },
        closed,
      ),
    ),
    /** The law that allows the tax. */
    law: Type.Optional(Type.String({ minLength: 3 })),
    /** The parts of the country that have this slot; all of it when absent. */
    in: Type.Optional(Type.Array(JurisdictionCode, { minItems: 1 })),
    except_in: Type.Optional(Type.Array(JurisdictionCode, { minItems: 1 })),
  },
  closed,
);
export type SlotEntry = Static<typeof SlotEntry>;

const CountryEntry = Type.Object(
  {
    country: Type.String({ pattern: "^[A-Z]{2}$" }),
    slots: Type.Array(SlotEntry, { minItems: 1 }),
    /** Days of the year on which tariffs may change: when a figure has to be looked at again. */
    tariff_days: Type.Optional(Type.Array(MonthDay, { minItems: 1 })),
    /** Wider places that are cities as well, and so decide a city's slots: Berlin, Vienna, Tokyo. */
    cities: Type.Optional(Type.Array(JurisdictionCode, { minItems: 1 })),
  },
  closed,
);

/** Says of places what no rule says: that there is no such tax, that one is announced, or that we know nothing. */
const Statement = Type.Object(
  {
    in: Type.Array(JurisdictionCode, { minItems: 1 }),
    level: oneOf(slotLevels),
    kind: oneOf(slotKinds),
    state: oneOf(["known_zero", "announced", "unknown"]),
    from: Type.Optional(CalendarDate),
    to: Type.Optional(CalendarDate),
    note: Type.String({ minLength: 3 }),
    /** `id` in the file's sources; known_zero and announced need one. */
    source: Type.Optional(Type.String()),
    quote: Type.Optional(Type.String({ minLength: 3, maxLength: 160 })),
    review_by: Type.Optional(CalendarDate),
  },
  closed,
);
export type Statement = Static<typeof Statement>;

export const AtlasFile = Type.Object(
  {
    about: Type.String({ minLength: 3 }),
    sources: Type.Array(Source),
    countries: Type.Array(CountryEntry),
    statements: Type.Optional(Type.Array(Statement)),
  },
  closed,
);
export type AtlasFile = Static<typeof AtlasFile>;

/** A place that people go to. The first is the most visited, as far as the sources tell. */
const Destination = Type.Object(
  {
    code: JurisdictionCode,
    /** As people know it. */
    name: Type.String({ minLength: 2 }),
    /** Nights or arrivals a year, in millions, where a source has them. */
    visits: Type.Optional(
      Type.Object(
        {
          millions: Type.Number({ exclusiveMinimum: 0 }),
          of: oneOf(["nights", "arrivals"]),
          year: Type.Integer(),
          source: Type.String(),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type Destination = Static<typeof Destination>;

export const DestinationFile = Type.Object(
  { about: Type.String({ minLength: 3 }), sources: Type.Array(Source), destinations: Type.Array(Destination) },
  closed,
);
export type DestinationFile = Static<typeof DestinationFile>;

/** A statement with its source at hand. */
export type KnownStatement = Omit<Statement, "source"> & { source: Source | undefined };

/** A slot as it stands for one place. Plain JSON, so that a booking can freeze it. */
export interface PlaceSlot {
  level: SlotLevel;
  kind: SlotKind;
  law: string | undefined;
  either?: boolean;
  ceiling?: SlotEntry["ceiling"];
  levels: readonly SlotLevel[];
  /** The places of the stack whose rules fill it, the narrowest first. */
  places: readonly string[];
  /** The narrowest of them, or the place itself. */
  at: { code: string; name: string };
  /** Whether the place is narrow enough to decide the slot: a country does not name a city. */
  isReached: boolean;
  /** Nearest first. */
  statements: readonly KnownStatement[];
  /** Zones within the place that tax as well, so that the place alone does not decide. */
  zones: readonly TaxingZone[];
}

export interface TaxingZone {
  code: string;
  name: string;
  from: string;
  to: string | undefined;
  /** Whether we know where it lies, so that a point decides. */
  isDrawn?: boolean;
}

const generalKinds: ReadonlySet<SlotKind> = new Set(["vat", "sales"]);

/** VAT and sales taxes fill the same slots, and so do levies and fees on a stay. */
export function fills(kind: SlotKind, slot: SlotKind): boolean {
  return generalKinds.has(kind) === generalKinds.has(slot);
}

export function fillsSlot(kind: SlotKind, slot: Pick<PlaceSlot, "kind" | "either">): boolean {
  return slot.either === true || fills(kind, slot.kind);
}

/** What the law may be of a country that the atlas does not have. */
const anywhere: readonly SlotEntry[] = [
  { level: "country", kind: "vat" },
  { level: "country", kind: "accommodation" },
  { level: "city", kind: "accommodation", levels: ["state", "county", "city", "zone"] },
];

const levelsByType: Readonly<Record<Jurisdiction["type"], SlotLevel>> = {
  country: "country",
  territory: "country",
  state: "state",
  province: "state",
  region: "state",
  prefecture: "state",
  county: "county",
  department: "county",
  city: "city",
  municipality: "city",
  district: "zone",
  special_zone: "zone",
};

export function levelOf({
  code,
  country,
  type,
  parent,
}: Pick<Jurisdiction, "code" | "country" | "type" | "parent">): SlotLevel {
  if (code === country) return "country";
  if (type !== "district") return levelsByType[type];
  // A district is a division of a country, a town of a division, or a part of a town.
  if (parent === country) return "state";
  return parent?.split("-").length === 2 ? "city" : "zone";
}

export interface Atlas {
  slotsOf(stack: readonly Jurisdiction[]): readonly Omit<PlaceSlot, "zones">[];
  tariffDaysOf(country: string): readonly string[];
  hasCountry(country: string): boolean;
  statements: readonly (KnownStatement & { file: string })[];
}

/** @param complain about what does not fit the places, by file */
export function assembleAtlas(
  places: ReadonlyMap<string, Jurisdiction>,
  files: readonly { file: string; content: AtlasFile }[],
  complain: (problem: string) => void,
): Atlas {
  const countries = new Map<string, Static<typeof CountryEntry>>();
  const statements: (KnownStatement & { file: string })[] = [];
  const cities = new Set<string>();
  for (const { file, content } of files) {
    const sources = new Map(content.sources.map((source) => [source.id, source]));
    const requirePlaces = (codes: readonly string[] | undefined) => {
      for (const code of codes ?? []) if (!places.has(code)) complain(`${file}: ${code} does not exist`);
    };
    for (const entry of content.countries) {
      if (countries.has(entry.country)) complain(`${file}: ${entry.country} stands in the atlas twice`);
      countries.set(entry.country, entry);
      requirePlaces([entry.country, ...(entry.cities ?? [])]);
      for (const slot of entry.slots) requirePlaces([...(slot.in ?? []), ...(slot.except_in ?? [])]);
      for (const code of entry.cities ?? []) cities.add(code);
    }
    for (const { source, ...statement } of content.statements ?? []) {
      requirePlaces(statement.in);
      const where = `${file}: statement on ${statement.in.join(", ")}`;
      if (source !== undefined && !sources.has(source)) complain(`${where}: source ${source} is not listed`);
      if (source === undefined && statement.state !== "unknown")
        complain(`${where}: ${statement.state} needs a source`);
      statements.push({ ...statement, source: sources.get(source ?? ""), file });
    }
  }
  const statementsIn = new Map<string, KnownStatement[]>();
  for (const { file: _, ...statement } of statements) {
    for (const code of statement.in) statementsIn.set(code, [...(statementsIn.get(code) ?? []), statement]);
  }

  const slotsOf: Atlas["slotsOf"] = (stack) => {
    const [place] = stack;
    if (!place) return [];
    const codes = stack.map(({ code }) => code);
    const entries = (countries.get(place.country)?.slots ?? anywhere).filter(
      (slot) =>
        (slot.in ?? codes).some((code) => codes.includes(code)) &&
        !slot.except_in?.some((code) => codes.includes(code)),
    );
    const depths = stack.map((one) => slotLevels.indexOf(levelOf(one)));
    const depth = Math.max(...depths, ...codes.map((code) => (cities.has(code) ? slotLevels.indexOf("city") : 0)));
    return entries.map(({ level, kind, levels = [level], law, either, ceiling }) => {
      const own = stack.filter((one) => levels.includes(levelOf(one)));
      const at = own[0] ?? place;
      return {
        level,
        kind,
        law,
        ...(either && { either }),
        ...(ceiling && { ceiling }),
        levels,
        places: own.map(({ code }) => code),
        at: { code: at.code, name: at.name },
        isReached: depth >= slotLevels.indexOf(level),
        statements: codes.flatMap((code) =>
          (statementsIn.get(code) ?? []).filter(
            (one) => one.level === level && fillsSlot(one.kind, { kind, either: either ?? false }),
          ),
        ),
      };
    });
  };
  return {
    slotsOf,
    tariffDaysOf: (country) => countries.get(country)?.tariff_days ?? [],
    hasCountry: (country) => countries.has(country),
    statements,
  };
}
