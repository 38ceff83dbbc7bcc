/** Options of `npm run loadtest -- calls`, checked and bounded. */
import { type AudioFormat, audioFormatFor } from "#contracts/audio_format.ts";
import { choice, OptionsError, optionValues, type TransportName, transportsOf, whole } from "../kit/option_values.ts";

export interface CallsOptions {
  calls: number;
  /** How long everybody talks, after all have connected. */
  seconds: number;
  /** New calls a second while connecting. */
  connectRate: number;
  format: AudioFormat;
  clientBufferMs: number;
  /** Only for own processes: `both` runs the same load on one after the other. */
  transports: readonly TransportName[];
  vad: "energy" | "silero";
  mediaThreads: number | undefined;
  /** Slots of the gateway that is started; unset: room for every call. */
  slots: number | undefined;
  /** A gateway that runs already; its token comes from `dataDir`. */
  url: string | undefined;
  dataDir: string;
  /** `twins`: vendors on loopback that take their time, and a tool; `scripted` ones take none. */
  providers: "scripted" | "twins";
  jsonPath: string | undefined;
}

export const callsUsage = `npm run loadtest -- calls [options]
  --calls N          callers (default 200, at most 5000)
  --seconds N        how long they talk once all are connected (default 30, at most 3600)
  --connect-rate N   new calls a second (default 50)
  --format F         pcm_s16le (default), mulaw, alaw or opus
  --sample-rate HZ   default 16000, 8000 for mulaw and alaw, 48000 for opus
  --client-buffer-ms N   lead of the agent's audio (default 400)
  --transport T      uws, ws or both (default), one after the other
  --vad V            energy (default) or silero
  --media-threads N  default: one a core
  --providers P      scripted (default), or twins: vendors on loopback with delays as published, a tool in every
                     second turn and a fault in every hundredth request of the model; plain calls run before, into FILE.plain
  --slots N          default: room for every call; fewer shows refusals
  --url URL          load a gateway that runs already, with the token in DATA_DIR/bootstrap.json
  --data-dir DIR     where that file is (default .data)
  --allow-remote     let --url name another machine
  --json FILE        write everything that was measured`;

/** @throws OptionsError */
export function callsOptions(args: readonly string[]): CallsOptions {
  const values = optionValues(args, names, ["allow-remote"]);
  const encoding = values.format ?? "pcm_s16le";
  const sampleRate = values["sample-rate"];
  const options: CallsOptions = {
    calls: whole("calls", values.calls, 200, 1, 5000),
    seconds: whole("seconds", values.seconds, 30, 1, 3600),
    connectRate: whole("connect-rate", values["connect-rate"], 50, 1, 1000),
    format: formatFor(encoding, sampleRate === undefined ? undefined : Number(sampleRate)),
    clientBufferMs: whole("client-buffer-ms", values["client-buffer-ms"], 400, 60, 30_000),
    transports: values.url ? ["uws"] : transportsOf(values.transport),
    vad: choice("vad", values.vad ?? "energy", ["energy", "silero"]),
    mediaThreads:
      values["media-threads"] === undefined ? undefined : whole("media-threads", values["media-threads"], 1, 1, 64),
    slots: values.slots === undefined ? undefined : whole("slots", values.slots, 1, 0, 100_000),
    url: values.url,
    dataDir: values["data-dir"] ?? ".data",
    providers: choice("providers", values.providers ?? "scripted", ["scripted", "twins"]),
    jsonPath: values.json,
  };
  if (options.providers === "twins" && options.url !== undefined) {
    throw new OptionsError("--providers twins: Expected no --url: the gateway has to let vendors be on this machine");
  }
  if (options.url !== undefined && !values["allow-remote"] && !isLoopback(options.url)) {
    throw new OptionsError(`--url: Expected an address of this machine, or --allow-remote to load "${options.url}"`);
  }
  return options;
}

const names = [
  "calls",
  "seconds",
  "connect-rate",
  "format",
  "sample-rate",
  "client-buffer-ms",
  "transport",
  "vad",
  "media-threads",
  "slots",
  "providers",
  "url",
  "data-dir",
  "json",
] as const;

function formatFor(encoding: string, sampleRate: number | undefined): AudioFormat {
  try {
    return audioFormatFor({ encoding, ...(sampleRate !== undefined && { sample_rate: sampleRate }) });
  } catch (error) {
    throw new OptionsError(`--format: ${(error as Error).message}`);
  }
}

/** Whether `url` names this machine by a loopback address. */
export function isLoopback(url: string): boolean {
  try {
    const { hostname } = new URL(url);
    return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
  } catch {
    return false;
  }
}
