/**
 * A LiveKit server of this start's own, for calls in rooms: `livekit-server --dev` on free ports of
 * the loopback interface, with keys made for it. One that a killed start left behind is stopped
 * before the next begins.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { LiveKitSettings } from "#outbound/livekit.ts";
import { endWithUs } from "./end_with_us.ts";
import { freePort } from "./ports.ts";
import { processStartedAt } from "./process_identity.ts";

export interface LiveKitServer extends LiveKitSettings {
  pid: number;
  /** Resolves when it is gone, for whatever reason. */
  exited: Promise<void>;
  stop(): Promise<void>;
}

export interface LiveKitServerOptions {
  /** Where the pid is kept, so that the next start finds what was left behind. */
  dataDir?: string;
  /** Gets the server's webhooks. */
  webhookUrl?: string;
  /** A server that was there before and comes back: the same port and keys. */
  as?: LiveKitSettings;
}

const startMsMax = 15_000;
/** How long it may take to say goodbye to its rooms. */
const stopMsMax = 1000;

/**
 * Resolves to undefined when the machine has no `livekit-server` on its PATH.
 *
 * @throws Error with the server's last words when it does not start
 */
export async function startLiveKitServer(options: LiveKitServerOptions = {}): Promise<LiveKitServer | undefined> {
  const folder = join(options.dataDir ?? mkdtempSync(join(tmpdir(), "frontdesk-livekit-")), "livekit");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const pidFile = join(folder, "process.json");
  stopLeftover(pidFile);
  const port = options.as ? Number(new URL(options.as.url).port) : await freePort();
  const apiKey = options.as?.apiKey ?? "frontdesk";
  const apiSecret = options.as?.apiSecret ?? randomBytes(32).toString("base64url");
  // JSON is YAML. In a file, where other users do not see the secret.
  const configFile = join(folder, "config.yaml");
  const config = JSON.stringify({
    port,
    bind_addresses: ["127.0.0.1"],
    keys: { [apiKey]: apiSecret },
    rtc: {
      tcp_port: await freePort(),
      udp_port: await freePort(),
      node_ip: "127.0.0.1",
      enable_loopback_candidate: true,
    },
    logging: { level: "error" },
    ...(options.webhookUrl && { webhook: { api_key: apiKey, urls: [options.webhookUrl] } }),
  });
  writeFileSync(configFile, config, { mode: 0o600 });
  const child = spawn("livekit-server", ["--dev", "--config", configFile], {
    // A session of its own: a Ctrl-C in the terminal reaches us alone, and calls end before their server does.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const url = `ws://127.0.0.1:${port}`;
  const clean = () => rmSync(options.dataDir ? folder : dirname(folder), { recursive: true, force: true });
  const up = await isUp(child, exited, url).catch((error: unknown) => {
    clean();
    throw error;
  });
  if (!up) {
    clean();
    return undefined;
  }
  const pid = child.pid ?? 0;
  writeFileSync(pidFile, JSON.stringify({ pid, started_at: processStartedAt(pid) }));
  endWithUs(child, "SIGKILL");
  return {
    url,
    apiKey,
    apiSecret,
    pid,
    exited,
    async stop() {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), stopMsMax);
      await exited;
      clearTimeout(timer);
      clean();
    },
  };
}

/** False where there is no such program. @throws Error when it ends, or answers nothing in time */
async function isUp(child: ChildProcess, exited: Promise<void>, url: string): Promise<boolean> {
  let words = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      words = (words + text).slice(-2000);
    });
  }
  const failed = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    child.once("error", resolve);
    child.once("spawn", () => resolve(undefined));
  });
  if (failed?.code === "ENOENT") return false;
  if (failed) throw failed;
  let hasExited = false;
  void exited.then(() => {
    hasExited = true;
  });
  for (const until = Date.now() + startMsMax; Date.now() < until && !hasExited; await delay(50)) {
    const answer = await fetch(url.replace(/^ws/, "http")).catch(() => undefined);
    if (answer?.ok) return true;
  }
  child.kill("SIGKILL");
  await exited;
  throw new Error(`livekit-server did not start:\n${words}`);
}

function stopLeftover(pidFile: string): void {
  try {
    const { pid, started_at } = JSON.parse(readFileSync(pidFile, "utf8")) as { pid: number; started_at: string };
    if (processStartedAt(pid) === started_at) process.kill(pid, "SIGKILL");
  } catch {
    // No file, or the process went away meanwhile: nothing was left behind.
  }
}
