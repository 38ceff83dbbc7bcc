/** `npm run loadtest -- COMMAND …`: one file a command. */

import { calls } from "./calls/command.ts";
import { callsUsage } from "./calls/options.ts";
import { capacity } from "./capacity/command.ts";
import { capacityUsage } from "./capacity/options.ts";
import { http } from "./http/command.ts";
import { httpUsage } from "./http/options.ts";
import { OptionsError } from "./kit/option_values.ts";
import { rooms, roomsUsage } from "./rooms/command.ts";
import { runs } from "./runs/command.ts";
import { runsUsage } from "./runs/options.ts";
import { streams } from "./streams/command.ts";
import { streamsUsage } from "./streams/options.ts";
import { traces } from "./traces/command.ts";
import { tracesUsage } from "./traces/options.ts";

const commands: Readonly<Record<string, { run(args: readonly string[]): Promise<void>; usage: string }>> = {
  calls: { run: calls, usage: callsUsage },
  rooms: { run: rooms, usage: roomsUsage },
  streams: { run: streams, usage: streamsUsage },
  runs: { run: runs, usage: runsUsage },
  http: { run: http, usage: httpUsage },
  traces: { run: traces, usage: tracesUsage },
  capacity: { run: capacity, usage: capacityUsage },
};

// What we started ends with us, also when we are told to end.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const [name = "", ...args] = process.argv.slice(2);
const command = commands[name];
try {
  if (!command) throw new OptionsError(`Expected one of these commands: ${Object.keys(commands).join(", ")}`);
  await command.run(args);
} catch (error) {
  const isOption = error instanceof OptionsError;
  const usage = Object.values(command ? [command] : commands).map((one) => one.usage);
  process.stderr.write(`${(error as Error).message}\n${isOption ? `\n${usage.join("\n\n")}\n` : ""}`);
  process.exitCode = isOption ? 2 : 1;
}
