/**
 * A tax rule as data: every shape of accommodation tax law that we know of, expressible without
 * code. `api/tax/data/README.md` explains each field to authors, with an example of each shape.
 *
 * A file holds the rules of one country or authority. A rule has an identity and versions; a
 * version has a range of dates, a source and a status. Terms (who pays, how much, on what) stand
 * on the rule where all versions share them, on a version where they differ, and in a `cases`
 * entry where they depend on facts. The nearer one wins, field by field.
 */
import { type Static, Type } from "@sinclair/typebox";
import { oneOf } from "#contracts/one_of.ts";

/** Whose tax it is, wider before narrower. */
export const slotLevels = ["country", "state", "county", "city", "zone"] as const;
export const ruleKinds = ["accommodation", "vat", "sales", "fee"] as const;
export const propertyTypes = [
  "hotel",
  "aparthotel",
  "apartment",
  "short_term_rental",
  "holiday_home",
  "bed_and_breakfast",
  "guesthouse",
  "hostel",
  "campsite",
  "resort",
  "palace",
  "ryokan",
  "unclassified",
] as const;
export const purposes = ["leisure", "business", "medical", "education"] as const;
export const customerTypes = ["consumer", "business", "government", "diplomat", "exempt_entity"] as const;
export const channels = ["direct", "platform"] as const;
/** Whether the seller charges VAT, or is small enough that the law lets it off. */
export const sellerVatStatuses = ["registered", "small_business"] as const;
export const units = ["room_night", "person_night", "unit_night", "room_stay", "person_stay", "stay"] as const;
export const priceKeys = [
  "price_per_room_night",
  "price_per_person_night",
  "stay_price_per_room",
  "stay_price_per_person",
  "declared_tariff",
] as const;
const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

const closed = { additionalProperties: false } as const;

/** Digits as written in the law: a string, so that nothing passes through a float. */
const Amount = Type.String({ pattern: "^\\d{1,15}(\\.\\d{1,12})?$", description: 'digits such as "7.50"' });
export const CalendarDate = Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description: "a date as YYYY-MM-DD" });
const MonthDay = Type.String({ pattern: "^\\d{2}-\\d{2}$", description: "a day of the year as MM-DD" });
const RuleId = Type.String({
  pattern: "^[a-z0-9]+([.-][a-z0-9]+)*$",
  description: "an id such as it-rm-rom.tourist-tax",
});
export const JurisdictionCode = Type.String({
  pattern: "^[A-Z]{2}(-[A-Z0-9]{1,8}){0,4}$",
  description: "a code such as IT-RM-ROM",
});
const CountryCode = Type.String({ pattern: "^[A-Z]{2}$", description: "an ISO 3166-1 alpha-2 code" });
const Count = Type.Integer({ minimum: 1, maximum: 1000 });
const Age = Type.Integer({ minimum: 0, maximum: 130 });

/** A range of dates, `from` inclusive, `to` exclusive. */
const DateRange = Type.Object({ from: Type.Optional(CalendarDate), to: Type.Optional(CalendarDate) }, closed);
/** A range of whole numbers, both ends inclusive. */
const CountRange = Type.Object(
  { min: Type.Optional(Type.Integer({ minimum: 0 })), max: Type.Optional(Type.Integer({ minimum: 0 })) },
  closed,
);
/** A range of prices in the rule's currency: at least `min`, under `below`. */
const PriceRange = Type.Object({ min: Type.Optional(Amount), below: Type.Optional(Amount) }, closed);

