/**
 * Tools of the house, carried out: `POST /internal/calls/{call_id}/tools/{name}`. An agent finds, quotes and
 * books a stay with our own tax and booking service, under its own organization. A call books what it has
 * quoted, and nothing else.
 */

import { Type } from "@sinclair/typebox";
import { ApiError } from "#contracts/errors.ts";
import { houseTools } from "#contracts/house_tools.ts";
import { named } from "#contracts/named_schema.ts";
import type { Stays as House } from "#contracts/voice_agent.ts";
import { type Guard, type Route, route } from "#http/route.ts";
import { sha256Hex } from "#identity/secret.ts";
import type { AnySql, Sql } from "#store/sql.ts";
import type { CalculationRequest } from "#tax/calculator/calculation_request.ts";
import { CalculationProblem } from "#tax/calculator/calculation_request.ts";
import type { Stays } from "#tax/tax_service.ts";
import { callInProgress, keepQuotedStay } from "#voice/call_rows.ts";
import { plusDays, spokenDay, spokenNumber } from "./spoken_stay.ts";

export interface HouseToolDeps {
  sql: Sql;
  now(): Date;
  internal: Guard<undefined>;
  stays: Stays;
}

const HouseToolCall = named(
  "HouseToolCall",
  Type.Object({ tool_call_id: Type.String(), arguments: Type.Record(Type.String(), Type.Unknown()) }),
  { tool_call_id: "the model's id of the call", arguments: "what the model gave" },
);
const HouseToolReply = named(
  "HouseToolReply",
  Type.Object({
    result: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    error: Type.Optional(Type.String()),
  }),
  { result: "what came of it; `say` in words", error: "why it failed, in words for the model" },
);

/** Why it cannot be done, for the model. */
class HouseProblem extends Error {}

interface Calling {
  id: string;
  organization_id: string;
  house: House | null;
  quoted_stay: CalculationRequest | null;
}

const callingColumns = (sql: AnySql) =>
  sql`call.id, call.organization_id, call.quoted_stay, coalesce(call.inline_config, agent.config) -> 'stays' as house`;

interface Stay {
  arrival: string;
  nights: number;
  guests: number;
}

export function houseToolRoutes(deps: HouseToolDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/internal/calls/{call_id}/tools/{name}",
      summary: "A tool of the house, for a call in progress",
      guard: deps.internal,
      params: { name: Type.String() },
      body: HouseToolCall,
      reply: { status: 200, body: HouseToolReply },
      handle: async ({ params, body }) => {
        if (!(params.name in houseTools)) throw new ApiError("not_found");
        const call = await callInProgress<Calling>(deps.sql, params.call_id, callingColumns(deps.sql));
        try {
          return { result: await carryOut(deps, call, params.name as keyof typeof houseTools, body.arguments) };
        } catch (error) {
          if (error instanceof HouseProblem || error instanceof CalculationProblem) return { error: error.message };
          if (error instanceof ApiError && error.code === "bad_request") return { error: "This cannot be booked" };
          throw error;
        }
      },
    }),
  ];
}

async function carryOut(
  deps: HouseToolDeps,
  call: Calling,
  name: keyof typeof houseTools,
  given: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const { house } = call;
  if (!house) throw new HouseProblem("The agent has no house to book stays in");
  if (name === "book_stay") return bookStay(deps, call, house, given);
  const stay = stayFrom(given, deps.now().toISOString().slice(0, 10));
  const free = await freeRooms(deps.sql, call.organization_id, house, stay);
  const nights = `${stay.nights} ${stay.nights === 1 ? "night" : "nights"} from ${stay.arrival}`;
  if (free === 0) return { ...stay, free, say: `I am sorry, nothing is free for ${nights}.` };
  if (name === "find_stay") {
    const rate = `${house.nightly_rate} ${house.currency}`;
    return { ...stay, free, say: `Yes, a room is free for ${nights}, at ${rate} a night before tax.` };
  }
  const request = requestFor(house, stay);
  const { tax_breakdown, total_with_tax } = deps.stays.quote(request);
  const { total_tax } = tax_breakdown;
  await keepQuotedStay(deps.sql, call.id, request);
  const say = `${nights} come to ${total_with_tax} ${house.currency}, of which ${total_tax} are tax.`;
  return { ...stay, total: total_with_tax, tax: total_tax, currency: house.currency, say };
}

/** Books what was quoted last; the same again is the same booking. */
async function bookStay(
  { sql, stays }: HouseToolDeps,
  call: Calling,
  house: House,
  { name }: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const quoted = call.quoted_stay;
  if (!quoted) throw new HouseProblem("Nothing was quoted in this call yet: quote the stay first");
  const guest = String(name ?? "").trim();
  if (!guest) throw new HouseProblem("The guest's name is missing");
  const stay = {
    arrival: String(quoted.stay_date),
    nights: Number(quoted.nights),
    guests: Number(quoted.number_of_guests),
  };
  const idempotency_key = sha256Hex(`${call.id} ${JSON.stringify(quoted)} ${guest.toLowerCase()}`);
  const external_reference = `${guest.slice(0, 150)} (call ${call.id})`;
  if ((await freeRooms(sql, call.organization_id, house, stay, external_reference)) === 0) {
    throw new HouseProblem("Somebody else has just booked the last room");
  }
  const id = await stays.book(call.organization_id, { idempotency_key, external_reference, calculation: quoted });
  return { ...stay, name: guest, booking_id: id, number: id.slice(0, 8) };
}

function stayFrom(given: Readonly<Record<string, unknown>>, today: string): Stay {
  const arrival = spokenDay(given.arrival, today);
  if (!arrival)
    throw new HouseProblem("The day of arrival is not clear: expected a day such as 2026-12-24, from today on");
  const nights = spokenNumber(given.nights);
  if (!nights || nights > 60) throw new HouseProblem("The number of nights is not clear: expected 1 to 60");
  const guests = given.guests === undefined || given.guests === "" ? 1 : spokenNumber(given.guests);
  if (!guests || guests > 20) throw new HouseProblem("The number of guests is not clear: expected 1 to 20");
  return { arrival, nights, guests };
}

function requestFor(house: House, { arrival, nights, guests }: Stay): CalculationRequest {
  const { rooms: _, ...place } = house;
  return { ...place, stay_date: arrival, nights, number_of_guests: guests } as CalculationRequest;
}

/** Rooms that no booking of the organization at this place holds on any of the nights; `own` is not counted. */
async function freeRooms(sql: AnySql, organizationId: string, house: House, stay: Stay, own = ""): Promise<number> {
  const [taken] = await sql<{ count: string }[]>`
    select count(*) as count from bookings
    where organization_id = ${organizationId} and environment = 'live' and state not in ('voided', 'refunded')
      and jurisdiction_code = ${house.jurisdiction_code}
      and stay_date < ${plusDays(stay.arrival, stay.nights)} and checkout_date > ${stay.arrival}
      and external_reference is distinct from ${own}`;
  return Math.max(0, house.rooms - Number(taken?.count ?? 0));
}
