/**
 * The page of runs in a real Chromium, against everything that `npm start` starts. A proxy of our own
 * stands between, so that the link can be cut.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, Page, Request } from "playwright-core";
import { freePort } from "#standalone/ports.ts";
import {
  accessibilityProblems,
  namelessControls,
  newPage,
  noChromium,
  openBrowser,
  overhang,
} from "#test/kit/browser.ts";
import { type RoleProcess, startRole } from "#test/kit/role_process.ts";
import { CutLink } from "#test/kit/sockets/cut_link.ts";

const words = Array.from({ length: 60 }, (_, i) => `word${i}.`);

/** That are said at once. */
const wordsFirst = 10;

/** A language model behind an endpoint that speaks OpenAI's API: it stops in mid-sentence until `goOn`. */
class Speaker {
  readonly #server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const say = (content: string) =>
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`);
    say(words.slice(0, wordsFirst).join(" "));
    this.#sayTheRest = () => {
      say(` ${words.slice(wordsFirst).join(" ")}`);
      response.end(
        'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":60,"total_tokens":61}}\n\ndata: [DONE]\n\n',
      );
    };
  });
  #sayTheRest: () => void = () => undefined;

  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  goOn(): void {
    this.#sayTheRest();
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const talkingBy = (connection_id: string) => ({
  schema_version: 1,
  nodes: [
    { id: "in", type: "input" },
    {
      id: "say",
      type: "llm",
      config: { model: "speaker", connection_id, messages: [{ role: "user", template: "x" }] },
    },
    { id: "out", type: "output", inputs: { text: "$.nodes.say.output.text" } },
  ],
  edges: [
    { from: "in", to: "say" },
    { from: "say", to: "out" },
  ],
});

/** Inputs of every kind, and an answer with a form of its own. */
const survey = {
  schema_version: 1,
  input: {
    type: "object",
    properties: {
      room: { type: "integer", required: true },
      board: { type: "string", enum: ["breakfast", "half board"], required: true },
      vip: { type: "boolean" },
      guests: { type: "array", items: { type: "string" } },
    },
  },
  nodes: [
    { id: "in", type: "input" },
    {
      id: "rate",
      type: "feedback",
      config: {
        prompt: "How was room {{room}}?",
        response_schema: {
          type: "object",
          properties: { stars: { type: "integer", enum: [1, 2, 3], required: true }, note: { type: "string" } },
        },
      },
      inputs: { room: "$.input.room" },
    },
    { id: "out", type: "output", inputs: { stay: "$.input", rating: "$.nodes.rate.output.feedback" } },
  ],
  edges: [
    { from: "in", to: "rate" },
    { from: "rate", to: "out" },
  ],
};

describe("the page of runs", { skip: noChromium }, () => {
  let folder: string;
  let link: CutLink;
  let start: RoleProcess;
  const speaker = new Speaker();
  let browser: Browser;
  let desk: Page;
  let signInUrl: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "frontdesk-runs-"));
    const gatewayPort = await freePort();
    link = await CutLink.open(gatewayPort);
    start = startRole("standalone/main.ts", {
      DATA_DIR: join(folder, "data"),
      GATEWAY_PORT: String(gatewayPort),
      API_PORT: "0",
      WORKER_PORT: "0",
      MEDIA_THREADS: "1",
      PUBLIC_URL: link.url,
      // The speaker is one.
      ALLOW_PRIVATE_ADDRESSES: "true",
    });
    [signInUrl] = await start.until(/http\S+\/runs#code=[\w-]+/);
    const model = { name: "Speaker", provider: "openai", base_url: await speaker.listen(), secret: "sk-speaker" };
    await deploy("Talker", talkingBy((await post("/v1/connections", model)).id));
    await deploy("Survey", survey);
    browser = await openBrowser();
    desk = await newPage(await browser.newContext({ viewport: { width: 1280, height: 860 } }));
  });

  after(async () => {
    await browser?.close();
    await start?.stop("SIGINT");
    await link?.close();
    speaker.close();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  const bootstrapFile = () => JSON.parse(readFileSync(join(folder, "data", "bootstrap.json"), "utf8"));

  async function post(path: string, body: object): Promise<{ id: string }> {
    const { gateway_url, pat, project_id } = bootstrapFile();
    const response = await fetch(gateway_url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${pat}`, "content-type": "application/json" },
      body: JSON.stringify({ project_id, ...body }),
    });
    assert.equal(response.status, 201, await response.clone().text());
    return ((await response.json()) as { data: { id: string } }).data;
  }

  async function deploy(name: string, definition: object): Promise<void> {
    const workflow = await post("/v1/workflows", { name, definition });
    await post("/v1/apps", { name, workflow_id: workflow.id });
  }

  const status = (is: string) => desk.locator(`#state[data-state="${is}"]`).waitFor();
  const station = (name: string, is: string) =>
    desk.locator(`.station[data-is="${is}"]`, { hasText: name }).first().waitFor();

  const question = () => desk.getByRole("textbox", { name: "question" });

  async function ask(text: string): Promise<void> {
    await pick(desk, "Front desk");
    await newRun(desk);
    await question().fill(text);
    await desk.getByRole("button", { name: "Start", exact: true }).click();
  }

  async function talk(): Promise<void> {
    await pick(desk, "Talker");
    await newRun(desk);
    await desk.getByRole("button", { name: "Start", exact: true }).click();
    await desk.locator(".words", { hasText: words[wordsFirst - 1] ?? "" }).waitFor();
  }

  /** Every event once, in order, none missing; all that was said is there. */
  async function assertWhole(): Promise<void> {
    speaker.goOn();
    await desk.locator("#result").waitFor();
    const ids = await desk.locator("#events > li .seq").allTextContents();
    assert.ok(ids.length > 10);
    assert.deepEqual(
      ids.map(Number),
      ids.map((_, i) => i + 1),
    );
    assert.equal(await desk.locator(`.step[data-node="say"] .words`).textContent(), words.join(" "));
  }

  it("signs in with the one-time link, once for both pages", async () => {
    await desk.goto(signInUrl);
    await desk.getByRole("heading", { name: "Start a run" }).waitFor();
    assert.ok(!desk.url().includes("code="));
    await desk.getByRole("link", { name: "Talk" }).click();
    await desk.getByRole("heading", { name: "Agents" }).waitFor();
    await desk.getByRole("link", { name: "Runs" }).click();
    await desk.getByRole("heading", { name: "Start a run" }).waitFor();
  });

  it("runs the demo app: nodes light up, words stream in, an edited approval is sent", async () => {
    await ask("Could we have a late check-out on Sunday?");
    await station("Draft an answer", "running");
    await status("running");
    await desk.locator(`.step[data-node="answer"][data-is="running"] .words`, { hasText: "Check-out" }).waitFor();
    await desk.getByRole("heading", { name: "Send this answer to the guest?" }).waitFor();
    await status("awaiting_input");
    await station("A person looks at it", "waiting");
    await station("Send it at once", "skipped");
    assert.match(
      (await desk.locator(`.step[data-node="answer"] .words`).textContent()) ?? "",
      /ask by nine that morning\.$/,
    );
    for (const colorScheme of ["dark", "light"] as const) {
      await desk.emulateMedia({ colorScheme });
      assert.deepEqual(await accessibilityProblems(desk), [], `${colorScheme}, in a run that asks`);
    }
    await desk.getByRole("textbox", { name: "text" }).fill("Of course, until two.");
    await desk.getByRole("textbox", { name: "Comment" }).fill("A regular guest");
    await desk.getByRole("button", { name: "Approve" }).click();
    await status("succeeded");
    await station("Send what was approved", "succeeded");
    await desk.locator("#result").getByText("Of course, until two.").waitFor();
    await desk.locator(".resolution", { hasText: "Approved with changes to text" }).waitFor();
    await desk.locator(".resolution", { hasText: "A regular guest" }).waitFor();
    await desk.evaluate(`for (const closed of document.querySelectorAll("#desk details")) closed.open = true`);
    assert.deepEqual(await accessibilityProblems(desk), [], "a run that is over, all of it open");
  });

  it("opens the run again after a reload, and a finished one asks the stream for nothing more", async () => {
    const ended = desk.waitForResponse((response) => response.url().endsWith("/stream"));
    await desk.reload();
    assert.equal((await ended).status(), 204);
    await status("succeeded");
    await desk.locator("#result").getByText("Of course, until two.").waitFor();
  });

  it("comes back from a reload to a run that waits, and rejects", async () => {
    await ask("What does a double room cost?");
    await desk.getByRole("button", { name: "Reject" }).waitFor();
    const attached = desk.waitForRequest(isStream);
    await desk.reload();
    assert.ok(cursorOf(await attached) > 10);
    await desk.getByRole("button", { name: "Reject" }).click();
    await status("succeeded");
    await desk.locator("#result").getByText("A colleague will look into this").waitFor();
  });

  it("answers at once what binds nobody", async () => {
    await ask("When is breakfast?");
    await status("succeeded");
    await desk.locator("#result").getByText("garden room").waitFor();
    await station("A person looks at it", "skipped");
  });

  it("attaches from its cursor after a reload in mid-run, and shows every event once", async () => {
    await talk();
    const attached = desk.waitForRequest(isStream);
    await desk.reload();
    assert.ok(cursorOf(await attached) >= 6);
    await assertWhole();
  });

  it("comes back by itself when the link is cut in mid-run, from its cursor", async () => {
    await talk();
    const attached = desk.waitForRequest(isStream);
    link.cut();
    await desk.locator("#link", { hasText: "link lost, again in" }).waitFor();
    assert.ok(cursorOf(await attached) >= 6);
    await assertWhole();
  });

  it("cancels a run in mid-sentence", async () => {
    await talk();
    await desk.getByRole("button", { name: "Cancel the run" }).click();
    await status("canceled");
    await desk.getByRole("heading", { name: "It was canceled" }).waitFor();
    assert.equal(await desk.getByRole("button", { name: "Cancel the run" }).isVisible(), false);
  });

  it("makes forms from schemas, shows what the server refuses at its field, and takes feedback", async () => {
    await pick(desk, "Survey");
    await newRun(desk);
    await desk.getByRole("button", { name: "Start", exact: true }).click();
    await desk.locator(".field", { hasText: "room" }).locator(".problem").getByText("required").waitFor();
    await desk.getByLabel("room").fill("12");
    await desk.getByLabel("board").selectOption("half board");
    await desk.getByLabel("vip").check();
    await desk.getByLabel("guests").fill(`["Ada"`);
    await desk.getByRole("button", { name: "Start", exact: true }).click();
    await desk.getByText("Expected JSON").waitFor();
    await desk.getByLabel("guests").fill(`["Ada"]`);
    await desk.getByRole("button", { name: "As JSON" }).click();
    assert.deepEqual(JSON.parse(await desk.locator("#input-fields textarea").inputValue()), {
      room: 12,
      board: "half board",
      vip: true,
      guests: ["Ada"],
    });
    await desk.getByRole("button", { name: "Start", exact: true }).click();
    await desk.getByRole("heading", { name: "How was room 12?" }).waitFor();
    await desk.getByRole("button", { name: "Answer" }).click();
    await desk.locator(".request .field .problem:not([hidden])").first().waitFor();
    await desk.getByLabel("stars").selectOption("3");
    await desk.getByLabel("note").fill("Quiet");
    await desk.getByRole("button", { name: "Answer" }).click();
    await status("succeeded");
    const rating = await desk.locator("#result-values dd").last().textContent();
    assert.deepEqual(JSON.parse(rating ?? ""), { stars: 3, note: "Quiet" });
    await newRun(desk);
    await desk.getByRole("button", { name: "As JSON" }).click();
  });

  it("lists earlier runs and opens one", async () => {
    await pick(desk, "Front desk");
    const runs = desk.getByRole("list", { name: "Earlier runs" }).getByRole("button");
    await runs.filter({ hasText: "late check-out" }).click();
    await desk.locator("#result").getByText("Of course, until two.").waitFor();
    await desk.goBack();
    await desk.locator(`#desk[data-run="idle"]`).waitFor();
  });

  for (const width of [360, 390]) {
    it(`fits a phone of ${width} pixels`, async () => {
      await desk.setViewportSize({ width, height: 780 });
      await ask("Is there parking?");
      assert.equal(await overhang(desk), 0);
      await desk.getByRole("button", { name: "Approve" }).waitFor();
      assert.equal(await overhang(desk), 0);
      assert.deepEqual(await accessibilityProblems(desk), []);
      await desk.getByRole("button", { name: "Approve" }).click();
      await status("succeeded");
      assert.equal(await overhang(desk), 0);
      await newRun(desk);
      assert.equal(await overhang(desk), 0);
      await desk.setViewportSize({ width: 1280, height: 860 });
    });
  }

  it("works by keyboard, and names every control, landmark and live region", async () => {
    await pick(desk, "Front desk");
    await newRun(desk);
    await question().focus();
    await desk.keyboard.type("Can we bring our dog?");
    await desk.keyboard.press("Enter");
    await desk.getByRole("button", { name: "Approve" }).waitFor();
    assert.deepEqual(await namelessControls(desk), []);
    assert.deepEqual(await accessibilityProblems(desk), []);
    await desk.getByRole("main").waitFor();
    await desk.getByRole("complementary", { name: "Instruments" }).waitFor();
    await desk.getByRole("radiogroup", { name: "Apps" }).waitFor();
    await desk.getByRole("listitem", { name: "A person looks at it: waits for a person" }).waitFor();
    const told = desk.getByRole("log", { name: "What the run does" });
    assert.match((await told.textContent()) ?? "", /The run needs you: Send this answer to the guest\?/);
    await desk.getByRole("button", { name: "Approve" }).press("Enter");
    await status("succeeded");
  });

  it("signs out, and keeps nothing of the run", async () => {
    await desk.getByRole("button", { name: "Sign out" }).click();
    await desk.getByText("You are signed out.").waitFor();
    assert.equal(await desk.evaluate("sessionStorage.length"), 0);
    await desk.reload();
    await desk.getByRole("heading", { name: "Good day." }).waitFor();
  });
});

async function pick(page: Page, app: string): Promise<void> {
  if ((await page.locator("#run-title").textContent()) === app) return;
  await page.locator("#apps .agent-card", { hasText: app }).click();
  await page.locator("#run-title", { hasText: app }).waitFor();
  // Another app begins without a run.
  await page.locator(`#desk[data-run="idle"]`).waitFor();
}

/** The form to start a run, whatever stands there now. */
async function newRun(page: Page): Promise<void> {
  const button = page.getByRole("button", { name: "New run" });
  if (await button.isVisible()) await button.click();
  await page.locator(`#desk[data-run="idle"]`).waitFor();
}

const isStream = (request: Request) => request.url().endsWith("/stream");
const cursorOf = (request: Request) => Number(request.headers()["last-event-id"]);
