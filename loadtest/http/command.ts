/** `npm run loadtest -- http`: REST endpoints under autocannon, through the gateway, at the api's own port, and beside bare servers. */
import { writeFile } from "node:fs/promises";
import { type Figure, figuresJson, figuresText } from "../kit/figures.ts";
import { startFrontdesk } from "../kit/frontdesk_processes.ts";
import { machine, print, progress } from "../kit/terminal.ts";
import { httpOptions } from "./options.ts";
import { httpRatios, type NamedFigures, runHttp } from "./run.ts";

/** Runs the test with these command-line arguments. @throws OptionsError for a wrong one */
export async function http(args: readonly string[]): Promise<void> {
  const options = httpOptions(args);
  progress("starting Frontdesk");
  const frontdesk = await startFrontdesk({ mediaThreads: 1, slots: 100_000 });
  const measured: NamedFigures[] = [];
  try {
    for (const [index, transport] of options.transports.entries()) {
      const gateway = await frontdesk.startGateway(transport);
      try {
        // The api and the bare servers are the same for every transport: measured once.
        const places = await runHttp(gateway, transport, options, { alsoApi: index === 0, report: progress });
        measured.push(...places);
      } finally {
        await gateway.stop();
      }
    }
  } finally {
    progress("stopping Frontdesk");
    await frontdesk.stop();
  }
  for (const { name, figures } of measured) print(figuresText(name, figures));
  print(httpRatios(measured));
  if (options.jsonPath) {
    const places = Object.fromEntries(
      measured.map(({ name, figures }: { name: string; figures: Figure[] }) => [name, figuresJson(figures)]),
    );
    await writeFile(options.jsonPath, `${JSON.stringify({ machine: machine(), options, places }, null, 2)}\n`);
  }
}
