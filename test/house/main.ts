/**
 * `npm run house`: the figures of the house, as a reader meets them.
 *
 *     npm run house               prints the figures
 *     npm run house -- --write    makes the lint rules, import paths and map from house.json
 *     npm run house -- --list     also names what each figure counts
 */
import { parseArgs } from "node:util";
import { houseFigures } from "./figures.ts";
import { writeMade } from "./made_files.ts";

const { values: flags } = parseArgs({
  options: { write: { type: "boolean", default: false }, list: { type: "boolean", default: false } },
});
if (flags.write) {
  for (const path of writeMade()) console.log(`wrote ${path}`);
} else {
  for (const { figure, goal, found } of houseFigures()) {
    console.log(`${String(found.length).padStart(5)}  ${figure} (goal: ${goal})`);
    if (flags.list) for (const one of found) console.log(`         ${one}`);
  }
}
