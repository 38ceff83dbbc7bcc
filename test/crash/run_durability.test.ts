/**
 * A run outlives the process that executes it: kill -9 in mid-run, three times, before clients that keep
 * a cursor and nothing else, and are cut off at every event.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { freePort } from "#standalone/ports.ts";
import { type RoleProcess, startRole } from "#test/kit/role_process.ts";
import { type AppAddress, askApp, assertWhole, followTogether, jsonOf } from "#test/kit/runs/run_followers.ts";
import { isWhole, patienceMs } from "../kit/patience.ts";

const clients = 8;
const nodes = 8;
const wordsEach = isWhole ? 260 : 90;
/** What is said takes as long in the short form: time enough to be killed in, also by a busy machine. */
const speechS = 12;
/** Words, and what tells of the nodes. */
const eventsMin = nodes * wordsEach;
const kills = 3;
/** Once a client has seen so many events of an attempt, the whole process is killed. */
const eventsBeforeKill = 50;
const takeoverMsMax = 15_000;

describe(`a run of ${eventsMin} events`, () => {
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

  it("shows each event exactly once, in order, through three times kill -9", { timeout: 3 * patienceMs }, async ({
    signal,
  }) => {
    const port = await freePort();
    await start(port);
    const file = JSON.parse(readFileSync(join(dataDir, "bootstrap.json"), "utf8"));
    const host = await deploy(`http://127.0.0.1:${port}`, file);
    const app: AppAddress = { port, host, accessKey: file.access_key };
    const created = await jsonOf(await askApp(app, "POST", "/v1/runs", { body: { background: true } }));
    assert.equal(created.status, 202);

    const backAtMs: number[] = [];
    let restarted: Promise<void> = Promise.resolve();
    const kill = async () => {
      await process_?.stop("SIGKILL");
      await start(port);
      backAtMs.push(performance.now());
    };
    let killed = 0;
    let ofAttempt = 0;
    const everything = await followTogether(app, created.data.id, {
      count: clients,
      signal,
      onEvent: ({ type }) => {
        assert.notEqual(type, "run.failed");
        ofAttempt = type === "run.started" ? 0 : ofAttempt + 1;
        if (ofAttempt !== eventsBeforeKill || killed === kills) return;
        killed += 1;
        restarted = restarted.then(kill);
        // Awaited below; not where the test is over before.
        restarted.catch(() => undefined);
      },
    });
    await restarted;

    assert.equal(backAtMs.length, kills);
    for (const seen of everything) {
      assertWhole(seen);
      assert.ok(seen.length >= eventsMin, `${seen.length} events`);
      assert.equal(seen.at(-1)?.type, "run.succeeded");
      assert.equal(seen.filter(({ type }) => type === "node.completed").length, nodes + 2);
    }
    // The first client is never cut, so it sees what happens when it does.
    const startedAtMs = everything[0]?.filter(({ type }) => type === "run.started").map(({ atMs }) => atMs) ?? [];
    assert.equal(startedAtMs.length, kills + 1);
    for (const [i, backMs] of backAtMs.entries()) {
      const tookMs = (startedAtMs[i + 1] ?? Number.POSITIVE_INFINITY) - backMs;
      assert.ok(tookMs < takeoverMsMax, `taken over ${tookMs} ms after the process was back`);
    }
  });
});

/** An app of several models that speak side by side, each word an event of its own. */
async function deploy(url: string, file: { pat: string; project_id: string }): Promise<string> {
  const ids = Array.from({ length: nodes }, (_, i) => `say_${i}`);
  const reply = Array.from({ length: wordsEach }, (_, i) => `word${i}`).join(" ");
  const config = {
    model: "scripted",
    options: { replies: [reply], tokens_per_s: wordsEach / speechS },
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
