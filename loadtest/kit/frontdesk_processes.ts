/**
 * Processes of a load test of its own: Redis, the standalone (Postgres, api, worker) and beside it the gateway
 * under load, so that its CPU time and memory are its own. Without redis-server the standalone's
 * own gateway is the one under load, and the figures are those of everything together.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { inheritedEnvironment } from "../config.ts";
import type { ManagementAccess } from "./management_client.ts";
import type { TransportName } from "./option_values.ts";

export interface GatewayUnderLoad {
  pid: number;
  url: string;
  port: number;
  access: ManagementAccess;
  stop(): Promise<void>;
}

export interface FrontdeskProcesses {
  /** Whether the gateway runs in a process of its own. */
  separate: boolean;
  startGateway(transport: TransportName): Promise<GatewayUnderLoad>;
  /** Stops everything and removes the data. */
  stop(): Promise<void>;
}

export interface ProcessOptions {
  /** Everything in one process, also where there is a redis-server. */
  together?: boolean;
  slots?: number;
  vad?: "energy" | "silero";
  mediaThreads?: number | undefined;
  /** Vendors and tools may be on this machine. */
  allowPrivateAddresses?: boolean;
}

const readyWithinMs = 60_000;
const stopWithinMs = 15_000;
const root = new URL("../..", import.meta.url);

export async function startFrontdesk(options: ProcessOptions): Promise<FrontdeskProcesses> {
  // Not made here: the start gives the folder the mode by which the account that runs Postgres can enter it.
  const dataDir = join(tmpdir(), `frontdesk-load-${randomBytes(6).toString("hex")}`);
  const ports = await freePorts(["gateway", "inner", "api", "worker", "redis"]);
  const gatewayUrl = `http://127.0.0.1:${ports.gateway}`;
  const redis = options.together ? undefined : await startRedis(ports.redis);
  const shared = {
    DATA_DIR: dataDir,
    API_PORT: String(ports.api),
    WORKER_PORT: String(ports.worker),
    PUBLIC_URL: gatewayUrl,
    INTERNAL_SECRET: "loadtest-on-loopback-only",
    CALL_SLOTS: String(options.slots ?? 1),
    VAD: options.vad ?? "energy",
    DRAIN_TIMEOUT_S: "1",
    ...(options.mediaThreads !== undefined && { MEDIA_THREADS: String(options.mediaThreads) }),
    ...(options.allowPrivateAddresses && { ALLOW_PRIVATE_ADDRESSES: "true" }),
    ...(redis && { REDIS_URL: `redis://127.0.0.1:${ports.redis}` }),
  };
  const startStandalone = async (port: number, transport?: TransportName) => {
    const child = startRole("standalone/main.ts", {
      ...shared,
      GATEWAY_PORT: String(port),
      ...(transport && { TRANSPORT: transport }),
      // Beside the gateway under load its own gets no calls; rooms are offered to whoever has slots.
      ...(redis && { MEDIA_THREADS: "1", CALL_SLOTS: "0" }),
    });
    await isReady(child, `http://127.0.0.1:${port}`);
    return child;
  };
  const standalone = redis ? await startStandalone(ports.inner) : undefined;

  return {
    separate: redis !== undefined,
    async startGateway(transport) {
      const child = redis
        ? startRole("gateway/main.ts", { ...shared, GATEWAY_PORT: String(ports.gateway), TRANSPORT: transport })
        : await startStandalone(ports.gateway, transport);
      await isReady(child, gatewayUrl);
      if (child.pid === undefined) throw new Error("Cannot start the gateway: it has no process id");
      const access = await accessFrom(dataDir, `http://127.0.0.1:${ports.api}`);
      return { pid: child.pid, url: gatewayUrl, port: ports.gateway, access, stop: () => stopChild(child) };
    },
    async stop() {
      if (standalone) await stopChild(standalone);
      if (redis) await stopChild(redis);
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Address and credentials from `bootstrap.json`; `baseUrl` unless the file's own `gateway_url` will do. */
export async function accessFrom(dataDir: string, baseUrl?: string): Promise<ManagementAccess> {
  const path = join(dataDir, "bootstrap.json");
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new Error(`Cannot read ${path}: expected the file that "npm start" writes; name its folder with --data-dir`, {
      cause,
    });
  });
  const file = JSON.parse(text) as Record<"gateway_url" | "pat" | "access_key" | "project_id", string>;
  const { gateway_url, pat, access_key, project_id } = file;
  return { baseUrl: baseUrl ?? gateway_url, token: pat, accessKey: access_key, projectId: project_id };
}

function startRole(script: string, environment: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, ["--import", "tsx", script], {
    cwd: root,
    env: { ...inheritedEnvironment, ...environment },
    stdio: ["ignore", "ignore", "pipe"],
  });
  endWithUs(child);
  // Kept for the message when it does not start: the last of what it said.
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    lastWords.set(child, `${lastWords.get(child) ?? ""}${text}`.slice(-2000));
  });
  return child;
}

const lastWords = new WeakMap<ChildProcess, string>();

function endWithUs(child: ChildProcess): void {
  // Not SIGKILL: the standalone has a Postgres to stop.
  const end = () => child.kill("SIGTERM");
  process.once("exit", end);
  child.once("exit", () => process.removeListener("exit", end));
}

/** Undefined when the machine has no redis-server. */
async function startRedis(port: number): Promise<ChildProcess | undefined> {
  const settings = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const child = spawn("redis-server", settings, { cwd: tmpdir(), stdio: ["ignore", "pipe", "ignore"] });
  const failed = new Promise<undefined>((resolve) => child.once("error", () => resolve(undefined)));
  const ready = new Promise<ChildProcess | undefined>((resolve) => {
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      if (text.includes("Ready to accept connections")) resolve(child);
    });
    child.once("exit", () => resolve(undefined));
  });
  const started = await Promise.race([ready, failed]);
  if (started) endWithUs(started);
  return started;
}

async function isReady(child: ChildProcess, url: string): Promise<void> {
  const deadline = Date.now() + readyWithinMs;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) break;
    const response = await fetch(`${url}/readyz`).catch(() => undefined);
    if (response?.ok) return;
    await delay(100);
  }
  await stopChild(child);
  throw new Error(`Cannot start Frontdesk at ${url}: ${lastWords.get(child) ?? "it was not ready in time"}`);
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), stopWithinMs);
  await exited;
  clearTimeout(timer);
}

/** A port for each name: free a moment ago, all different. */
async function freePorts<const Name extends string>(names: readonly Name[]): Promise<Record<Name, number>> {
  const servers = await Promise.all(
    names.map(async () => {
      const server = createServer().listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
  );
  const ports = servers.map((server, index) => [names[index], (server.address() as { port: number }).port]);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return Object.fromEntries(ports) as Record<Name, number>;
}
