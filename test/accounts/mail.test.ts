import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { SMTPServer } from "smtp-server";
import { listen } from "#api/process/http_listener.ts";
import type { RunningWorker } from "#api/worker.ts";
import { type ApiHarness, openApiHarness, startTestWorker } from "#test/kit/api_harness.ts";
import { noChromium, openBrowser } from "#test/kit/browser.ts";

const password = "correct horse battery";

describe("mail of accounts, from sign-up to the link", () => {
  let api: ApiHarness;
  let worker: RunningWorker;
  let smtp: SMTPServer;
  let listener: Awaited<ReturnType<typeof listen>>;
  const taken: string[] = [];
  let onMail: () => void = () => undefined;

  before(async () => {
    api = await openApiHarness();
    listener = await listen(api.app.fetch, { host: "127.0.0.1", port: 0 });
    smtp = new SMTPServer({
      disabledCommands: ["STARTTLS", "AUTH"],
      onData(stream, _session, done) {
        const chunks: Buffer[] = [];
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => {
          taken.push(Buffer.concat(chunks).toString().replaceAll("=\r\n", "").replaceAll("=3D", "="));
          done();
          onMail();
        });
      },
    });
    await new Promise<void>((resolve) => smtp.listen(0, "127.0.0.1", resolve));
    const { port } = smtp.server.address() as AddressInfo;
    worker = await startTestWorker(api, {
      publicUrl: listener.url,
      smtpUrl: `smtp://127.0.0.1:${port}`,
    });
  });
  after(async () => {
    await worker?.close();
    await new Promise<void>((resolve) => smtp.close(() => resolve()));
    await listener?.close(0);
    await api.close();
  });

  /** The link of the next mail with this subject. */
  async function linkOf(subject: string): Promise<URL> {
    for (;;) {
      const mail = taken.find((raw) => raw.includes(`Subject: ${subject}`));
      if (mail) {
        taken.splice(taken.indexOf(mail), 1);
        return new URL(/http:\S+#token=[\w-]{43}/.exec(mail)?.[0] ?? "");
      }
      await new Promise<void>((resolve) => {
        onMail = resolve;
      });
    }
  }

  it("arrives over SMTP, made by the worker, with a link to this service", async () => {
    const email = "guest@inn.example";
    await api.call("POST", "/v1/auth/signup", { body: { email, password } });
    const link = await linkOf("Confirm your e-mail address");
    assert.equal(link.origin, listener.url);
    const page = await fetch(link);
    assert.equal(page.status, 200);
    assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'none'/);
    const token = new URLSearchParams(link.hash.slice(1)).get("token");
    assert.equal((await api.call("POST", "/v1/auth/verify-email", { body: { token } })).status, 200);
  });

  it("leads to pages that work in a browser", { skip: noChromium }, async () => {
    const email = "second@inn.example";
    const owner = await api.call("POST", "/v1/auth/signup", { body: { email, password } });
    const browser = await openBrowser();
    try {
      const page = await browser.newPage();
      const submit = async (link: URL, given?: string) => {
        await page.goto("about:blank");
        await page.goto(link.href);
        if (given !== undefined) await page.fill("input[name=password]", given);
        await page.click("button");
        await page.waitForSelector("output:not(:empty)");
        return page.textContent("output");
      };
      assert.match((await submit(await linkOf("Confirm your e-mail address"))) ?? "", /confirmed/);
      assert.ok(!page.url().includes("token"), "the token leaves the address bar");

      await api.call("POST", "/v1/auth/forgot-password", { body: { email } });
      const reset = await linkOf("Set a new password");
      assert.match((await submit(reset, "short")) ?? "", /^password: Expected string length/);
      assert.match((await submit(reset, "a longer new password")) ?? "", /is set/);
      const login = { email, password: "a longer new password" };
      const { body } = await api.call("POST", "/v1/auth/login", { body: login });

      const invited = { email: "third@inn.example" };
      await api.call("POST", "/v1/orgs/me/invitations", { token: body.access_token, body: invited });
      const link = await linkOf(`You are invited to ${owner.body.organization.name}`);
      await page.goto("about:blank");
      await page.goto(link.href);
      await page.getByText("third@inn.example").waitFor();
      await page.fill("input[name=password]", password);
      await page.click("button");
      await page.waitForSelector("form", { state: "hidden" });
      assert.equal((await api.call("POST", "/v1/auth/login", { body: { ...invited, password } })).status, 200);
    } finally {
      await browser.close();
    }
  });
});
