/**
 * The page to talk, over a LiveKit room: `npm start` brings the server by itself, and a real Chromium
 * talks through a fake microphone with LiveKit's own client.
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { readWav, writeWav } from "#examples/wav_file.ts";
import { newPage, noChromium, openBrowser } from "#test/kit/browser.ts";
import { type RoleProcess, startRole } from "#test/kit/role_process.ts";
import { noLiveKit } from "#test/kit/rooms/room_house.ts";

const skip = noLiveKit || noChromium;

interface Call {
  state: string;
  transport: string;
  end_reason: string;
  usage: { input_audio_ms: number };
}

/** Whether the strip shows the agent's voice, whose loudness is measured on the sound that the browser plays. */
const drawsTheAgent = `(() => {
  const { width, height } = document.getElementById("strip");
  const below = Math.round(height / 2) + 4;
  const { data } = document.getElementById("strip").getContext("2d").getImageData(0, below, width, height - below);
  return data.some((value) => value > 0);
})()`;

describe("the page to talk, over a room", { skip }, () => {
  let folder: string;
  let start: RoleProcess;
  let browser: Browser;
  let page: Page;
  let keys: { pat: string; gateway_url: string };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "frontdesk-room-talk-"));
    const microphone = join(folder, "caller.wav");
    const { sampleRateHz, pcm } = await readWav(new URL("../../examples/hello.wav", import.meta.url));
    const silence = Buffer.alloc(sampleRateHz * 2 * 5);
    await writeWav(microphone, { sampleRateHz, pcm: Buffer.concat([silence.subarray(0, sampleRateHz), pcm, silence]) });
    start = startRole("standalone/main.ts", {
      DATA_DIR: join(folder, "data"),
      GATEWAY_PORT: "0",
      API_PORT: "0",
      WORKER_PORT: "0",
      MEDIA_THREADS: "1",
    });
    const [signInUrl] = await start.until(/http\S+\/talk#code=[\w-]+/);
    keys = JSON.parse(await readFile(join(folder, "data", "bootstrap.json"), "utf8"));
    browser = await openBrowser(microphone);
    page = await newPage(await browser.newContext({ viewport: { width: 1280, height: 860 } }));
    await page.goto(signInUrl);
    await page.getByRole("heading", { name: "Agents" }).waitFor();
    await page.getByLabel("Call over").selectOption("room");
  });

  after(async () => {
    await browser?.close();
    await start?.stop("SIGINT");
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  /** Waits for a message in the page's own log of events. */
  const event = (direction: "in" | "out", kind: string, holding = "") =>
    page
      .locator(`#events > .${direction}`)
      .filter({ has: page.locator(`.kind:text-is("${kind}")`) })
      .filter({ hasText: holding })
      .first()
      .waitFor();
  const pick = (agent: string) => page.locator(".agent-card", { hasText: agent }).click();

  /** The newest call, once it has ended. */
  async function lastCall() {
    for (;;) {
      const response = await fetch(`${keys.gateway_url}/v1/agents/voice/calls?sort=-created_at&page_size=1`, {
        headers: { authorization: `Bearer ${keys.pat}` },
      });
      const { data } = (await response.json()) as { data: Call[] };
      const [newest] = data;
      if (newest?.state === "ended") return newest;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  it("talks through the microphone to the echo agent, and hears the words back", async () => {
    await pick("Echo");
    await page.getByRole("button", { name: "Call with microphone" }).click();
    await event("in", "call_started");
    await event("in", "user_speech_started");
    await event("in", "user_speech_stopped");
    await page.locator("#transcript .user").first().waitFor();
    await event("in", "agent_speech_started");
    await page.locator("#turns .turn").first().waitFor();
    while (!(await page.evaluate(drawsTheAgent))) await event("in", "agent_speech_started");
    await page.getByRole("button", { name: "Mute" }).click();
    await event("out", "mute");
    await page.getByRole("button", { name: "Unmute" }).click();
    await event("out", "unmute");
    await page.getByRole("button", { name: "Hang up" }).click();
    await page.getByText("You hung up.").first().waitFor();
    const call = await lastCall();
    assert.deepEqual([call.transport, call.end_reason], ["room", "client_hangup"]);
    assert.ok(call.usage.input_audio_ms > 1000);
  });

  it("types to the front desk, interrupts it, presses keys, and leaves by closing the page", async () => {
    await pick("Front desk");
    await page.getByRole("button", { name: "Call and type" }).click();
    await event("in", "agent_speech_started", "welcome");
    await page.locator(`#state[data-state="speaking"]`).waitFor();
    await page.getByRole("button", { name: "Interrupt" }).click();
    await event("in", "clear", "client_interrupt");
    await page.locator("#transcript .agent.interrupted del").waitFor();
    await page.getByRole("textbox", { name: "Message to the agent" }).fill("When is breakfast?");
    await page.getByRole("button", { name: "Send" }).click();
    await page.locator("#transcript .user", { hasText: "When is breakfast?" }).waitFor();
    await page.locator("#transcript .agent", { hasText: "garden room" }).waitFor();
    await page.getByRole("button", { name: "Keypad" }).click();
    await page.getByRole("group", { name: "Keypad" }).getByRole("button", { name: "3" }).click();
    await page.keyboard.press("#");
    await page.locator("#transcript .agent", { hasText: "Wi-Fi is free" }).waitFor();
    await page.close();
    const call = await lastCall();
    assert.deepEqual([call.transport, call.end_reason], ["room", "client_hangup"]);
  });
});
