/**
 * The price table: the vendors' public list prices that we know, from `prices.json`, and before them the
 * operator's own from `PRICES_FILE`, a file of the same form. A contract's prices, and those of a model
 * that is not listed, are the operator's to say: what has no row costs an unknown sum.
 */
import { readFileSync } from "node:fs";
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type Price, PriceTable } from "#contracts/usage.ts";
import { modelStages } from "#contracts/voice_agent.ts";
import type { StageSettings } from "./stages.ts";

/** The file cannot be used; the message says where it is wrong. */
export class PriceTableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "PriceTableError";
  }
}

const listed = readTable(new URL("./prices.json", import.meta.url));

/** @param path of the operator's file. @throws PriceTableError */
export function openPriceTable(path?: string): PriceTable {
  if (path === undefined) return listed;
  const own = readTable(path);
  // Sums are in one currency: the list's rows are of no use beside another.
  const others = own.currency === listed.currency ? listed.prices : [];
  const taken = new Set(own.prices.map(placeOf));
  return { currency: own.currency, prices: [...own.prices, ...others.filter((price) => !taken.has(placeOf(price)))] };
}

const placeOf = ({ stage, provider, model = "", base_url = "" }: Price) => [stage, provider, model, base_url].join(" ");

function readTable(path: string | URL): PriceTable {
  let table: unknown;
  try {
    table = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new PriceTableError(`Cannot read the price table ${path}: ${(cause as Error).message}`);
  }
  const [problem] = Value.Errors(PriceTable as TSchema, table);
  if (problem) throw new PriceTableError(`Cannot use the price table ${path}: ${problem.path}: ${problem.message}`);
  return table as PriceTable;
}

/** The rows that stages with these settings may need. */
export function pricesFor({ currency, prices }: PriceTable, config: StageSettings): PriceTable {
  const named = new Set(
    modelStages.flatMap((stage) => {
      const settings = config[stage];
      return [settings, ...(settings?.fallbacks ?? [])].map((one) => `${stage} ${one?.provider}`);
    }),
  );
  return { currency, prices: prices.filter(({ stage, provider }) => named.has(`${stage} ${provider}`)) };
}