/** Facts that must all hold. An absent key asks nothing; `{}` always holds. */
export const Predicate = Type.Recursive(
  (Self) =>
    Type.Object(
      {
        property_type: Type.Optional(Type.Array(oneOf(propertyTypes), { minItems: 1 })),
        /** Star ratings. 4 matches 4 and 4.5 (four stars superior) alike, 4.5 only itself; 0 is "has none". */
        stars: Type.Optional(Type.Array(Type.Number({ minimum: 0, maximum: 7, multipleOf: 0.5 }), { minItems: 1 })),
        property_rooms: Type.Optional(CountRange),
        guest_country: Type.Optional(Type.Array(CountryCode, { minItems: 1 })),
        resident: Type.Optional(Type.Boolean()),
        purpose: Type.Optional(Type.Array(oneOf(purposes), { minItems: 1 })),
        customer_type: Type.Optional(Type.Array(oneOf(customerTypes), { minItems: 1 })),
        channel: Type.Optional(Type.Array(oneOf(channels), { minItems: 1 })),
        seller_vat_status: Type.Optional(Type.Array(oneOf(sellerVatStatuses), { minItems: 1 })),
        /** A name among the file's `seasons`; looked up for each night. */
        season: Type.Optional(Type.String()),
        weekday: Type.Optional(Type.Array(oneOf(weekdays), { minItems: 1 })),
        night_number: Type.Optional(CountRange),
        /** Length of the stay in nights. */
        nights: Type.Optional(CountRange),
        guests: Type.Optional(CountRange),
        rooms: Type.Optional(CountRange),
        /** The nightly price of one room as the request has it. */
        room_price: Type.Optional(PriceRange),
        booked: Type.Optional(DateRange),
        paid: Type.Optional(DateRange),
        any: Type.Optional(Type.Array(Self, { minItems: 1 })),
        not: Type.Optional(Self),
      },
      closed,
    ),
  { $id: "TaxPredicate" },
);
export type Predicate = Static<typeof Predicate>;

const Fraction = Type.Object(
  { n: Type.Integer({ minimum: 0, maximum: 1e9 }), d: Type.Integer({ minimum: 1, maximum: 1e9 }) },
  closed,
);

/** Exactly one of the three; in bands and cases alike. */
const rateFields = {
  flat: Type.Optional(Amount),
  percent: Type.Optional(Amount),
  fraction: Type.Optional(Fraction),
};

export const Bands = Type.Object(
  {
    key: oneOf(priceKeys),
    /** slab: the row that the key falls in counts for all; marginal: each part of the price by its own row. */
    mode: oneOf(["slab", "marginal"]),
    /** Whether a row begins at its `from` (at_least, the default) or just above it ("up to and including"). */
    boundary: Type.Optional(oneOf(["at_least", "above"])),
    rows: Type.Array(Type.Object({ from: Amount, ...rateFields }, closed), { minItems: 1, maxItems: 200 }),
    /** Open end: each started `every` above `above` adds `add` to the last row's flat amount. */
    step: Type.Optional(Type.Object({ above: Amount, every: Amount, add: Amount }, closed)),
  },
  closed,
);
export type Bands = Static<typeof Bands>;

export const RateAmount = Type.Object(
  {
    ...rateFields,
    bands: Type.Optional(Bands),
    /** A surtax: percent of what the named rules charge, unit by unit. */
    percent_of_tax: Type.Optional(Type.Object({ of: Type.Array(RuleId, { minItems: 1 }), percent: Amount }, closed)),
  },
  {
    ...closed,
    minProperties: 1,
    maxProperties: 1,
    description: "exactly one of flat, percent, fraction, bands, percent_of_tax",
  },
);
export type RateAmount = Static<typeof RateAmount>;

export const priceParts = ["room", "cleaning", "service_charge", "breakfast"] as const;
export type PricePart = (typeof priceParts)[number];

