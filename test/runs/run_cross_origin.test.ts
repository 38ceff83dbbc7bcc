/**
 * An app called by a page of another origin, in a real Chromium: JSON, streams and their headers, as the
 * app's access control has it. The management API stays closed to such pages.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import type { BootstrapFile } from "#standalone/bootstrap.ts";
import { approving } from "#test/kit/app_client.ts";
import { noChromium, openBrowser } from "#test/kit/browser.ts";
import { type RoleProcess, startRole } from "#test/kit/role_process.ts";

const streaming = {
  schema_version: 1,
  nodes: [
    { id: "in", type: "input" },
    {
      id: "say",
      type: "llm",
      config: {
        model: "scripted",
        options: { replies: ["Good morning to you."] },
        messages: [{ role: "user", template: "x" }],
      },
    },
    { id: "out", type: "output", inputs: { text: "$.nodes.say.output.text" } },
  ],
  edges: [
    { from: "in", to: "say" },
    { from: "say", to: "out" },
  ],
};

interface Streamed {
  text: string;
  runId: string;
  from: string;
  again: string;
  run: { id: string; output: object };
}

/** What the page of the other origin can do, as its author wrote it. */
const pageScript = `
  const asJson = { "content-type": "application/json" };

  async function streamWithKey(app, key) {
    const headers = { ...asJson, authorization: "Bearer " + key };
    const body = JSON.stringify({ stream: true });
    const first = { method: "POST", headers: { ...headers, "idempotency-key": "page-1" }, body };
    const live = await fetch(app + "/v1/runs", first);
    const text = await live.text();
    const runId = live.headers.get("run-id");
    const path = app + "/v1/runs/" + runId;
    const again = await fetch(path + "/stream", { headers: { ...headers, "last-event-id": "2" } });
    const run = await (await fetch(path, { headers })).json();
    return { text, runId, from: again.headers.get("run-replayed-from"), again: await again.text(), run: run.data };
  }

  async function refusal(app) {
    const response = await fetch(app + "/v1/runs", { headers: { authorization: "Bearer svc_acc_wrong" } });
    return { status: response.status, body: await response.json() };
  }

  async function post(url, body, headers) {
    const sent = { method: "POST", headers: { ...asJson, ...headers }, body: JSON.stringify(body) };
    const response = await fetch(url, sent);
    return (await response.json()).data;
  }

  async function approveWhileListening(app) {
    const { id, run_token } = await post(app + "/v1/runs", { background: true, input: { question: "?" } });
    const heard = [];
    const source = new EventSource(app + "/v1/runs/" + id + "/stream?run_token=" + run_token);
    for (const type of ["run.created", "input.requested", "input.resolved", "run.succeeded"]) {
      source.addEventListener(type, (message) => {
        heard.push({ type, id: Number(message.lastEventId) });
        if (type !== "input.requested") return;
        const input_request_id = JSON.parse(message.data).data.id;
        const responses = [{ input_request_id, decision: "approve" }];
        post(app + "/v1/runs/" + id + "/resume", { responses }, { "run-token": run_token });
      });
    }
    // The stream ends, the source comes back with its cursor, and 204 tells it that this was all.
    return new Promise((resolve) => {
      source.addEventListener("error", () => source.readyState === EventSource.CLOSED && resolve(heard));
    });
  }

  const statusOf = (url, options) => fetch(url, options).then(({ status }) => status, () => "refused");
`;

