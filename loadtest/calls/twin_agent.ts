/** The agent of `calls --providers twins`: its vendors are twins in a process of their own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { inheritedEnvironment } from "../config.ts";
import type { ManagementClient } from "../kit/management_client.ts";

/** Until the first sign of each, as vendors publish it: final words, first token, first sound. */
export const publishedDelaysMs = { stt: 150, llm: 350, tts: 150 } as const;
/** One of so many of the model's requests fails, and is made again. */
export const requestsPerFault = 100;
export const toolMs = 80;

interface Access {
  secret: string;
  baseUrl: string;
}

export interface TwinProcess {
  vendors: Readonly<Record<"deepgram" | "openai" | "cartesia", Access>>;
  toolUrl: string;
  stop(): Promise<void>;
}

export async function startTwinProcess(): Promise<TwinProcess> {
  const script = new URL("./twin_process.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, ["--import", "tsx", script], {
    env: inheritedEnvironment,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const line = createInterface(child.stdout)[Symbol.asyncIterator]().next();
  const first = await Promise.race([line, exited.then(() => undefined)]);
  if (!first || first.done) throw new Error("Cannot start the twins: their process ended");
  const { vendors, toolUrl } = JSON.parse(first.value) as Omit<TwinProcess, "stop">;
  return {
    vendors,
    toolUrl,
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}

/** Stages of an agent that reaches the twins through connections of its project, and its tool. */
export async function twinAgent(management: ManagementClient, twins: TwinProcess): Promise<Record<string, unknown>> {
  const connect = (provider: keyof TwinProcess["vendors"]) =>
    management.createConnection(provider, twins.vendors[provider]);
  const [stt, llm, tts] = await Promise.all([connect("deepgram"), connect("openai"), connect("cartesia")]);
  return {
    stt: { provider: "deepgram", model: "nova-3", connection_id: stt },
    llm: { provider: "openai", model: "twin-1", connection_id: llm },
    tts: { provider: "cartesia", voice: "a-voice", connection_id: tts },
    tools: [{ name: "breakfast", description: "When breakfast is served", url: twins.toolUrl }],
  };
}
