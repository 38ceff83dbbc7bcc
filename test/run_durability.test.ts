/** A run outlives the process that executes it: kill -9 in mid-run, three times, before a client that only keeps its cursor. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { freePort } from "#standalone/ports.ts";
import { type RoleProcess, startRole } from "./role_process.ts";

const nodes = 8;
const wordsEach = 260;
/** Once the client has seen so many events, the whole process is killed. */
const killsAfter = [300, 900, 1500];
const takeoverMsMax = 15_000;

interface Seen {
  id: number;
  type: string;
  atMs: number;
}

describe("a run of 2,000 events", () => {
  const dataDir = join(tmpdir(), `frontdesk-durability-${randomBytes(6).toString("hex")}`);
  let process_: RoleProcess | undefined;
  after(async () => {
    await process_?.stop("SIGINT");
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function start(port: number): Promise<void> {
    const ports = { GATEWAY_PORT: String(port), API_PORT: "0", WORKER_PORT: "0" };
    process_ = startRole("standalone/main.ts", { DATA_DIR: dataDir, MEDIA_THREADS: "1", ...ports });
    await process_.until(/Ctrl-C stops it/);
  }

  it("shows each event exactly once, in order, through three times kill -9", { timeout: 110_000 }, async () => {
    const port = await freePort();
    await start(port);
    const file = JSON.parse(readFileSync(join(dataDir, "bootstrap.json"), "utf8"));
    const host = await deploy(`http://127.0.0.1:${port}`, file);
    const request = (method: string, path: string, headers: Record<string, string> = {}, body?: object) =>
      new Promise<http.IncomingMessage>((resolve, reject) => {
        const sent = http.request(
          {
            host: "127.0.0.1",
            port,
            method,
            path,
            agent: false,
            headers: {
              host,
              authorization: `Bearer ${file.access_key}`,
              "content-type": "application/json",
              ...headers,
            },
          },
          resolve,
        );
        sent.on("error", reject).end(body && JSON.stringify(body));
      });

    const created = await request("POST", "/v1/runs", {}, { background: true });
    assert.equal(created.statusCode, 202);
    const [chunk] = await once(created.setEncoding("utf8"), "data");
    const runId: string = JSON.parse(String(chunk)).data.id;

    const seen: Seen[] = [];
    const killedAtMs: number[] = [];
    const killsLeft = [...killsAfter];
    let restarting: Promise<void> | undefined;
    const kill = async () => {
      killedAtMs.push(performance.now());
      await process_?.stop("SIGKILL");
      await start(port);
    };
    while (seen.at(-1)?.type !== "run.succeeded") {
      const cursor: Record<string, string> = seen.length > 0 ? { "last-event-id": String(seen.at(-1)?.id) } : {};
      try {
        const response = await request("GET", `/v1/runs/${runId}/stream`, cursor);
        if (response.statusCode !== 200) throw new Error(`the stream answered ${response.statusCode}`);
        for await (const frame of framesOf(response)) {
          seen.push({ ...frame, atMs: performance.now() });
          assert.notEqual(frame.type, "run.failed");
          if (seen.length >= (killsLeft[0] ?? Number.POSITIVE_INFINITY)) {
            killsLeft.shift();
            restarting = kill();
          }
        }
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        // The connection broke with the process: the client comes back with its cursor.
        await wait(200);
      }
      await restarting;
    }

    assert.deepEqual(killsLeft, []);
    assert.ok(seen.length >= 2000, `${seen.length} events`);
    assert.deepEqual(
      seen.map(({ id }) => id),
      seen.map((_, i) => i + 1),
    );
    assert.equal(seen.filter(({ type }) => type === "node.completed").length, nodes + 2);
    for (const killedMs of killedAtMs) {
      const next = seen.find(({ type, atMs }) => type === "run.started" && atMs > killedMs);
      assert.ok(next && next.atMs - killedMs < takeoverMsMax, `taken over after ${next && next.atMs - killedMs} ms`);
    }
  });
});

/** An app of several models that speak side by side, each word an event of its own. */
async function deploy(url: string, file: { pat: string; project_id: string }): Promise<string> {
  const ids = Array.from({ length: nodes }, (_, i) => `say_${i}`);
  const reply = Array.from({ length: wordsEach }, (_, i) => `word${i}`).join(" ");
  const config = {
    model: "scripted",
    options: { replies: [reply], tokens_per_s: 90 },
    messages: [{ role: "user", template: "x" }],
  };
  const definition = {
    schema_version: 1,
    nodes: [
      { id: "in", type: "input" },
      ...ids.map((id) => ({ id, type: "llm", config })),
      { id: "out", type: "output", inputs: { text: `$.nodes.${ids.at(-1)}.output.text` } },
    ],
    edges: ids.flatMap((id) => [
      { from: "in", to: id },
      { from: id, to: "out" },
    ]),
  };
  const post = async (path: string, body: object) => {
    const answer = await fetch(url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${file.pat}`, "content-type": "application/json" },
      body: JSON.stringify({ project_id: file.project_id, ...body }),
    });
    const json = (await answer.json()) as { data: { id: string; hostname: string } };
    assert.equal(answer.status, 201, JSON.stringify(json));
    return json.data;
  };
  const workflow = await post("/v1/workflows", { name: "Talker", definition });
  return (await post("/v1/apps", { name: "Talker", workflow_id: workflow.id })).hostname;
}

async function* framesOf(response: http.IncomingMessage): AsyncGenerator<{ id: number; type: string }> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const match = /^id: (\d+)\nevent: (\S+)/.exec(text.slice(0, end));
      text = text.slice(end + 2);
      if (match) yield { id: Number(match[1]), type: match[2] ?? "" };
    }
  }
}
