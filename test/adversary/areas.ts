/** All areas of attack, in this order: what locks accounts or looks back at everything comes last. */
import { addresses } from "./addresses.ts";
import type { Finding, House } from "./attacked_house.ts";
import { authorization } from "./authorization.ts";
import { expressions } from "./expressions.ts";
import { frames } from "./frames.ts";
import { httpShapes } from "./http_shapes.ts";
import { secretsArea } from "./secrets.ts";
import { signIn } from "./sign_in.ts";
import { slowClients } from "./slow_clients.ts";

const areasFor = (log: () => string) => [
  authorization,
  addresses,
  httpShapes,
  frames,
  expressions,
  slowClients,
  signIn,
  secretsArea(log),
];
export const areaNames = areasFor(() => "").map(({ name }) => name);

export interface AttackOptions {
  areas: readonly string[];
  /** What the house has written so far. */
  log(): string;
  say(line: string): void;
}

/** @throws Error where an attack cannot even begin: nothing is told of a house that was not attacked */
export async function attackHouse(house: House, { areas, log, say }: AttackOptions): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const area of areasFor(log).filter(({ name }) => areas.includes(name))) {
    say(`${area.name} …`);
    await area.attack(house, (what) => {
      findings.push({ area: area.name, what });
      say(`  did not hold: ${what}`);
    });
  }
  return findings;
}
