/**
 * The page to talk in a real Chromium, against everything that `npm start` starts. The fake
 * microphone plays recorded speech; a proxy of our own stands between, so that the link can be cut.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { readWav, writeWav } from "#examples/wav_file.ts";
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

describe("the page to talk", { skip: noChromium }, () => {
  let folder: string;
  let link: CutLink;
  let start: RoleProcess;
  let browser: Browser;
  let desk: Page;
  let signInUrl: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "frontdesk-talk-"));
    const microphone = join(folder, "caller.wav");
    await writeCallerSpeech(microphone);
    const gatewayPort = await freePort();
    link = await CutLink.open(gatewayPort);
    start = startRole("standalone/main.ts", {
      DATA_DIR: join(folder, "data"),
      GATEWAY_PORT: String(gatewayPort),
      API_PORT: "0",
      WORKER_PORT: "0",
      MEDIA_THREADS: "1",
      PUBLIC_URL: link.url,
      // Where no livekit-server is.
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
    });
    [signInUrl] = await start.until(/http\S+\/talk#code=[\w-]+/);
    browser = await openBrowser(microphone);
    desk = await newPage(await browser.newContext({ viewport: { width: 1280, height: 860 } }));
    await desk.addInitScript(recognitionOfBrowser);
  });

  after(async () => {
    await browser?.close();
    await start?.stop("SIGINT");
    await link?.close();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  it("signs in with the one-time link once, and takes the code out of the address", async () => {
    await desk.goto(signInUrl);
    await desk.getByRole("heading", { name: "Agents" }).waitFor();
    assert.equal(new URL(desk.url()).hash, "");
    await desk.reload();
    await desk.getByRole("heading", { name: "Agents" }).waitFor();

    const latecomer = await newPage(await browser.newContext());
    await latecomer.goto(signInUrl);
    await latecomer.getByText("This sign-in link has been used already").waitFor();
    await latecomer.context().close();
  });

  it("offers no rooms where there is no LiveKit, and says so", async () => {
    await desk.getByText("there are no LiveKit rooms here").waitFor();
    assert.equal(await desk.getByLabel("Call over").isVisible(), false);
    assert.doesNotMatch(await desk.content(), /LIVEKIT_/);
  });

  it("types to the front desk: spoken answers, their text, what was cut off, and the wait turn by turn", async () => {
    await pick(desk, "Front desk");
    await desk.getByRole("button", { name: "Call and type" }).click();
    await event(desk, "in", "agent_speech_started", "welcome");
    await bufferFilled(desk);
    await desk.getByRole("button", { name: "Interrupt" }).click();
    await event(desk, "in", "clear", "client_interrupt");
    await desk.locator("#transcript .agent.interrupted del").waitFor();
    await desk.locator("#buffer-value", { hasText: /^0 ms$/ }).waitFor();

    await type(desk, "When is breakfast?");
    await desk.locator("#transcript .user", { hasText: "When is breakfast?" }).waitFor();
    await desk.locator("#transcript .agent", { hasText: "garden room" }).waitFor();
    await bufferFilled(desk);
    await desk.locator("#turns .turn").first().waitFor();
    const stages = await desk.locator("#turns .turn").first().locator("th").allTextContents();
    assert.deepEqual(stages, ["Endpointing", "Recognition", "Model", "Speech", "Gateway"]);
    await desk
      .locator("#events > .out", { hasText: /mark.*end:/ })
      .filter({ hasNotText: "cleared" })
      .first()
      .waitFor();
  });

  it("sets who speaks and when above what is said, each in one line", async () => {
    const lines = await linesOf(desk, "#transcript");
    assert.ok(lines.length >= 3);
    assert.deepEqual(lines.filter(isBroken), []);
  });

  for (const colorScheme of ["light", "dark"] as const) {
    it(`has nothing that axe finds in a call, keypad and events open, when it is ${colorScheme}`, async () => {
      await desk.emulateMedia({ colorScheme });
      await desk.getByRole("button", { name: "Keypad" }).click();
      await desk.locator("#events > li summary").first().click();
      assert.deepEqual(await accessibilityProblems(desk), []);
      await desk.locator("#events > li summary").first().click();
      await desk.getByRole("button", { name: "Keypad" }).click();
    });
  }

  it("sends keypad digits as the caller presses them", async () => {
    await desk.getByRole("button", { name: "Keypad" }).click();
    await desk.getByRole("group", { name: "Keypad" }).getByRole("button", { name: "3" }).click();
    await desk.keyboard.press("#");
    await event(desk, "out", "dtmf", `"digit": "3"`);
    await event(desk, "out", "dtmf", `"digit": "#"`);
    await desk.locator("#transcript .agent", { hasText: "Wi-Fi is free" }).waitFor();
    await desk.keyboard.press("Escape");
    assert.equal(await desk.locator("#keypad").isVisible(), false);
  });

  it("comes back by itself when the link is cut in mid-sentence, without losing or doubling an event", async () => {
    await desk.getByRole("button", { name: "Interrupt" }).click();
    await type(desk, "How can I park my car?");
    await desk.locator("#transcript .agent", { hasText: "charging stations" }).last().waitFor();
    await desk.locator(`#state[data-state="speaking"]`).waitFor();
    link.cut();
    await desk.locator(`#state[data-state="resuming"]`).waitFor();
    await desk.getByText("The link is back.").first().waitFor();
    await type(desk, "Is there wifi?");
    await desk.locator("#transcript .user", { hasText: "Is there wifi?" }).waitFor();
    const shown = await desk.locator("#events .in pre").allTextContents();
    const seqs = shown.map((json) => JSON.parse(json).seq as number);
    // Answers to pings are numbered too and not shown.
    assert.deepEqual(
      seqs,
      [...new Set(seqs)].sort((a, b) => a - b),
    );
    assert.equal(shown.filter((json) => json.includes("events_lost")).length, 0);
  });

  it("hangs up, and shows the call in the list with what was heard and how long each turn took", async () => {
    await desk.getByRole("button", { name: "Hang up" }).click();
    await desk.getByText("You hung up.").first().waitFor();
    const calls = desk.getByRole("list", { name: "Recent calls" }).getByRole("button");
    await calls.first().waitFor();
    await calls.first().click();
    const detail = desk.getByRole("dialog");
    await detail.getByText("When is breakfast?").waitFor();
    await detail.locator(".line.agent del").first().waitFor();
    assert.ok((await detail.locator(".turn").count()) >= 1);
    const lines = await linesOf(desk, "#call-detail");
    assert.ok(lines.length >= 3);
    assert.deepEqual(lines.filter(isBroken), []);
    assert.deepEqual(await accessibilityProblems(desk), []);
    await detail.getByRole("button", { name: "Close" }).click();
  });

  it("talks through the microphone to the echo agent, which says the caller's words back", async () => {
    await pick(desk, "Echo");
    await desk.getByRole("button", { name: "Call with microphone" }).click();
    await event(desk, "in", "user_speech_started");
    await event(desk, "in", "user_speech_stopped");
    await desk.locator("#transcript .user").first().waitFor();
    await event(desk, "in", "agent_speech_started");
    await bufferFilled(desk);
    await desk.locator("#turns .turn").first().waitFor();
    const endpointing = desk
      .locator("#turns .turn")
      .first()
      .getByRole("row", { name: /Endpointing/ });
    assert.match((await endpointing.textContent()) ?? "", /\d+ ms/);

    await desk.getByRole("button", { name: "Mute" }).click();
    await event(desk, "out", "mute");
    await desk.locator("#input-value", { hasText: "off" }).waitFor();
    await desk.getByRole("button", { name: "Unmute" }).click();
    await desk.locator("#input-value", { hasText: "dB" }).waitFor();
    await desk.getByRole("button", { name: "Hang up" }).click();
    await desk.locator(`#desk[data-call="idle"]`).waitFor();
  });

  it("understands who speaks to an agent without a recognizer by the browser's own, while the agent is silent", async () => {
    await pick(desk, "Front desk");
    await desk.getByLabel(/let this browser recognize what I say/).check();
    await desk.getByRole("button", { name: "Call with microphone" }).click();
    await event(desk, "in", "agent_speech_started", "welcome");
    assert.equal(await desk.evaluate("recognitions[0].isListening"), false);
    await desk.evaluate(`new Promise((said) => {
      const look = () => {
        const newest = recognitions.at(-1);
        if (!newest.isListening) return setTimeout(look, 20);
        newest.says("When is breakfast?");
        said();
      };
      look();
    })`);
    await event(desk, "out", "client_transcript", "When is breakfast?");
    await desk.locator("#transcript .user", { hasText: "When is breakfast?" }).waitFor();
    await desk.locator("#transcript .agent", { hasText: "garden room" }).waitFor();
    await desk.getByRole("button", { name: "Hang up" }).click();
    await desk.locator(`#desk[data-call="idle"]`).waitFor();
    assert.equal(await desk.evaluate("recognitions.some(({ isListening }) => isListening)"), false);
  });

  for (const width of [360, 390]) {
    it(`fits a phone of ${width} pixels, in a call too`, async () => {
      await desk.setViewportSize({ width, height: 780 });
      assert.equal(await overhang(desk), 0);
      await pick(desk, "Front desk");
      await desk.getByRole("button", { name: "Call and type" }).click();
      await desk.locator("#transcript .agent").first().waitFor();
      await desk.getByRole("button", { name: "Keypad" }).click();
      assert.equal(await overhang(desk), 0);
      assert.deepEqual((await linesOf(desk, "#transcript")).filter(isBroken), []);
      assert.deepEqual(await accessibilityProblems(desk), []);
      const [top, height] = (await desk.evaluate(
        `(() => { const box = document.getElementById("message").getBoundingClientRect(); return [box.top, box.height]; })()`,
      )) as [number, number];
      assert.ok(top >= 0 && height >= 44, "the composer is in sight and a finger wide");
      await desk.getByRole("button", { name: "Hang up" }).click();
      await desk.locator(`#desk[data-call="idle"]`).waitFor();
      await desk.setViewportSize({ width: 1280, height: 860 });
    });
  }

  it("names every control, landmark and live region for those who do not see it", async () => {
    assert.deepEqual(await namelessControls(desk), []);
    assert.deepEqual(await accessibilityProblems(desk), []);
    for (const name of ["Microphone", "Player buffer"]) await desk.getByRole("meter", { name }).waitFor();
    await desk.getByRole("log", { name: "Conversation" }).waitFor({ state: "attached" });
    await desk.getByRole("main").waitFor();
    await desk.getByRole("complementary", { name: "Instruments" }).waitFor();
    await desk.getByRole("radiogroup", { name: "Agents" }).waitFor();
    await desk.getByRole("region", { name: "Transcript" }).waitFor();
    assert.equal(await desk.locator("html").getAttribute("lang"), "en");
  });

  it("signs out", async () => {
    await desk.getByRole("button", { name: "Sign out" }).click();
    await desk.getByText("You are signed out.").waitFor();
    await desk.reload();
    await desk.getByRole("heading", { name: "Good day." }).waitFor();
  });
});

/** A browser's recognition that hears what the test says. */
const recognitionOfBrowser = `
  globalThis.recognitions = [];
  globalThis.SpeechRecognition = class {
    constructor() { recognitions.push(this); }
    isListening = false;
    start() { this.isListening = true; }
    abort() { this.isListening = false; }
    says(transcript) {
      this.onresult({ resultIndex: 0, results: [Object.assign([{ transcript }], { isFinal: true })] });
    }
  };`;

