/**
 * `npm run pictures`: the README's pictures, taken anew: a call to the front desk, and a run that asks
 * a person. Starts everything on free ports and a folder of its own, and leaves nothing but the pictures.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { newPage, noChromium, openBrowser } from "#test/kit/browser.ts";
import { startRole } from "#test/kit/role_process.ts";

const pages = fileURLToPath(new URL("../../gateway/pages/", import.meta.url));

if (noChromium) throw new Error(`Cannot take pictures: ${noChromium}. CHROMIUM_PATH names one elsewhere.`);
const folder = await mkdtemp(join(tmpdir(), "frontdesk-pictures-"));
const start = startRole("standalone/main.ts", {
  DATA_DIR: join(folder, "data"),
  GATEWAY_PORT: "0",
  API_PORT: "0",
  WORKER_PORT: "0",
});
const browser = await openBrowser();
try {
  const [talkUrl] = await start.until(/http\S+\/talk#code=[\w-]+/);
  const [runsUrl] = await start.until(/http\S+\/runs#code=[\w-]+/);
  await picture(talkUrl, "talk.png", talk);
  await picture(runsUrl, "runs.png", run);
} finally {
  await browser.close();
  await start.stop("SIGINT");
  await rm(folder, { recursive: true, force: true });
}

async function picture(url: string, name: string, act: (page: Page) => Promise<void>): Promise<void> {
  const page = await newPage(await browser.newContext({ viewport: { width: 1280, height: 860 } }));
  await page.goto(url);
  await act(page);
  await page.evaluate(
    `Promise.all(document.getAnimations().filter((one) => one instanceof CSSTransition).map((one) => one.finished))`,
  );
  await page.screenshot({ path: join(pages, name) });
  await page.context().close();
  process.stdout.write(`gateway/pages/${name}\n`);
}

async function talk(page: Page): Promise<void> {
  const say = async (text: string, answer: string) => {
    await page.getByRole("textbox", { name: "Message to the agent" }).fill(text);
    await page.getByRole("button", { name: "Send" }).click();
    await page.locator("#transcript .agent", { hasText: answer }).waitFor();
  };
  await page.getByRole("button", { name: "Call and type" }).click();
  await page.locator(`#state[data-state="speaking"]`).waitFor();
  await page.getByRole("button", { name: "Interrupt" }).click();
  await page.locator("#transcript .agent.interrupted del").waitFor();
  await say("When is breakfast?", "garden room");
  await page.locator("#turns .turn").waitFor();
  await say("Is there parking at the hotel?", "charging stations");
  await page.locator("#turns .turn").nth(1).waitFor();
}

async function run(page: Page): Promise<void> {
  await page.getByRole("textbox", { name: "question" }).fill("Could we have a late check-out on Sunday?");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("heading", { name: "Send this answer to the guest?" }).waitFor();
}
