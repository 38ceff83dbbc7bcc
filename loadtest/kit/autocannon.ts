/** autocannon in a process of its own, and what it says. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface CannonShot {
  url: string;
  method: "GET" | "POST";
  headers: Readonly<Record<string, string>>;
  /** `[<id>]` in it is another id in each request. */
  body?: string;
  connections: number;
  seconds: number;
}

export interface CannonResult {
  requestsPerS: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  /** Answers other than 2xx, connections that broke and requests without an answer. */
  failures: number;
}

/** @throws Error when autocannon does not end well */
export async function shoot(shot: CannonShot): Promise<CannonResult> {
  const script = fileURLToPath(import.meta.resolve("autocannon"));
  const child = spawn(process.execPath, [script, ...cannonArguments(shot)], { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`Cannot measure ${shot.url}: autocannon ended with ${code}`);
  return cannonResult(text);
}

function cannonArguments({ url, method, headers, body, connections, seconds }: CannonShot): string[] {
  return [
    ...["--json", "--no-progress", "--connections", String(connections), "--duration", String(seconds)],
    ...["--method", method],
    ...Object.entries(headers).flatMap(([name, value]) => ["--headers", `${name}=${value}`]),
    ...(body === undefined ? [] : ["--body", body]),
    ...(body?.includes("[<id>]") ? ["--idReplacement"] : []),
    url,
  ];
}

interface CannonJson {
  duration: number;
  errors: number;
  timeouts: number;
  non2xx: number;
  "2xx": number;
  latency: { p50: number; p99: number; max: number };
}

/** Parses the last line of `autocannon --json`. @throws Error for anything else */
export function cannonResult(text: string): CannonResult {
  const json = JSON.parse(text.trim().split("\n").at(-1) ?? "") as CannonJson;
  const { latency } = json;
  return {
    requestsPerS: json["2xx"] / json.duration,
    p50Ms: latency.p50,
    p99Ms: latency.p99,
    maxMs: latency.max,
    failures: json.errors + json.timeouts + json.non2xx,
  };
}
