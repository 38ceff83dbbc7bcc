/**
 * A real Chromium for tests of pages: started without talking to anybody but us, with pages that fail
 * the test by themselves, and with axe to judge what stands on them.
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Result, RunOptions } from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { patienceMs } from "./patience.ts";

const executablePath = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";

/** The reason to skip tests of pages, or false where the machine has a Chromium. */
export const noChromium = existsSync(executablePath) ? false : `no Chromium at ${executablePath}`;

/** @param microphone a WAV file that the fake microphone plays over and over */
export function openBrowser(microphone?: string): Promise<Browser> {
  const sound = [
    "--autoplay-policy=no-user-gesture-required",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
    `--use-file-for-fake-audio-capture=${microphone}`,
  ];
  return chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      ...(microphone ? sound : []),
    ],
  });
}

/** A page that fails the test when a script fails or something is blocked by its own policy. */
export async function newPage(context: BrowserContext): Promise<Page> {
  context.setDefaultTimeout(patienceMs);
  const page = await context.newPage();
  page.on("pageerror", (error) => {
    throw error;
  });
  page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) throw new Error(message.text());
  });
  return page;
}

/** How many pixels the page is wider than its window. */
export async function overhang(page: Page): Promise<number> {
  return Number(await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"));
}

/** Controls without a name, as HTML. */
export function namelessControls(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll("button, input, textarea, select, meter, canvas, img, summary")]
    .filter((node) => {
      const labels = [...(node.labels ?? [])].map((label) => label.textContent).join("");
      const labelledBy = document.getElementById(node.getAttribute("aria-labelledby") ?? "");
      const name = node.getAttribute("aria-label") ?? labelledBy?.textContent ?? (labels || node.textContent);
      return node.tagName === "IMG" ? !node.hasAttribute("alt") : !name.trim();
    })
    .map((node) => node.outerHTML)`);
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** WCAG 2.2 up to AA, and what axe holds to be good practice. */
const axeOptions: RunOptions = {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  resultTypes: ["violations"],
};

/** What axe finds on the page as it stands, one line for each element that breaks a rule. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  // Evaluated by the browser itself: the page's own policy lets no foreign script in.
  await page.evaluate(axeSource);
  const violations: Result[] = await page.evaluate(
    `axe.run(document, ${JSON.stringify(axeOptions)}).then(({ violations }) => violations)`,
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary ?? ""}`.replace(/\s+/g, " ")),
  );
}
