/** One run of the calls test against one gateway: connect everybody, talk, hang up. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { type CallerSpeech, speechPlan } from "../kit/caller_speech.ts";
import { FrameClock, type FrameSender } from "../kit/frame_clock.ts";
import { createManagementClient, type ManagementAccess, type ManagementClient } from "../kit/management_client.ts";
import { familyUsage, type ProcessUsage } from "../kit/process_usage.ts";
import { Distribution } from "../kit/statistics.ts";
import { CallFigures } from "./call_figures.ts";
import type { CallsOptions } from "./options.ts";
import { type CallersShared, VoiceCaller } from "./voice_caller.ts";

/** A caller over any transport. */
export interface Caller extends FrameSender {
  readonly isTalking: boolean;
  /** Resolves with `admitted`, or the code of the refusal; never rejects. */
  connect(): Promise<string>;
  /** Resolves when the call is over, or after `withinMs` in any case. */
  hangUp(withinMs: number): Promise<void>;
}

/** Makes the caller with this number, ready to `connect`. */
export type Dial = (
  management: ManagementClient,
  agentId: string,
  firstFrame: number,
  shared: CallersShared,
) => Promise<Caller>;

/** What the gateway's process used, each second once all were connected. */
export class UsageFigures {
  /** Milliseconds of CPU time that one call takes in one second. */
  readonly cpuMsPerCallSecond = new Distribution();
  /** What the process grew by since before the first call, divided by the calls. */
  readonly rssKibPerCall = new Distribution();
}

export interface CallsResult {
  /** While connecting: admission and its times. */
  connecting: CallFigures;
  /** While everybody talked. */
  talking: CallFigures;
  usage: UsageFigures | undefined;
  talkedSeconds: number;
  /** The load tool's own event loop and CPU: when these are bad, so are the latencies it measured. */
  ownLoopDelayP99Ms: number;
  ownCpuShare: number;
}

export interface CallsTarget {
  access: ManagementAccess;
  /** The gateway's process, where it is ours to look at; its children count with it. */
  pid: number | undefined;
}

/** How the agent of the test is set: it understands at once, thinks for no time and speaks a sine. */
const eosSilenceMs = 500;
const minInterruptMs = 150;
const msPerChar = 50;
const reservationsAtOnce = 16;
const hangUpWithinMs = 10_000;

/** An agent whose answers are as long as the plan of the callers' speech expects. */
function agentConfig(options: CallsOptions): Record<string, unknown> {
  const reply = "This is what the agent says to everybody who calls it. ".repeat(3);
  return {
    stt: { provider: "scripted", options: { transcripts: ["Could you tell me when breakfast is served, please?"] } },
    llm: { provider: "scripted", options: { replies: [reply.slice(0, speechPlan.answerMs / msPerChar)] } },
    tts: { provider: "scripted", options: { ms_per_char: msPerChar } },
    advanced: {
      eos_silence_ms: eosSilenceMs,
      idle_timeout_s: 0,
      max_call_duration_s: Math.min(43_200, options.seconds + Math.ceil(options.calls / options.connectRate) + 300),
    },
  };
}

/** What a run may have of its own. */
export interface CallsParts {
  dial?: Dial;
  /** Parts of the agent's configuration in place of the scripted ones. */
  agent?(management: ManagementClient): Promise<Record<string, unknown>>;
}

/** @param report gets one line each second */
export async function runCalls(
  target: CallsTarget,
  speech: CallerSpeech,
  options: CallsOptions,
  report: (line: string) => void,
  { dial = socketDial(options), agent }: CallsParts = {},
): Promise<CallsResult> {
  const management = createManagementClient(target.access);
  const config = { ...agentConfig(options), ...(await agent?.(management)) };
  const agentId = await management.createAgent("Load test", config);
  const shared: CallersShared = {
    speech,
    figures: new CallFigures(),
    clientBufferMs: options.clientBufferMs,
    eosSilenceMs,
    minInterruptMs,
    providerDelayMs: 0,
  };
  const clock = new FrameClock();
  const connecting = shared.figures;
  const before = target.pid === undefined ? undefined : await familyUsage(target.pid);
  clock.start();
  try {
    const place = (index: number) => beginFrame(speech, index, options.calls);
    const dialNext = (index: number) => dial(management, agentId, place(index), shared);
    const callers = await connectAll(dialNext, clock, options, report);
    shared.figures = new CallFigures();
    const result = await talk(callers, shared.figures, before, target.pid, options, report);
    report("hanging up");
    await Promise.all(callers.map((caller) => caller.hangUp(hangUpWithinMs)));
    return { ...result, connecting };
  } finally {
    clock.stop();
    await management.archiveAgent(agentId).catch(() => report("the agent of the load test could not be archived"));
  }
}

