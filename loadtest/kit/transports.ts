/** The same measurement on one transport after the other, with the ratios: what commands with named figures have in common. */
import { writeFile } from "node:fs/promises";
import { type Figure, figuresJson, figuresRatio, figuresText } from "./figures.ts";
import { type GatewayUnderLoad, type ProcessOptions, startFrontdesk } from "./frontdesk_processes.ts";
import type { TransportName } from "./option_values.ts";
import { machine, print, progress } from "./terminal.ts";

export interface Measurement {
  title: string;
  options: { transports: readonly TransportName[]; jsonPath: string | undefined };
  processes?: ProcessOptions;
}

export async function measureTransports(
  { title, options, processes = {} }: Measurement,
  measure: (gateway: GatewayUnderLoad, report: (line: string) => void) => Promise<Figure[]>,
): Promise<void> {
  progress("starting Frontdesk");
  const frontdesk = await startFrontdesk({ mediaThreads: 1, ...processes });
  const how = frontdesk.separate
    ? "gateway in a process of its own"
    : processes.together
      ? "everything in one process"
      : "no redis-server here: everything in one process";
  const results: { name: string; figures: Figure[] }[] = [];
  try {
    for (const transport of options.transports) {
      const gateway = await frontdesk.startGateway(transport);
      try {
        const figures = await measure(gateway, (line) => progress(`${transport}: ${line}`));
        print(figuresText(`${title}, on ${transport} (${how})`, figures));
        results.push({ name: transport, figures });
      } finally {
        await gateway.stop();
      }
    }
  } finally {
    progress("stopping Frontdesk");
    await frontdesk.stop();
  }
  const [first, second] = results;
  if (first && second) print(figuresRatio([first.name, second.name], first.figures, second.figures));
  if (options.jsonPath) {
    const measured = Object.fromEntries(results.map(({ name, figures }) => [name, figuresJson(figures)]));
    await writeFile(options.jsonPath, `${JSON.stringify({ machine: machine(), options, measured }, null, 2)}\n`);
  }
}
