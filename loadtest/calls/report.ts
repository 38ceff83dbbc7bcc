/** What the calls test found, as a table for people and as JSON for programs. */

import type { Distribution, Summary } from "../kit/statistics.ts";
import { table } from "../kit/text_table.ts";
import type { CallsResult } from "./run.ts";

type Row = [name: string, unit: string, distribution: Distribution];

function distributionsOf({ connecting, talking, usage }: CallsResult): Row[] {
  return [
    ["connect to call_started", "ms", connecting.connectMs],
    ["gateway adds (its own account)", "ms", talking.gatewayMs],
    ["gateway adds (from outside)", "ms", talking.answerMs],
    ["barge-in to clear", "ms", talking.bargeInMs],
    ["output jitter", "ms", talking.jitterMs],
    ...Object.entries(talking.stages).map(([name, distribution]): Row => [name, "ms", distribution]),
    ...(usage
      ? ([
          ["CPU a call", "ms/s", usage.cpuMsPerCallSecond],
          ["memory a call", "KiB", usage.rssKibPerCall],
        ] satisfies Row[])
      : []),
  ];
}

/** Figures by name, each as count, mean, p50, p95, p99 and max. */
export function callsJson(result: CallsResult): Record<string, unknown> {
  const { connecting, talking, talkedSeconds, ownLoopDelayP99Ms, ownCpuShare } = result;
  const summaries = distributionsOf(result).map(([name, unit, distribution]) => [
    `${name} (${unit})`.replaceAll(/\W+/g, "_").replace(/_$/, ""),
    distribution.summary(),
  ]);
  return {
    admitted: connecting.admitted,
    refused: connecting.refused,
    dropped: talking.dropped,
    warnings: talking.warnings,
    turns: talking.turns,
    talked_s: talkedSeconds,
    agent_speaks_share: speakingShare(result),
    frames_sent: talking.framesSent,
    frames_received: talking.framesReceived,
    underruns: talking.underruns,
    frames_after_clear: talking.framesAfterClear,
    sequence_gaps: talking.sequenceGaps,
    unmeasured: talking.unmeasured,
    calls_per_core: callsPerCore(result),
    load_tool: { event_loop_delay_p99_ms: ownLoopDelayP99Ms, cpu_share: ownCpuShare },
    ...Object.fromEntries(summaries),
  };
}

/** How much of the time the agents spoke. */
function speakingShare({ connecting, talking, talkedSeconds }: CallsResult): number {
  return connecting.admitted === 0 ? 0 : talking.outputAudioMs / 1000 / talkedSeconds / connecting.admitted;
}

/** Calls that one core could carry at this CPU time a call; undefined where it was not measured. */
function callsPerCore({ usage }: CallsResult): number | undefined {
  const mean = usage?.cpuMsPerCallSecond.summary().mean;
  return mean ? 1000 / mean : undefined;
}

const number = (value: number) => (value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2));
const cells = ({ p50, p95, p99, max }: Summary) => [p50, p95, p99, max].map(number);

/** One run as text. */
export function callsText(title: string, result: CallsResult): string {
  const { connecting, talking } = result;
  const rows = distributionsOf(result).map(([name, unit, distribution]) => [
    name,
    unit,
    ...cells(distribution.summary()),
    String(distribution.count),
  ]);
  const underrunShare = (100 * talking.underruns) / Math.max(1, talking.framesReceived);
  const perCore = callsPerCore(result);
  return [
    title,
    `  admitted ${connecting.admitted}, refused ${counts(connecting.refused)}, dropped ${counts(talking.dropped)}, warnings ${counts(talking.warnings)}`,
    `  ${talking.turns} turns in ${result.talkedSeconds.toFixed(0)} s, agents spoke ${(100 * speakingShare(result)).toFixed(0)} % of the time`,
    `  frames ${talking.framesSent} sent, ${talking.framesReceived} received, ${talking.underruns} underruns (${underrunShare.toFixed(3)} %), ${talking.framesAfterClear} after clear, ${talking.sequenceGaps} gaps in seq`,
    ...(talking.unmeasured === 0
      ? []
      : [`  ${talking.unmeasured} times not measured: the gateway had filled gaps with silence`]),
    ...(perCore === undefined ? [] : [`  ${perCore.toFixed(0)} calls a core at this CPU time a call`]),
    `  load tool: event loop late by ${result.ownLoopDelayP99Ms.toFixed(1)} ms (p99), ${(100 * result.ownCpuShare).toFixed(0)} % of a core`,
    table(["", "unit", "p50", "p95", "p99", "max", "count"], rows),
  ].join("\n");
}

/** How many times the first run's figure the second one's is: above 1 the first is better. */
export function ratioText(names: [string, string], results: [CallsResult, CallsResult]): string {
  const [first, second] = results.map(distributionsOf);
  const rows = (first ?? []).flatMap(([name, , distribution], index) => {
    const other = second?.[index]?.[2];
    if (!other || distribution.count === 0 || other.count === 0) return [];
    const [mine, theirs] = [distribution.summary(), other.summary()];
    const ratio = (key: "p50" | "p95" | "p99") => (mine[key] > 0 ? number(theirs[key] / mine[key]) : "–");
    return [[name, ratio("p50"), ratio("p95"), ratio("p99")]];
  });
  return `${names[1]} to ${names[0]}\n${table(["ratio", "p50", "p95", "p99"], rows)}`;
}

function counts(tally: { total: number; toJSON(): Record<string, number> }): string {
  if (tally.total === 0) return "0";
  const parts = Object.entries(tally.toJSON()).map(([name, count]) => `${count} ${name}`);
  return `${tally.total} (${parts.join(", ")})`;
}
