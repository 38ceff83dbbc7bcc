/**
 * `npm run adversary`: attacks a started house from outside, area by area, and says what did not hold.
 *
 *     npm run adversary                              all areas, on the house of .data
 *     npm run adversary -- frames http_shapes        these areas
 *     npm run adversary -- --data-dir DIR --log FILE on another house; its log is searched for secrets
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { areaNames, attackHouse } from "./areas.ts";
import { openHouse } from "./attacked_house.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { "data-dir": { type: "string", default: ".data" }, log: { type: "string" } },
});
const unknown = positionals.filter((name) => !areaNames.includes(name));
if (unknown.length > 0) {
  console.error(`No area is called ${unknown.join(", ")}. There are: ${areaNames.join(", ")}.`);
  process.exit(1);
}
const house = openHouse(values["data-dir"]);
const findings = await attackHouse(house, {
  areas: positionals.length > 0 ? positionals : areaNames,
  log: () => (values.log === undefined ? "" : readFileSync(values.log, "utf8")),
  say: (line) => console.log(line),
});
await house.close();
console.log(findings.length === 0 ? "Everything held." : `${findings.length} did not hold.`);
process.exit(findings.length === 0 ? 0 : 1);
