/** `npm run drill:restore [-- --dump FILE]`: tries a backup. Ends with 1 when it cannot be lived on. */
import { parseArgs } from "node:util";
import { readDrillConfig } from "../config.ts";
import { drillRestore } from "./restore_drill.ts";

const say = (line: string) => process.stdout.write(`${line}\n`);
try {
  const { values } = parseArgs({ options: { dump: { type: "string" } } });
  const faults = await drillRestore({ ...readDrillConfig(), dumpFile: values.dump, report: say });
  for (const fault of faults) say(fault);
  say(faults.length === 0 ? "the backup can be lived on" : "THE BACKUP IS NOT WHOLE");
  process.exitCode = faults.length === 0 ? 0 : 1;
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