interface Line {
  said: string;
  /** Of the speaker's name and of the note beside it: 1 for each where they fit. */
  textLines: number[];
  /** How far the words begin below the byline's end, in pixels. */
  below: number;
}

/** How the lines of a conversation are laid out. */
function linesOf(page: Page, within: string): Promise<Line[]> {
  return page.evaluate(`[...document.querySelectorAll("${within} .line")].map((line) => {
    const byline = line.querySelector(".byline");
    const words = line.querySelector(".words");
    const textLines = [...byline.children].filter((part) => part.textContent).map((part) => {
      const range = document.createRange();
      range.selectNodeContents(part);
      return range.getClientRects().length;
    });
    return {
      said: line.textContent,
      textLines,
      below: words.getBoundingClientRect().top - byline.getBoundingClientRect().bottom,
    };
  })`);
}

const isBroken = ({ textLines, below }: Line) => below < 0 || textLines.some((count) => count !== 1);

const pick = (page: Page, agent: string) => page.locator(".agent-card", { hasText: agent }).click();

async function type(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message to the agent" }).fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

/** Waits for a message in the page's own log of events. */
async function event(page: Page, direction: "in" | "out", kind: string, holding = ""): Promise<void> {
  const entries = page.locator(`#events > .${direction}`).filter({ has: page.locator(`.kind:text-is("${kind}")`) });
  await entries.filter({ hasText: holding }).first().waitFor();
}

/** Waits until the player holds audio. */
async function bufferFilled(page: Page): Promise<void> {
  await page.locator("#buffer-value", { hasText: /^[1-9]\d* ms$/ }).waitFor();
}

/** What the fake microphone plays over and over: a sentence, then silence in which the agent answers. */
async function writeCallerSpeech(path: string): Promise<void> {
  const { sampleRateHz, pcm } = await readWav(new URL("../../examples/hello.wav", import.meta.url));
  const silence = Buffer.alloc(sampleRateHz * 2 * 5);
  await writeWav(path, { sampleRateHz, pcm: Buffer.concat([silence.subarray(0, sampleRateHz), pcm, silence]) });
}
