/** `npm run capacity`: what a load needs and what a machine carries, from what was measured. */
import { print, progress } from "../kit/terminal.ts";
import { readCosts, writeCosts } from "./costs.ts";
import { measureCosts } from "./measure.ts";
import { capacityOptions } from "./options.ts";
import { carriedBy, planFor } from "./plan.ts";
import { carriedText, costsText, planText } from "./report.ts";

/** @throws OptionsError for a wrong option */
export async function capacity(args: readonly string[]): Promise<void> {
  const { demand, machine, measure } = capacityOptions(args);
  if (measure) writeCosts(await measureCosts(progress));
  const costs = readCosts();
  print(planText(demand, planFor(costs, demand)));
  print(carriedText(machine, carriedBy(costs, machine, demand)));
  print(costsText(costs));
}