/** A WebSocket call in the format that the options ask for. */
function socketDial(options: CallsOptions): Dial {
  const { sample_rate, encoding, container } = options.format;
  const format = { encoding, sample_rate, container };
  const reservation = {
    audio_format: format,
    output_audio_format: format,
    client_buffer_ms: options.clientBufferMs,
  };
  return async (management, agentId, firstFrame, shared) =>
    new VoiceCaller(await management.reserveCall(agentId, reservation), firstFrame, shared);
}

async function connectAll(
  dial: (index: number) => Promise<Caller>,
  clock: FrameClock,
  options: CallsOptions,
  report: (line: string) => void,
): Promise<Caller[]> {
  const callers: Caller[] = [];
  const connects: Promise<unknown>[] = [];
  const startedAtMs = performance.now();
  let next = 0;
  // Reserving is not what is measured: a few at once, each dialled as soon as it is its turn.
  const reserveAndDial = async () => {
    for (let index = next++; index < options.calls; index = next++) {
      const caller = await dial(index);
      await delay(Math.max(0, startedAtMs + (index * 1000) / options.connectRate - performance.now()));
      callers.push(caller);
      clock.add(caller);
      connects.push(caller.connect());
      if (index % options.connectRate === 0) report(`connecting: ${index} of ${options.calls}`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(reservationsAtOnce, options.calls) }, reserveAndDial));
  await Promise.all(connects);
  return callers;
}

/** Callers begin all over the loop, so that at any time half of the agents speak. */
function beginFrame(speech: CallerSpeech, index: number, calls: number): number {
  return Math.floor((index * speech.frames.length) / calls);
}

async function talk(
  callers: readonly Caller[],
  figures: CallFigures,
  before: ProcessUsage | undefined,
  pid: number | undefined,
  options: CallsOptions,
  report: (line: string) => void,
): Promise<Omit<CallsResult, "connecting">> {
  const usage = before && new UsageFigures();
  const loopDelay = monitorEventLoopDelay({ resolution: 1 });
  loopDelay.enable();
  const ownCpu = process.cpuUsage();
  const startedAtMs = performance.now();
  let last = pid === undefined ? undefined : await familyUsage(pid);
  let lastAtMs = performance.now();
  for (let second = 1; second <= options.seconds; second += 1) {
    await delay(Math.max(0, startedAtMs + second * 1000 - performance.now()));
    const talking = callers.filter((caller) => caller.isTalking).length;
    const now = pid === undefined ? undefined : await familyUsage(pid);
    const nowAtMs = performance.now();
    const seconds = (nowAtMs - lastAtMs) / 1000;
    // The kernel counts in hundredths of a second: a short interval after a late one says nothing.
    if (usage && before && now && last && talking > 0 && seconds > 0.5) {
      usage.cpuMsPerCallSecond.record((now.cpuMs - last.cpuMs) / seconds / talking);
      usage.rssKibPerCall.record((now.rssBytes - before.rssBytes) / 1024 / talking);
    }
    last = now;
    lastAtMs = nowAtMs;
    const p95 = figures.gatewayMs.percentile(0.95).toFixed(1);
    report(
      `${second} of ${options.seconds} s: ${talking} talking, gateway adds ${p95} ms (p95), ${figures.underruns} underruns`,
    );
  }
  loopDelay.disable();
  const own = process.cpuUsage(ownCpu);
  const talkedMs = performance.now() - startedAtMs;
  return {
    talking: figures,
    usage,
    talkedSeconds: talkedMs / 1000,
    ownLoopDelayP99Ms: loopDelay.percentile(99) / 1e6,
    ownCpuShare: (own.user + own.system) / 1000 / talkedMs,
  };
}
