import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { SMTPServer } from "smtp-server";
import { openMailer } from "./mailer.ts";

const mail = {
  to: "gast@inn.example",
  subject: "Schöne Grüße",
  text: "Guten Tag\n\nhttp://desk.example/account/verify-email#token=abc\n",
  html: '<p>Guten Tag</p><a href="http://desk.example/account/verify-email#token=abc">Weiter</a>\n',
};
const from = "Desk <desk@desk.example>";

/** A real SMTP server that keeps what it is given, or refuses it. */
async function openServer(refusal?: string) {
  const taken: { from: string; to: string[]; raw: string }[] = [];
  const server = new SMTPServer({
    disabledCommands: ["STARTTLS"],
    onAuth: ({ username, password }, _session, done) =>
      done(username === "desk" && password === "s3cret" ? null : new Error("no"), { user: username }),
    onData(stream, { envelope }, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        if (refusal) return done(new Error(refusal));
        const sender = envelope.mailFrom ? envelope.mailFrom.address : "";
        taken.push({
          from: sender,
          to: envelope.rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString(),
        });
        done();
      });
    },
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.server.address() as AddressInfo;
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { taken, port, close };
}

describe("mail", () => {
  it("goes to an SMTP server, signed in, with a plain and an HTML body", async () => {
    const server = await openServer();
    const mailer = openMailer({ smtpUrl: `smtp://desk:s3cret@127.0.0.1:${server.port}`, outboxFolder: "unused", from });
    try {
      await mailer.send(mail);
      const [taken] = server.taken;
      assert.deepEqual([taken?.from, taken?.to], ["desk@desk.example", ["gast@inn.example"]]);
      assert.match(taken?.raw ?? "", /^Content-Type: multipart\/alternative/m);
      assert.match(taken?.raw ?? "", /^Content-Type: text\/plain; charset=utf-8/m);
      assert.match(taken?.raw ?? "", /^Content-Type: text\/html; charset=utf-8/m);
      assert.match(taken?.raw ?? "", /^Subject: =\?UTF-8\?Q\?Sch=C3=B6ne_Gr=C3=BC=C3=9Fe\?=/m);
    } finally {
      mailer.close();
      await server.close();
    }
  });

  it("fails loudly when the server does not take it, so that the queue tries again", async () => {
    const server = await openServer("the mailbox of gast@inn.example is full");
    const wrongPassword = openMailer({
      smtpUrl: `smtp://desk:x@127.0.0.1:${server.port}`,
      outboxFolder: "unused",
      from,
    });
    const mailer = openMailer({ smtpUrl: `smtp://desk:s3cret@127.0.0.1:${server.port}`, outboxFolder: "unused", from });
    try {
      await assert.rejects(mailer.send(mail), /^Error: Cannot send mail: EMESSAGE 450$/);
      await assert.rejects(wrongPassword.send(mail), /^Error: Cannot send mail: EAUTH 535$/);
      assert.equal(server.taken.length, 0);
    } finally {
      mailer.close();
      wrongPassword.close();
      await server.close();
    }
  });

  it("goes to whole, private files where there is no server", async () => {
    const outboxFolder = join(mkdtempSync(join(tmpdir(), "frontdesk-mail-")), "outbox");
    const mailer = openMailer({ outboxFolder, from });
    try {
      await Promise.all([mailer.send(mail), mailer.send(mail)]);
      const names = readdirSync(outboxFolder);
      assert.equal(names.length, 2);
      for (const name of names) {
        const { date, ...kept } = JSON.parse(readFileSync(join(outboxFolder, name), "utf8"));
        assert.deepEqual(kept, { from, ...mail });
        assert.ok(Date.parse(date) > 0);
        assert.equal(statSync(join(outboxFolder, name)).mode & 0o077, 0);
      }
    } finally {
      mailer.close();
      rmSync(join(outboxFolder, ".."), { recursive: true, force: true });
    }
  });
});
