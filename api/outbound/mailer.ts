/** Sends mail: over SMTP, or into a folder of files where no server is configured. */
import { randomBytes } from "node:crypto";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createTransport } from "nodemailer";

export interface Mail {
  to: string;
  subject: string;
  text: string;
  html: string;
}

export interface Mailer {
  /** Resolves once the server has taken it, or the file is written. @throws Error when it was not taken */
  send(mail: Mail): Promise<void>;
  close(): void;
}

export interface MailerOptions {
  /** `smtp[s]://user:password@host:port`; files when absent. */
  smtpUrl?: string | undefined;
  /** Where files go: one JSON file a mail, `{from, to, subject, text, html, date}`. */
  outboxFolder: string;
  from: string;
}

/** Well below what the job queue takes for a dead worker. */
const timeouts = { connectionTimeout: 20_000, greetingTimeout: 20_000, socketTimeout: 60_000 };

export function openMailer({ smtpUrl, outboxFolder, from }: MailerOptions): Mailer {
  return smtpUrl ? smtpMailer(smtpUrl, from) : fileMailer(outboxFolder, from);
}

function smtpMailer(smtpUrl: string, from: string): Mailer {
  const transport = createTransport({ url: smtpUrl, ...timeouts }, { from });
  return {
    async send(mail) {
      try {
        await transport.sendMail({ ...mail, disableFileAccess: true, disableUrlAccess: true });
      } catch (error) {
        // The server's own words may name the person, and failures are logged.
        const { code, responseCode } = error as { code?: string; responseCode?: number };
        throw new Error(`Cannot send mail: ${[code, responseCode].filter(Boolean).join(" ") || "unknown reason"}`);
      }
    },
    close: () => transport.close(),
  };
}

/** Written aside and renamed, so that whoever watches the folder sees whole files; for the owner's eyes alone. */
function fileMailer(folder: string, from: string): Mailer {
  return {
    async send(mail) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const date = new Date().toISOString();
      const name = `${date.replaceAll(":", "")}-${randomBytes(4).toString("hex")}.json`;
      const aside = join(folder, `.${name}`);
      await writeFile(aside, `${JSON.stringify({ from, ...mail, date }, null, 2)}\n`, { mode: 0o600 });
      await rename(aside, join(folder, name));
    },
    close: () => undefined,
  };
}