describe("an app and a page of another origin", { skip: noChromium }, () => {
  let folder: string;
  let start: RoleProcess;
  let origin: Server;
  let browser: Browser;
  let page: Page;
  let file: BootstrapFile;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "frontdesk-origin-"));
    const ports = { GATEWAY_PORT: "0", API_PORT: "0", WORKER_PORT: "0", MEDIA_THREADS: "1" };
    start = startRole("standalone/main.ts", { DATA_DIR: folder, ALLOW_PRIVATE_ADDRESSES: "true", ...ports });
    origin = createServer((_, response) =>
      response.setHeader("content-type", "text/html").end(`<!doctype html><script>${pageScript}</script>`),
    );
    await once(origin.listen(0, "127.0.0.1"), "listening");
    await start.until(/Ctrl-C stops it/);
    file = JSON.parse(readFileSync(join(folder, "bootstrap.json"), "utf8"));
    browser = await openBrowser();
    page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(origin.address() as AddressInfo).port}/`);
  });
  after(async () => {
    await browser?.close();
    await start?.stop("SIGINT");
    origin?.close();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  const inPage = <Result>(name: string, ...values: unknown[]) =>
    page.evaluate<Result>(`${name}(${values.map((value) => JSON.stringify(value)).join(", ")})`);

  /** @returns the app's base address, as browsers dial it */
  async function deploy(definition: object, accessType: "private" | "public"): Promise<string> {
    const post = async (path: string, body: object) => {
      const response = await fetch(file.gateway_url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${file.pat}`, "content-type": "application/json" },
        body: JSON.stringify({ name: "Page", project_id: file.project_id, ...body }),
      });
      assert.equal(response.status, 201, await response.clone().text());
      return ((await response.json()) as { data: { id: string; hostname: string } }).data;
    };
    const workflow = await post("/v1/workflows", { definition });
    const access_control = { access_type: accessType, ...(accessType === "public" && { public_may: ["respond"] }) };
    const { hostname } = await post("/v1/apps", { workflow_id: workflow.id, access_control });
    return `http://${hostname}:${new URL(file.gateway_url).port}`;
  }

  it("streams a run of a private app to a page that has a key, and lets it read the run's id", async () => {
    const app = await deploy(streaming, "private");
    const told = await inPage<Streamed>("streamWithKey", app, file.access_key);
    assert.match(told.text, /event: run\.succeeded\n/);
    assert.equal(told.from, "2");
    assert.match(told.again, /\nid: 3\n/);
    assert.doesNotMatch(told.again, /\nid: 2\n/);
    assert.deepEqual([told.run.id, told.run.output], [told.runId, { text: "Good morning to you." }]);
  });

  it("lets a page read what it is refused for", async () => {
    const app = await deploy(streaming, "private");
    const refused = await inPage("refusal", app);
    assert.deepEqual(refused, { status: 401, body: { error: { code: "unauthorized", message: "Unauthorized" } } });
  });

  it("feeds an EventSource from a public app over an approval, and ends it with the run", async () => {
    const nodes = approving.nodes.map((node) =>
      node.id === "ok" ? { ...node, config: { ...node.config, audience: "caller" } } : node,
    );
    const app = await deploy({ ...approving, nodes, input: undefined }, "public");
    const heard = await inPage<{ type: string; id: number }[]>("approveWhileListening", app);
    assert.deepEqual(
      heard.map(({ type }) => type),
      ["run.created", "input.requested", "input.resolved", "run.succeeded"],
    );
    const ids = heard.map(({ id }) => id);
    assert.deepEqual(
      ids,
      [...ids].sort((a, b) => a - b),
    );
  });

  it("keeps the management API from such pages, and cookies from apps", async () => {
    const app = await deploy(streaming, "public");
    const headers = { authorization: `Bearer ${file.pat}` };
    const foreign: [string, object][] = [
      [`${file.gateway_url}/v1/apps`, { headers }],
      [`${app}/v1/runs`, { credentials: "include" }],
      [`${app}/v1/runs`, { method: "DELETE" }],
    ];
    for (const [url, options] of foreign) assert.equal(await inPage("statusOf", url, options), "refused", url);
    const start = { method: "POST", headers: { "content-type": "application/json" }, body: '{"background": true}' };
    assert.equal(await inPage("statusOf", `${app}/v1/runs`, start), 202);
  });

  it("was warned at its start that private addresses are open", () => {
    assert.match(start.said(), /"level":40[^\n]*ALLOW_PRIVATE_ADDRESSES is true/);
  });
});