export const Base = Type.Object(
  {
    /** Which parts of the nightly price count. All of them when absent. */
    includes: Type.Optional(Type.Array(oneOf(priceParts))),
    /** gross: the price with the VAT or sales tax on the room. net when absent. */
    price: Type.Optional(oneOf(["net", "gross"])),
    /** Taxes that are added to the base; a VAT or sales rule has those that are `in_base_same_rate` anyway. */
    includes_tax: Type.Optional(Type.Array(RuleId)),
    /** Taxes that are taken out of the base. */
    net_of: Type.Optional(Type.Array(RuleId)),
    /** The levy is part of its own base: r / (1 - r) of the price without it. */
    includes_self: Type.Optional(Type.Boolean()),
    deduct: Type.Optional(
      Type.Array(
        Type.Object(
          {
            percent: Type.Optional(Amount),
            amount: Type.Optional(Amount),
            per: Type.Optional(oneOf(["room_night", "person_night"])),
            /** Only where this part is in the price without an amount of its own (`true` in the request). */
            if_included: Type.Optional(oneOf(["breakfast", "cleaning", "service_charge"])),
          },
          closed,
        ),
      ),
    ),
    /** Whose number makes a price per person: all guests (the default), adults, or those that pay. */
    divide_by: Type.Optional(oneOf(["guests", "adults", "payers"])),
  },
  closed,
);
export type Base = Static<typeof Base>;

const perUnits = ["person_night", "room_night", "person_stay", "room_stay", "stay"] as const;
const Bound = Type.Object({ per: oneOf(perUnits), amount: Amount }, closed);
export type Bound = Static<typeof Bound>;

const terms = {
  currency: Type.Optional(Type.String({ pattern: "^[A-Z]{3}$" })),
  /** Where the tax exists at all; unmet: the rule is skipped. For "exists, but not for them" use `exemptions`. */
  when: Type.Optional(Predicate),
  /** Which date decides the version. */
  date_anchor: Type.Optional(oneOf(["night", "checkin", "checkout", "booking", "payment"])),
  booking_window: Type.Optional(DateRange),
  payment_window: Type.Optional(DateRange),
  unit: Type.Optional(oneOf(units)),
  /** Ages that pay; an age in no band does not. All pay when absent. Ends inclusive, first match wins. */
  persons: Type.Optional(
    Type.Array(
      Type.Object(
        {
          min_age: Type.Optional(Age),
          max_age: Type.Optional(Age),
          /** Share of the full amount, 1 when absent. */
          factor: Type.Optional(Type.Union([Amount, Fraction])),
          /** An amount of its own instead of a share. */
          flat: Type.Optional(Amount),
        },
        closed,
      ),
      { minItems: 1 },
    ),
  ),
  /** When a guest's age is taken; said in the explanation, since requests carry ages. */
  age_at: Type.Optional(oneOf(["checkin", "first_night", "night", "checkout"])),
  nights: Type.Optional(
    Type.Object(
      {
        /** Only the first so many nights are taxed. */
        max: Type.Optional(Count),
        /** The first so many nights are free. */
        skip: Type.Optional(Count),
        /** Share of the amount by the night's number, both ends inclusive; 1 in none. */
        bands: Type.Optional(
          Type.Array(
            Type.Object({ from: Count, to: Type.Optional(Count), factor: Type.Union([Amount, Fraction]) }, closed),
            { minItems: 1 },
          ),
        ),
        /** What the limit counts over; for the explanation where it is more than this stay. */
        scope: Type.Optional(oneOf(["stay", "month_and_property", "year_and_property", "year_and_place"])),
      },
      closed,
    ),
  ),
  long_stay: Type.Optional(
    Type.Object(
      {
        /** The stay is long when it has at least so many nights. One of nights and months. */
        nights: Type.Optional(Count),
        months: Type.Optional(Type.Integer({ minimum: 1, maximum: 24 })),
        /** all_nights: free from the first; from_day_n: free from that night on; with_notice: as all_nights, given the notice. */
        effect: oneOf(["all_nights", "from_day_n", "with_notice"]),
      },
      closed,
    ),
  ),
  amount: Type.Optional(RateAmount),
  base: Type.Optional(Base),
  floor: Type.Optional(Bound),
  cap: Type.Optional(Bound),
  /** No tax at all under `min`. */
  threshold: Type.Optional(Type.Object({ key: oneOf(priceKeys), min: Amount }, closed)),
  /** What these charge is taken off this one, night by night, never below nothing. */
  offset_by: Type.Optional(Type.Array(RuleId, { minItems: 1 })),
  rounding: Type.Optional(
    Type.Object(
      {
        mode: oneOf(["half_up", "half_even", "down", "up"]),
        increment: Type.Optional(Amount),
        at: Type.Optional(oneOf(["person_night", "room_night", "night", "line", "stay"])),
      },
      closed,
    ),
  ),
  /** Who is let off, with the reason that the answer shows beside a zero. */
  exemptions: Type.Optional(
    Type.Array(
      Type.Object(
        {
          code: Type.String({ pattern: "^[a-z0-9_]+$" }),
          reason: Type.String({ minLength: 3 }),
          when: Predicate,
          /** Of the file's sources, where it is another than the version's. */
          source: Type.Optional(Type.String()),
          note: Type.Optional(Type.String()),
        },
        closed,
      ),
    ),
  ),
  vat_treatment: Type.Optional(oneOf(["in_base_same_rate", "own_rate", "outside", "disbursement"])),
  collector: Type.Optional(oneOf(["property", "platform", "guest_direct", "either"])),
  /** What becomes of the tax when the stay is cancelled or not used. */
  on_cancellation: Type.Optional(oneOf(["not_due", "due", "due_on_kept_amount"])),
  /** What a property has to keep as proof of an exemption. */
  evidence: Type.Optional(Type.Array(Type.String())),
};

