/** The endpoints of the http test at one place after the other. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { request } from "undici";
import { createAppClient } from "../kit/app_client.ts";
import { type CannonResult, shoot } from "../kit/autocannon.ts";
import { digits, type Figure } from "../kit/figures.ts";
import type { GatewayUnderLoad } from "../kit/frontdesk_processes.ts";
import { createManagementClient } from "../kit/management_client.ts";
import { table } from "../kit/text_table.ts";
import type { Endpoint } from "./endpoint.ts";
import type { HttpOptions } from "./options.ts";
import type { PeerAnswer } from "./peer_answer.ts";
import { taxAccessToken, taxEndpoints } from "./tax_requests.ts";

/** All figures of one place: `gateway on uws`, `gateway on ws`, `api`, and the bare servers. */
export interface NamedFigures {
  name: string;
  figures: Figure[];
}

/** Servers that do nothing but answer. */
const peers = {
  "node:http": new URL("peer.ts", import.meta.url),
  fastify: new URL("fastify_peer.ts", import.meta.url),
};

const agents = 20;
const echo = {
  nodes: [
    { id: "in", type: "input" },
    { id: "out", type: "output", inputs: { text: "$.input.text" } },
  ],
  edges: [{ from: "in", to: "out" }],
};

/** @param alsoApi measures the api's own port and the bare servers too */
export async function runHttp(
  gateway: GatewayUnderLoad,
  transport: string,
  options: HttpOptions,
  { alsoApi, report }: { alsoApi: boolean; report(line: string): void },
): Promise<NamedFigures[]> {
  const endpoints = await prepare(gateway);
  const measure = async (place: string, baseUrl: string): Promise<NamedFigures> => {
    const figures: Figure[] = [];
    for (const { name, path, ...endpoint } of endpoints) {
      report(`${place}: ${name}`);
      const shot = {
        ...endpoint,
        url: `${baseUrl}${path}`,
        connections: options.connections,
        seconds: options.seconds,
      };
      figures.push(...figuresOf(name, await shoot(shot)));
    }
    return { name: place, figures };
  };
  const places = [await measure(`gateway on ${transport}`, gateway.url)];
  if (!alsoApi) return places;
  places.push(await measure("api", gateway.access.baseUrl));
  const answers = await Promise.all(endpoints.map((endpoint) => answerOf(endpoint, gateway.access.baseUrl)));
  for (const [name, script] of Object.entries(peers)) {
    const peer = await startPeer(script, answers);
    try {
      places.push(await measure(name, peer.url));
    } finally {
      await peer.stop();
    }
  }
  return places;
}

function figuresOf(name: string, result: CannonResult): Figure[] {
  return [
    { name, unit: "1/s", value: result.requestsPerS },
    { name: `${name}, p50`, unit: "ms", value: result.p50Ms },
    { name: `${name}, p99`, unit: "ms", value: result.p99Ms },
    { name: `${name}, failures`, unit: "", value: result.failures, goal: "0" },
  ];
}

async function prepare({ access, url }: GatewayUnderLoad): Promise<Endpoint[]> {
  const management = createManagementClient(access);
  let agentId = "";
  for (let index = 0; index < agents; index += 1) agentId = await management.createAgent(`Agent ${index}`, {});
  const host = await management.deployApp("Echo", echo);
  const app = createAppClient({ url, accessKey: access.accessKey, connections: 1 });
  let run = await app.start(host, { text: "Hello" });
  while (run.status !== "succeeded") {
    await delay(50);
    run = await app.read(host, run.id);
  }
  await app.close();
  const json = { "content-type": "application/json" };
  const asUser = { authorization: `Bearer ${access.token}` };
  const asApp = { host, authorization: `Bearer ${access.accessKey}` };
  return [
    { name: "list voice agents", method: "GET", path: "/v1/agents/voice/agents?page_size=20", headers: asUser },
    { name: "get a run", method: "GET", path: `/v1/runs/${run.id}`, headers: asApp },
    {
      name: "reserve a call",
      method: "POST",
      path: `/v1/agents/voice/agents/${agentId}/calls/websocket`,
      headers: { ...asUser, ...json },
      body: "{}",
    },
    ...taxEndpoints(await taxAccessToken(access.baseUrl)),
    // Last: what it queues is worked on by the same process for a while.
    {
      name: "start a run",
      method: "POST",
      path: "/v1/runs",
      headers: { ...asApp, ...json },
      body: JSON.stringify({ background: true, input: { text: "Hello" } }),
    },
  ];
}

/** What the api answers once, and a bare server from then on. */
async function answerOf({ method, path, headers, body }: Endpoint, apiUrl: string): Promise<PeerAnswer> {
  const asked = body?.replaceAll("[<id>]", "once");
  const reply = await request(`${apiUrl}${path}`, { method, headers, ...(asked !== undefined && { body: asked }) });
  return { method, path, status: reply.statusCode, body: await reply.body.text() };
}

async function startPeer(script: URL, answers: readonly PeerAnswer[]): Promise<{ url: string; stop(): Promise<void> }> {
  const child = fork(fileURLToPath(script), { execArgv: ["--import", "tsx"] });
  const end = () => child.kill("SIGKILL");
  process.once("exit", end);
  child.send(answers);
  const { port } = await messageOf<{ port: number }>(child);
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      process.removeListener("exit", end);
      child.kill("SIGTERM");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

async function messageOf<T>(child: ChildProcess): Promise<T> {
  const [message] = (await once(child, "message")) as [T];
  return message;
}

/** Requests a second and percentiles of every place, beside the bare servers'. */
export function httpRatios(places: readonly NamedFigures[]): string {
  const figureOf = (place: NamedFigures, name: string) => {
    const value = place.figures.find((figure) => figure.name === name)?.value;
    return typeof value === "number" ? value : Number.NaN;
  };
  const [first] = places;
  const names = (first?.figures ?? []).filter(({ unit }) => unit === "1/s").map(({ name }) => name);
  const bare = places.filter(({ name }) => name in peers);
  const rows = names.flatMap((name) => [
    [`${name}, 1/s`, ...places.map((place) => digits(figureOf(place, name)))],
    ...bare.map((peer) => [
      `  of ${peer.name}`,
      ...places.map((place) => digits(figureOf(place, name) / figureOf(peer, name))),
    ]),
    ["  p50, ms", ...places.map((place) => digits(figureOf(place, `${name}, p50`)))],
    ["  p99, ms", ...places.map((place) => digits(figureOf(place, `${name}, p99`)))],
  ]);
  return table(["", ...places.map(({ name }) => name)], rows);
}
