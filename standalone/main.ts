/**
 * `npm start`.
 *
 * Ctrl-C (SIGINT) stops everything at once; SIGTERM, which supervisors send, lets calls in progress
 * finish first. Asked a second time a drain is cut short, and a stop that hangs is left.
 */
import pino from "pino";
import { ConfigError, readStandaloneConfig } from "./config.ts";
import { DataDirHeldError } from "./data_dir.ts";
import { PortsTakenError } from "./ports.ts";
import { type Standalone, startStandalone } from "./standalone.ts";

/** A terminal's Ctrl-C reaches us directly and once more through npm: two within this are one. */
const sameSignalMs = 500;

try {
  const config = readStandaloneConfig();
  // Standard output is for people; the log's JSON lines go to standard error.
  const logger = pino({ name: "frontdesk", level: config.logLevel }, pino.destination(2));
  const startSignals = stopOnSignals();
  const standalone = await startStandalone(config, logger);
  startSignals.handOver(standalone);
  print(standalone);
  await standalone.databaseLost;
  logger.error({}, "Postgres ended, so everything stops");
  await standalone.close();
  process.exit(1);
} catch (error) {
  const mendable = [ConfigError, DataDirHeldError, PortsTakenError].some((kind) => error instanceof kind);
  process.stderr.write(`${mendable ? (error as Error).message : (error as Error).stack}\n`);
  process.exit(1);
}

function print(standalone: Standalone): void {
  const { gatewayUrl, apiUrl, appUrl, collectorUrl, bootstrapFile, talkUrl, runsUrl, notes } = standalone;
  process.stdout.write(
    [
      "",
      "Frontdesk is running.",
      "",
      `  Gateway       ${gatewayUrl}   (the one public address)`,
      `  API           ${apiUrl}`,
      ...(appUrl ? [`  Demo app      ${appUrl}`] : []),
      `  Traces to     ${collectorUrl}/v1/traces   (OTLP)`,
      `  Credentials   ${bootstrapFile}`,
      `  Talk to it    ${talkUrl}`,
      `  Watch runs    ${runsUrl}`,
      "                (each signs a browser in once, within an hour)",
      "",
      ...notes.flatMap((note) => [`  ${note}`, ""]),
      "Ctrl-C stops it.",
      "",
    ].join("\n"),
  );
}

/** Before everything has started, a signal ends the process, and Postgres with it. */
function stopOnSignals(): { handOver(standalone: Standalone): void } {
  let running: Standalone | undefined;
  let lastAtMs = Number.NEGATIVE_INFINITY;
  let stopping: "no" | "draining" | "closing" = "no";

  const close = async (standalone: Standalone) => {
    stopping = "closing";
    const failed = await standalone.close().then(
      () => undefined,
      (error: Error) => error,
    );
    if (failed) process.stderr.write(`Did not stop cleanly: ${failed.stack}\n`);
    process.exit(failed ? 1 : 0);
  };
  const onSignal = (signal: "SIGINT" | "SIGTERM" | "SIGHUP") => {
    const nowMs = performance.now();
    const repeated = nowMs - lastAtMs < sameSignalMs;
    lastAtMs = nowMs;
    if (repeated) return;
    if (!running || stopping === "closing") process.exit(130);
    if (stopping === "draining" || signal !== "SIGTERM") return void close(running);
    stopping = "draining";
    const standalone = running;
    void standalone.drain().then(() => (stopping === "draining" ? close(standalone) : undefined));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => onSignal(signal));
  return {
    handOver(standalone) {
      running = standalone;
    },
  };
}