/** What becomes of a tariff that ends and that nothing follows. */
export const lapses = ["continue", "end", "unknown"] as const;

/** The few words of a source that carry a figure, in its own language. */
const Quote = Type.Object(
  {
    /** `id` among the version's sources. */
    source: Type.String(),
    quote: Type.String({ minLength: 3, maxLength: 160 }),
    /** Where it stands: a paragraph, a table, a page. */
    locator: Type.Optional(Type.String({ minLength: 1 })),
  },
  closed,
);
export type Quote = Static<typeof Quote>;

/** Facts decide terms: the first entry whose `when` holds; none holds: skipped. */
const { when: _when, date_anchor: _anchor, booking_window: _booked, payment_window: _paid, ...caseTerms } = terms;
const Case = Type.Object({ when: Predicate, label: Type.Optional(Type.String()), ...caseTerms }, closed);
export type Case = Static<typeof Case>;
const cases = Type.Optional(Type.Array(Case, { minItems: 1, maxItems: 300 }));
/** What the law says of those whom no case names; where this is absent, we do not know. */
const otherwise = Type.Optional(Type.Literal("not_taxed"));

const RuleVersion = Type.Object(
  {
    /** Counts up within the rule and is never reused: stored bookings name it. */
    version: Type.Integer({ minimum: 1 }),
    effective: Type.Object({ from: CalendarDate, to: Type.Optional(CalendarDate) }, closed),
    /** `id` in the file's sources; several where one has the rate and another its terms. */
    source: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })]),
    /** The words that carry its figures; without any from a primary source it is `reported`, not `verified`. */
    quotes: Type.Optional(Type.Array(Quote, { minItems: 1 })),
    /**
     * Of a version that ends and is not followed on that day: the tariff goes on until a new one is found,
     * the source says that the tax ends or rests, or nobody knows.
     */
    on_lapse: Type.Optional(oneOf(lapses)),
    /** When somebody has to look again; the next day on which the authority may change it, when absent. */
    review_by: Type.Optional(CalendarDate),
    /** When it became public: a replay as of an earlier date does not know it. Absent: see `known_law.ts`. */
    announced_on: Type.Optional(CalendarDate),
    note: Type.Optional(Type.String()),
    ...terms,
    cases,
    otherwise,
  },
  closed,
);
export type RuleVersion = Static<typeof RuleVersion>;

