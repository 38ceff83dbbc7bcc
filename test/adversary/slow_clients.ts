/**
 * Slow and silent clients, all at once: two hundred bodies of a byte a second, requests that wait for runs, and
 * clients that ask ahead and read nothing. Others must not notice: reads and reservations are timed meanwhile.
 */
import type { Socket } from "node:net";
import type { Area, House } from "./attacked_house.ts";
import { deployApp } from "./crew.ts";

const slowBodies = 200;
const waitingRuns = 140;
const unreadPipelines = 50;
const samples = 150;
const p95MsMax = 500;

/** Rests for longer than a request waits for it. */
const resting = {
  schema_version: 1,
  nodes: [
    { id: "in", type: "input" },
    { id: "wait", type: "delay", config: { seconds: 50 } },
    { id: "out", type: "output", inputs: { waited: true } },
  ],
  edges: [
    { from: "in", to: "wait" },
    { from: "wait", to: "out" },
  ],
};

export const slowClients: Area = {
  name: "slow_clients",
  async attack(house, report) {
    const policy = { max_concurrent_runs: 200, max_queued_runs: 200 };
    const appHost = await deployApp(house, "resting", resting, policy);
    const before = await timed(house);
    const crowd: Socket[] = [];
    const dripping: Socket[] = [];
    const waiting = Array.from({ length: waitingRuns }, () => startSyncRun(house, appHost, crowd));
    const slow = Array.from({ length: slowBodies }, () => startSlowBody(house, dripping));
    const unread = Array.from({ length: unreadPipelines }, () => startUnreadPipeline(house, crowd));
    await Promise.all([...waiting, ...slow, ...unread]);
    const drip = setInterval(() => {
      for (const socket of dripping) if (socket.writable) socket.write("x");
    }, 1000);
    try {
      const during = await timed(house);
      for (const name of ["read", "reservation"] as const) {
        const line = `${name}: p95 ${during[name]} ms beside the crowd, ${before[name]} ms before`;
        console.log(`    ${line}`);
        if (during[name] > p95MsMax) report(`${line}; expected at most ${p95MsMax} ms`);
      }
    } finally {
      clearInterval(drip);
      for (const socket of [...crowd, ...dripping]) socket.destroy();
    }
  },
};

/** p95 of reads and of reservations, in milliseconds, one after the other as a caller sends them. */
async function timed(house: House): Promise<{ read: number; reservation: number }> {
  const { pat: bearer, voice_agent_id } = house.file;
  const p95 = async (send: () => Promise<{ status: number; text: string }>) => {
    const tookMs: number[] = [];
    for (let i = 0; i < samples; i += 1) {
      const startedMs = performance.now();
      const { status, text } = await send();
      if (status >= 300) throw new Error(`Expected to be served, got ${status} ${text.slice(0, 200)}`);
      tookMs.push(performance.now() - startedMs);
    }
    return Math.round(tookMs.sort((a, b) => a - b)[Math.floor(samples * 0.95)] ?? 0);
  };
  const reserve = `/v1/agents/voice/agents/${voice_agent_id}/calls/websocket`;
  return {
    read: await p95(() => house.ask("GET", "/v1/projects", { bearer })),
    reservation: await p95(() => house.ask("POST", reserve, { bearer, body: {} })),
  };
}

async function begin(house: House, crowd: Socket[], text: string): Promise<Socket> {
  const socket = await house.connect();
  socket.on("error", () => undefined);
  crowd.push(socket);
  socket.write(text);
  return socket;
}

function startSyncRun(house: House, appHost: string, crowd: Socket[]): Promise<Socket> {
  const body = '{"input":{}}';
  const head = [
    "POST /v1/runs HTTP/1.1",
    `Host: ${appHost}`,
    `Authorization: Bearer ${house.file.access_key}`,
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
  ];
  return begin(house, crowd, `${head.join("\r\n")}\r\n\r\n${body}`);
}

async function startSlowBody(house: House, crowd: Socket[]): Promise<void> {
  const head = ["POST /v1/projects HTTP/1.1", `Host: ${house.host}`, "Content-Length: 1000"];
  await begin(house, crowd, `${head.join("\r\n")}\r\n\r\n`);
}

async function startUnreadPipeline(house: House, crowd: Socket[]): Promise<void> {
  const one = `GET /v1/projects HTTP/1.1\r\nHost: ${house.host}\r\nAuthorization: Bearer ${house.file.pat}\r\n\r\n`;
  const socket = await begin(house, crowd, one.repeat(500));
  socket.pause();
}
