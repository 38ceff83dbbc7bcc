/** `npm run loadtest -- COMMAND …`: one file a command. */
import { calls } from "./calls.ts";
import { callsUsage, OptionsError } from "./calls_options.ts";

const commands: Readonly<Record<string, { run(args: readonly string[]): Promise<void>; usage: string }>> = {
  calls: { run: calls, usage: callsUsage },
};

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