const Rule = Type.Object(
  {
    id: RuleId,
    jurisdiction: JurisdictionCode,
    /** Places below the jurisdiction where it does not apply, with all that lies in them. */
    except_in: Type.Optional(Type.Array(JurisdictionCode, { minItems: 1 })),
    /** Whose tax it is, where not the jurisdiction's alone: a state's that differs in one city, or a sum of several. */
    levels: Type.Optional(Type.Array(oneOf(slotLevels), { minItems: 1 })),
    authority: Type.String({ minLength: 2 }),
    /** The tax's own name. */
    name: Type.String({ minLength: 2 }),
    kind: oneOf(ruleKinds),
    /** For reports, e.g. tourist_tax, occupancy_tax, vat_reduced. */
    category_code: Type.Optional(Type.String({ pattern: "^[a-z0-9_]+$" })),
    note: Type.Optional(Type.String()),
    ...terms,
    cases,
    otherwise,
    versions: Type.Array(RuleVersion, { minItems: 1 }),
  },
  closed,
);
export type Rule = Static<typeof Rule>;

export const Source = Type.Object(
  {
    id: Type.String({ pattern: "^[a-z0-9-]+$" }),
    title: Type.String({ minLength: 3 }),
    url: Type.String({ pattern: "^https?://" }),
    printed_on: Type.Optional(Type.String({ pattern: "^\\d{4}(-\\d{2}){0,2}$" })),
    /** The day on which somebody read it. */
    checked_on: CalendarDate,
    /**
     * law: the text of a law or by-law; official: the authority's own page; official_copy: its text on
     * another's page; the rest is secondary.
     */
    kind: oneOf(["law", "official", "official_copy", "association", "press", "operator"]),
  },
  closed,
);
export type Source = Static<typeof Source>;

const Example = Type.Object(
  {
    name: Type.String({ minLength: 3 }),
    /** The body of `POST /v1/tax/calculate`. */
    request: Type.Record(Type.String(), Type.Unknown()),
    /** `totals_by_kind` as the source has them; kinds that it does not speak of are left out. */
    expected: Type.Partial(
      Type.Object(
        Object.fromEntries(ruleKinds.map((kind) => [kind, Amount])) as Record<
          (typeof ruleKinds)[number],
          typeof Amount
        >,
        closed,
      ),
    ),
    /** Amounts of single rules, over all their versions. */
    expected_rules: Type.Optional(Type.Record(RuleId, Amount)),
    source: Type.String(),
    note: Type.Optional(Type.String()),
  },
  closed,
);
export type Example = Static<typeof Example>;

/** Says of a place that what we hold of it is not all; that it has no tax is a statement of the atlas. */
const Coverage = Type.Object(
  {
    jurisdiction: JurisdictionCode,
    /** partial: details of what is held; missing: another tax, or a part of one, that is due and not held. */
    status: oneOf(["partial", "missing"]),
    from: Type.Optional(CalendarDate),
    to: Type.Optional(CalendarDate),
    note: Type.String({ minLength: 3 }),
    source: Type.Optional(Type.String()),
  },
  closed,
);
export type Coverage = Static<typeof Coverage>;

export const RuleFile = Type.Object(
  {
    about: Type.String({ minLength: 3, description: "Whose rules these are" }),
    sources: Type.Array(Source, { minItems: 1 }),
    /** Named seasons by day of the year, ends inclusive; may run over the new year. */
    seasons: Type.Optional(
      Type.Record(
        Type.String({ pattern: "^[a-z0-9_]+$" }),
        Type.Array(Type.Object({ from: MonthDay, to: MonthDay }, closed), { minItems: 1 }),
      ),
    ),
    rules: Type.Array(Rule),
    coverage: Type.Optional(Type.Array(Coverage)),
    examples: Type.Optional(Type.Array(Example)),
  },
  closed,
);
export type RuleFile = Static<typeof RuleFile>;
