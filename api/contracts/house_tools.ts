/**
 * Tools of the house: what an agent can do with our own tax and booking service, under its own organization.
 * The session offers them, the api carries them out (`POST /internal/calls/{call_id}/tools/{name}`).
 */
import type { ToolParam } from "./tool_params.ts";

export interface HouseTool {
  description: string;
  params: readonly ToolParam[];
  /** It changes something: an interruption lets it end. */
  changes: boolean;
}

const arrival: ToolParam = {
  name: "arrival",
  description: "Day of arrival: 2026-12-24, or today, tomorrow, a weekday, 24 December",
  required: true,
};
const nights: ToolParam = { name: "nights", description: "Number of nights, as a number or a word", required: true };
const guests: ToolParam = { name: "guests", description: "Number of guests, as a number or a word; one unless given" };

export const houseTools = {
  find_stay: {
    description: "Looks up which rooms are free for a stay, and their price for each night.",
    params: [arrival, nights, guests],
    changes: false,
  },
  quote_stay: {
    description: "Quotes a stay: the room's price and the tax on accommodation at the house's place.",
    params: [arrival, nights, guests],
    changes: false,
  },
  book_stay: {
    description: "Books the stay that was quoted last in this call. Only after the guest has said yes to the quote.",
    params: [{ name: "name", description: "The guest's name", required: true }],
    changes: true,
  },
} as const satisfies Record<string, HouseTool>;
export type HouseToolName = keyof typeof houseTools;
