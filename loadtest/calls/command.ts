/** `npm run loadtest -- calls`: full-duplex calls with real speech, on one transport after the other. */
import { writeFile } from "node:fs/promises";
import { createEncoder } from "#media/audio/encoder.ts";
import { createResampler } from "#media/audio/resampler.ts";
import { loadStages } from "#providers/stages.ts";
import { type CallerSpeech, callerSpeech, loopSamples, speechPlan } from "../kit/caller_speech.ts";
import { accessFrom, startFrontdesk } from "../kit/frontdesk_processes.ts";
import type { ManagementClient } from "../kit/management_client.ts";
import { machine, print, progress } from "../kit/terminal.ts";
import { type CallsOptions, callsOptions } from "./options.ts";
import { callsJson, callsText, ratioText } from "./report.ts";
import { type CallsResult, type CallsTarget, runCalls } from "./run.ts";
import { startTwinProcess, twinAgent } from "./twin_agent.ts";

const sentence = "Good morning, when is breakfast served?";

/** Runs the test with these command-line arguments. @throws OptionsError for a wrong one */
export async function calls(args: readonly string[]): Promise<void> {
  const options = callsOptions(args);
  const speech = await prepareSpeech(options);
  const plain = { ...options, ...(options.jsonPath && isBeside(options) && { jsonPath: `${options.jsonPath}.plain` }) };
  await measureCalls(plain, "calls", (target) => runCalls(target, speech, options, progress));
  if (isBeside(options)) await withTwins(options, speech);
}

/** Whether the scripted load runs for comparison alone. */
const isBeside = ({ providers }: CallsOptions) => providers === "twins";

/** The same callers, with vendors on loopback. */
async function withTwins(options: CallsOptions, speech: CallerSpeech): Promise<void> {
  const twins = await startTwinProcess();
  const agent = (management: ManagementClient) => twinAgent(management, twins);
  try {
    await measureCalls(options, "calls with twins of vendors", (target) =>
      runCalls(target, speech, options, progress, { agent }),
    );
  } finally {
    await twins.stop();
  }
}

/** The load of one gateway. */
type Load = (target: CallsTarget) => Promise<CallsResult>;

/** Puts `load`, `what` in words, on a gateway that runs already, or on own ones, and reports. */
export async function measureCalls(options: CallsOptions, what: string, load: Load): Promise<void> {
  const title = `${options.calls} ${what}`;
  const results = options.url
    ? await loadRunning(options, options.url, title, load)
    : await loadOwn(options, title, load);
  const [first, second] = results;
  if (first && second) print(ratioText([first.name, second.name], [first.result, second.result]));
  if (options.jsonPath) {
    const runs = Object.fromEntries(results.map(({ name, result }) => [name, callsJson(result)]));
    await writeFile(options.jsonPath, `${JSON.stringify({ machine: machine(), options, runs }, null, 2)}\n`);
  }
}

interface NamedResult {
  name: string;
  result: CallsResult;
}

async function loadRunning(options: CallsOptions, url: string, title: string, load: Load): Promise<NamedResult[]> {
  const access = await accessFrom(options.dataDir, url);
  const result = await load({ access, pid: undefined });
  print(callsText(`${title} on ${url}`, result));
  return [{ name: url, result }];
}

async function loadOwn(options: CallsOptions, title: string, load: Load): Promise<NamedResult[]> {
  progress("starting Frontdesk");
  const frontdesk = await startFrontdesk({
    slots: options.slots ?? options.calls,
    vad: options.vad,
    mediaThreads: options.mediaThreads,
    allowPrivateAddresses: options.providers === "twins",
  });
  const how = frontdesk.separate
    ? "gateway in a process of its own"
    : "no redis-server here, so everything is in one process, and so are its CPU and memory";
  const results: NamedResult[] = [];
  try {
    for (const transport of options.transports) {
      const gateway = await frontdesk.startGateway(transport);
      try {
        const result = await load(gateway);
        print(callsText(`${title} on ${transport} (${how})`, result));
        results.push({ name: transport, result });
      } finally {
        await gateway.stop();
      }
    }
  } finally {
    progress("stopping Frontdesk");
    await frontdesk.stop();
  }
  return results;
}

/** The callers' loop in the call's own format, made once. */
export async function prepareSpeech(options: CallsOptions): Promise<CallerSpeech> {
  progress("making speech");
  const { format } = options;
  const stages = await loadStages();
  const tts = stages.tts({ provider: "flite", language: "en", options: {} });
  const parts: Int16Array[] = [];
  let sampleRateHz = 0;
  for await (const pcm of tts.speak(sentence, { turnIndex: 0, first: true }, AbortSignal.timeout(30_000))) {
    parts.push(pcm.samples.slice());
    sampleRateHz = pcm.sampleRateHz;
  }
  tts.close();
  await stages.shutDown();
  const spoken = Int16Array.from(parts.flatMap((part) => [...part]));
  const resampler = createResampler(sampleRateHz, format.sample_rate);
  const loop = loopSamples(resampler.process(spoken).slice(), format.sample_rate, speechPlan);
  resampler.close();
  // A caller's frame is 20 ms in every format; PCM needs no encoder for that (the machine is little-endian).
  if (format.encoding === "pcm_s16le") {
    return callerSpeech(loop, format, speechPlan, (frame) => new Uint8Array(frame.slice().buffer));
  }
  const encoder = createEncoder(format);
  try {
    return callerSpeech(loop, format, speechPlan, (frame) => encoder.encode(frame));
  } finally {
    encoder.close();
  }
}
